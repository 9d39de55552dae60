"""Reading loose JSON, and the conventions that formats with less room than others need."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInput
from .jsontext import to_json
from .parts import Json, Media, Opaque, Text, ToolResult
from .sdk import dump

ERROR_MARK = "[tool error] "
"""How a failed call looks in formats that have no flag for it: the model still sees that it failed."""
ResultParts = tuple[Text | Media | Opaque, ...]

_AS_IT_IS = frozenset((str, int, float, bool, type(None)))
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def string(value: Any) -> str:
    """Text as it is; nothing for None; anything else as compact JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else to_json(value)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def drop_none(value: Json) -> Json:
    return {key: item for key, item in value.items() if item is not None}


def read_data_url(url: str) -> tuple[str | None, str | None]:
    """The mime type and base64 data of a data URL; (None, None) for any other."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None, None
    return head[len("data:") : -len(";base64")] or None, data


def data_url(media: Media, mime: str) -> str | None:
    """The bytes of media as a data URL, of this mime type where it has none of its own."""
    return f"data:{media.mime or mime};base64,{media.data}" if media.data else None


_MIMES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/octet-stream"}


def mime_of(media: Media) -> str:
    """The type of media: as given, or as its address ends, or the usual one of its kind."""
    return media.mime or mimetypes.guess_type(media.url or media.name or "")[0] or _MIMES[media.kind]


def copy_json(value: Any) -> Any:
    """A deep copy of plain JSON, many times faster than copy.deepcopy; SDK objects inside become JSON."""
    try:
        return _copied(value)
    except RecursionError:
        raise InvalidInput("A message is nested too deep to be read: check what is in it.") from None


def _copied(value: Any) -> Any:
    if type(value) is dict:
        copy = value.copy()
        for key, item in value.items():
            if type(item) is not str and type(item) not in _AS_IT_IS:
                copy[key] = _copied(item)
        return copy
    if isinstance(value, list | tuple):
        return [item if type(item) in _AS_IT_IS else _copied(item) for item in value]
    if isinstance(value, Mapping):
        return _copied(dict(value))
    return dump(value) if hasattr(value, "model_dump") else value


def whole_characters(value: Any) -> Any:
    """Plain JSON with a sign in place of each half of a character: a model's piece may end inside an emoji."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {whole_characters(key): whole_characters(item) for key, item in value.items()}
    return value


def fitting_id(call_id: str, longest: int, *, strict: bool = False) -> str:
    """An id that a format takes: no longer than this, and if strict only letters, digits, `_` and `-`.

    A digest takes the place of what had to go, so that two calls never come to share an id.
    """
    if 0 < len(call_id) <= longest and not (strict and _ILLEGAL.search(call_id)):
        return call_id
    legal = _ILLEGAL.sub("_", call_id) if strict else call_id
    digest = hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{legal[: longest - 9] or 'call'}-{digest}"


def read_error(parts: ResultParts) -> tuple[bool, ResultParts]:
    """Tell a failed result by its mark, and take the mark off."""
    if parts and isinstance(first := parts[0], Text) and first.text.startswith(ERROR_MARK):
        said = first.text[len(ERROR_MARK) :]
        return True, (Text(said), *parts[1:]) if said else parts[1:]
    return False, parts


def flag_error(result: ToolResult) -> ResultParts:
    """The parts of a result with its error mark on them."""
    if not result.is_error:
        return result.content
    if result.content and isinstance(first := result.content[0], Text):
        return (Text(ERROR_MARK + first.text), *result.content[1:])
    return (Text(ERROR_MARK), *result.content)
