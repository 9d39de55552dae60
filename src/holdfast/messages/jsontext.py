"""JSON as text. What a model wrote may hold lone surrogates, which UTF-8 cannot: they are kept."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def to_json(value: Any) -> str:
    """Compact JSON, non-ASCII characters as they are."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Any:
    """The value of a JSON text; ValueError where it is none."""
    try:
        return _decode(text)
    except UnicodeEncodeError:
        return json.loads(text)
    except msgspec.DecodeError as problem:
        if r"\ud" in text.lower():
            return json.loads(text)
        raise ValueError(str(problem)) from problem
    except RecursionError as problem:
        raise ValueError("the JSON is nested too deeply") from problem


def compacted(text: str) -> str:
    """The same JSON, written compact; text that is not JSON stays as it is."""
    try:
        return to_json(from_json(text))
    except ValueError:
        return text


def length_compacted(text: str) -> int:
    """How many characters `compacted` gives; the text itself is seldom needed for that."""
    try:
        written = _encode(_decode(text))
    except (UnicodeEncodeError, RecursionError, msgspec.DecodeError):
        return len(compacted(text))
    return len(written) if written.isascii() else len(written.decode())
