"""Reads data in a model's answer: one JSON object, alone, in a fence or beside a text, with common mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

_MAX_OBJECTS = 200
_OBJECT = re.compile(r'\{(?=\s*["“„}])')
_LINE_BEGIN = re.compile(r"(?:^|\n)[ \t]*\Z")
_STRING = r'"(?:[^"\\]|\\.)*"'
_QUOTES = re.compile(rf"(?s)({_STRING})|[“”„‟]")
_COMMAS = re.compile(rf"(?s)({_STRING})|,(?=\s*[}}\]])")
_decoder = json.JSONDecoder(strict=False)


class FoundObject(NamedTuple):
    """The object in an answer, or why there is none."""

    value: dict[str, Any] | None
    start: int
    """Where it begins, or where an object begins that cannot be used; -1 if there is none."""
    end: int
    problem: str = ""
    broken: bool = False
    """Whether an object begins there that cannot be decoded."""


def find_object(text: str, is_known: Callable[[str], bool]) -> FoundObject:
    """Finds the first JSON object with a key that is known, or an empty one on a line of its own."""
    found = FoundObject(None, -1, len(text), "there is no JSON object in it")
    for place in islice(_OBJECT.finditer(text), _MAX_OBJECTS):
        start, starts_line = place.start(), bool(_LINE_BEGIN.search(text, 0, place.start()))
        try:
            value, end = _decode_object(text, start)
        except (ValueError, RecursionError) as error:
            if starts_line and not found.broken:
                found = FoundObject(None, start, len(text), f"its JSON cannot be read: {error}", broken=True)
            continue
        if any(map(is_known, value)) or (starts_line and not value):
            return FoundObject(value, start if found.start < 0 else found.start, end)
        if starts_line and found.start < 0:
            found = FoundObject(None, start, len(text), "its JSON object has none of the fields that were asked for")
    return found


def _decode_object(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Returns the object that begins here and its end; after a fix, the end is that of the text."""
    try:
        return _decoder.raw_decode(text, start)
    except ValueError:
        return _decoder.raw_decode(fix_json(text[start:]))[0], len(text)


def fix_json(text: str) -> str:
    """Replaces typographic quotes and removes trailing commas outside of strings."""
    quoted = _QUOTES.sub(lambda found: found[1] or '"', text)
    return _COMMAS.sub(lambda found: found[1] or "", quoted)


def string_field(text: str, name: str) -> str:
    """Returns a field of JSON that is broken elsewhere."""
    found = re.search(rf'(?s)"{name}"\s*:\s*({_STRING})(?=\s*(?:[,}}]|\Z))', fix_json(text))
    try:
        return str(_decoder.decode(found[1])).strip() if found else ""
    except ValueError:
        return ""


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of an object in the form that all providers take: every property required, and no other."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def list_schema(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


TEXT_SCHEMA = {"type": "string"}
