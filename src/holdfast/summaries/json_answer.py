"""Reads data in a model's answer: one JSON object, alone, in a fence or beside a text, with common mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from .structured import LABELS, OVERVIEW, escape, escape_cell, escape_item, is_no_line, one_line
from .structured_headings import parse_heading

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


_OBJECT_BEGIN = re.compile(r"\s*(?:`{3,}\w*\s*)?\{")


def as_markdown(text: str) -> str:
    """Returns an answer of one JSON object as the headed Markdown with the same content; any other one as it is."""
    found = find_object(text, _is_field) if _OBJECT_BEGIN.match(text) else None
    if not (found and found.value):
        return text
    state = {name: found.value.pop(name) for name in LABELS if name in found.value}
    fields = {**({"current_state": state} if state else {}), **found.value}
    return "\n\n".join(f"### {field_title(name)}\n" + "\n".join(_field(name, value)) for name, value in fields.items())


def _is_field(name: str) -> bool:
    heading = parse_heading(f"### {field_title(name)}")
    return name in LABELS or bool(heading and heading.section)


def field_title(name: str) -> str:
    return one_line(name.replace("_", " ")).title() or OVERVIEW


def _field(name: str, value: object) -> Iterator[str]:
    """Yields the lines of a field: labels of the state, items, or rows for items of several texts."""
    if isinstance(value, dict):
        yield from (f"- {LABELS.get(key, one_line(key))}: {one_line(str(text))}" for key, text in value.items() if text)
        return
    for entry in value if isinstance(value, list) else str(value or "").splitlines():
        fields = dict(entry) if isinstance(entry, dict) else {"text": entry}
        if "title" in fields and "text" in fields:
            yield from (
                f"#### {one_line(str(fields['title']))}",
                *(escape(line, is_no_line) for line in str(fields["text"]).splitlines()),
            )
            continue
        id = str(fields.pop("id", None) or "")
        texts = [one_line(str(text)) for text in fields.values() if text]
        if name == "removed" and id:
            texts = [f"→ {' '.join(texts)}"]
        marked = [f"[{id}] {texts[0] if texts else ''}".rstrip(), *texts[1:]] if id else texts
        if len(marked) > 1:
            yield f"| {' | '.join(map(escape_cell, marked))} |"
        elif marked:
            yield f"- {escape_item(marked[0])}" if id else f"- {marked[0]}"


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of an object in the form that all providers take: every property required, and no other."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def list_schema(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


TEXT_SCHEMA = {"type": "string"}
