"""JSON as text. What a model wrote may hold lone surrogates, which UTF-8 cannot: they are kept.

It may hold whole numbers of more digits than Python writes, too: those become hexadecimal text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_LONGEST = 2_000
"""Bits of a number that Python writes in any case: it may be told to write no more than 640 digits."""
_DEEPEST = 200
"""How deep JSON may be nested. What Python itself can take depends on its version, and on who calls."""


def to_json(value: Any) -> str:
    """Compact JSON, non-ASCII characters as they are."""
    try:
        return _encode(value).decode()
    except ValueError:
        return json.dumps(_writable(value), ensure_ascii=False, separators=(",", ":"))


def _writable(value: Any) -> Any:
    match value:
        case dict():
            return {key: _writable(inside) for key, inside in value.items()}
        case list() | tuple():
            return [_writable(inside) for inside in value]
        case int() if value.bit_length() > _LONGEST:
            return hex(value)
    return value


def from_json(text: str) -> Any:
    """The value of a JSON text; ValueError where it is none."""
    try:
        value = _decoded(text)
    except RecursionError as problem:
        raise ValueError("the JSON is nested too deeply") from problem
    if _may_be_deep(text) and _is_deep(value):
        raise ValueError("the JSON is nested too deeply")
    return value


def _decoded(text: str) -> Any:
    try:
        return _decode(text)
    except UnicodeEncodeError:
        return json.loads(text)
    except msgspec.DecodeError as problem:
        if r"\ud" in text.lower():
            return json.loads(text)
        raise ValueError(str(problem)) from problem


def _may_be_deep(text: str) -> bool:
    return text.count("{") + text.count("[") > _DEEPEST


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [inside for item in level for inside in _inside(item)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def compacted(text: str) -> str:
    """The same JSON, written compact; text that is not JSON stays as it is."""
    try:
        return to_json(from_json(text))
    except ValueError:
        return text


def length_compacted(text: str) -> int:
    """How many characters `compacted` gives; the text itself is seldom needed for that."""
    if _may_be_deep(text):
        return len(compacted(text))
    try:
        written = _encode(_decode(text))
    except (UnicodeEncodeError, RecursionError, msgspec.DecodeError):
        return len(compacted(text))
    return len(written) if written.isascii() else len(written.decode())
