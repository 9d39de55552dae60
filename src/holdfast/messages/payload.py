"""Reading loose JSON, and the one convention that formats without an error flag need."""

from __future__ import annotations

from typing import Any

import msgspec

from .parts import Json, Media, Opaque, Text, ToolResult

ERROR_MARK = "[tool error] "
"""How a failed call looks in formats that have no flag for it: the model still sees that it failed."""


def string(value: Any) -> str:
    """Text as it is; nothing for None; anything else as compact JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def drop_none(value: Json) -> Json:
    return {key: item for key, item in value.items() if item is not None}


def data_url(url: str) -> tuple[str | None, str | None]:
    """The mime type and base64 data of a data URL; (None, None) for any other."""
    if not url.startswith("data:"):
        return None, None
    head, _, data = url[5:].partition(",")
    return head.removesuffix(";base64") or None, data


def copy_json(value: Any) -> Any:
    """A deep copy of plain JSON, many times faster than copy.deepcopy."""
    if type(value) is dict:
        return {key: item if type(item) is str else copy_json(item) for key, item in value.items()}
    if type(value) is list:
        return [item if type(item) is str else copy_json(item) for item in value]
    return value


ResultParts = tuple[Text | Media | Opaque, ...]


def read_error(parts: ResultParts) -> tuple[bool, ResultParts]:
    """Tell a failed result by its mark, and take the mark off."""
    if parts and isinstance(first := parts[0], Text) and first.text.startswith(ERROR_MARK):
        return True, (Text(first.text[len(ERROR_MARK) :]), *parts[1:])
    return False, parts


def flag_error(result: ToolResult) -> ResultParts:
    """The parts of a result with its error mark on them."""
    if not result.is_error:
        return result.content
    if result.content and isinstance(first := result.content[0], Text):
        return (Text(ERROR_MARK + first.text), *result.content[1:])
    return (Text(ERROR_MARK), *result.content)
