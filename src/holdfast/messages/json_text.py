"""JSON encoding and decoding that survives model output.

Lone surrogates, which UTF-8 cannot encode, are kept. Integers too long for Python's decimal conversion
become hexadecimal text.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

_Type = TypeVar("_Type")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_preparing = threading.Lock()
_MAX_BITS = 2_000
"""Longest integer in bits that Python always converts: its digit limit may be set as low as 640."""
_MAX_DEPTH = 200
"""Maximum nesting; a fixed limit, because Python's own depends on its version and the call stack."""


def decodable(kind: type[_Type]) -> type[_Type]:
    """Prepares a type for decoding, usually where it is defined.

    msgspec would do so at the first use, and two threads that come at once end the process: one of them finds the
    fields half prepared.
    """
    with _preparing:
        msgspec.json.Decoder(kind)
    return kind


def to_json(value: Any) -> str:
    """Encodes as compact JSON; non-ASCII characters are not escaped."""
    try:
        return _encode(value).decode()
    except ValueError:
        return json.dumps(_writable(value), ensure_ascii=False, separators=(",", ":"))


def _writable(value: Any) -> Any:
    match value:
        case dict():
            return {key: _writable(child) for key, child in value.items()}
        case list() | tuple():
            return [_writable(child) for child in value]
        case int() if value.bit_length() > _MAX_BITS:
            return hex(value)
    return value


def from_json(text: str) -> Any:
    """Decodes JSON text; raises ValueError if it is invalid or nested too deeply."""
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
    return len(text) > _MAX_DEPTH and text.count("{") + text.count("[") > _MAX_DEPTH


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH + 1):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def compact_json(text: str) -> str:
    """Re-encodes JSON text compactly; returns other text unchanged."""
    try:
        return to_json(from_json(text))
    except ValueError:
        return text


def compact_json_length(text: str) -> int:
    """Returns the length of `compact_json(text)`, usually without building the string."""
    if _may_be_deep(text):
        return len(compact_json(text))
    try:
        written = _encode(_decode(text))
    except (UnicodeEncodeError, RecursionError, msgspec.DecodeError):
        return len(compact_json(text))
    return len(written) if written.isascii() else len(written.decode())
