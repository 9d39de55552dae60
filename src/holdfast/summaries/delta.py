"""A summariser's answer where a state is kept: a replacement summary, and what became different (W5).

What code can mend, it mends; what it cannot is told in one line, to be asked for once more.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

import msgspec

from ..messages.jsontext import to_json
from .fences import fenced
from .state import CAPS, Change, Delta, Status
from .structured import folded
from .thoughts import without_thoughts

HEADINGS = ("KEY FACTS", "CONVERSATION FLOW", "OPEN THREADS")
LONGEST_ITEM = 500
MOST_ITEMS = 50
_STATUSES: dict[str, Status] = {"completed": "done", "finished": "done", "pending": "open", "todo": "open"}
"""What models say for a status, beside the words that they are given."""
_KNOWN = {"summary", "state_delta", "removed", *CAPS}
_TRIES = 200
_LONGEST_PROBLEM = 300
_OBJECT = re.compile(r'\{(?=\s*["“„}])')
_LINE_BEGIN = re.compile(r"(?:^|\n)[ \t]*\Z")
_FENCE_BEFORE = re.compile(r"`{3,}[\w-]*\s*\Z")
_FENCE_AFTER = re.compile(r"\A\s*`{3,}[ \t]*")
_BARE_JSON = re.compile(r"(?:`{3,}[\w-]*\s*)?(?:\{|\[\s*[\[\]{\"])")
_HEADED = re.compile(rf"(?im)^[^\w\n]*(?:{'|'.join(HEADINGS)})\b")
_STRING = r'"(?:[^"\\]|\\.)*"'
_QUOTES = re.compile(rf"(?s)({_STRING})|[“”„‟]")
_COMMAS = re.compile(rf"(?s)({_STRING})|,(?=\s*[}}\]])")
_SUMMARY = re.compile(rf'(?s)"summary"\s*:\s*({_STRING})(?=\s*(?:[,}}]|\Z))')
_decoder = json.JSONDecoder(strict=False)


class StateAnswer(msgspec.Struct, frozen=True):
    """What was understood of an answer."""

    summary: str
    delta: Delta | None
    problem: str = ""
    """What is wrong with it, for the model to put right."""


class _Answer(msgspec.Struct):
    summary: str
    state_delta: Delta


def schema() -> str:
    """What an answer looks like, as a JSON schema for the prompt."""
    return to_json(msgspec.json.schema(_Answer))


def repair_prompt(problem: str, text: str) -> str:
    """Asks once more for an answer that could not be used, quoting it."""
    return (
        f"Your last answer could not be used: {problem}\n\n{fenced('last-answer', text)}\n\n"
        "Give the same answer again, put right: one JSON object with `summary` (a string) and `state_delta`, and "
        f"nothing before or after it. It has to match this JSON schema:\n{schema()}"
    )


def read_answer(text: str) -> StateAnswer:
    """Summary and delta: in one JSON object, or as text with a JSON object beside it."""
    text = without_thoughts(text)
    broken, strange, problem = None, None, "there is no JSON object in it"
    for found in islice(_OBJECT.finditer(text), _TRIES):
        start, on_its_own = found.start(), bool(_LINE_BEGIN.search(text, 0, found.start()))
        try:
            value, end = _decoded(text, start)
        except (ValueError, RecursionError) as trouble:
            if broken is None and on_its_own:
                broken, problem = start, f"its JSON cannot be read: {trouble}"
            continue
        if _KNOWN & value.keys() or (on_its_own and not value):
            return _understood(value, _beside(text, start, end) if broken is None else _in_broken(text, broken))
        if on_its_own and strange is None and broken is None:
            strange, problem = start, "its JSON object has neither `summary` nor `state_delta`"
    if broken is not None:
        summary = _in_broken(text, broken)
    else:
        summary = text.strip() if strange is None or _HEADED.match(text.lstrip()) else _beside(text, strange, len(text))
    return StateAnswer("" if _BARE_JSON.match(summary) else summary, None, _one_line(problem))


def _decoded(text: str, start: int) -> tuple[dict[str, Any], int]:
    """The object that begins here and where it ends; of one that had to be mended, the end is that of the text."""
    try:
        return _decoder.raw_decode(text, start)
    except ValueError:
        return _decoder.raw_decode(_mended(text[start:]))[0], len(text)


def _mended(text: str) -> str:
    """Typographic quotes become plain ones, and commas before a closing bracket go; strings stay as they are."""
    quoted = _QUOTES.sub(lambda found: found[1] or '"', text)
    return _COMMAS.sub(lambda found: found[1] or "", quoted)


def _beside(text: str, start: int, end: int) -> str:
    """The summary before or after a JSON object; a single line there is no more than a remark."""
    for part in (_FENCE_BEFORE.sub("", text[:start]).strip(), _FENCE_AFTER.sub("", text[end:]).strip()):
        if headed := _HEADED.search(part):
            return part[headed.start() :]
        if "\n" in part:
            return part
    return ""


def _in_broken(text: str, start: int) -> str:
    """The summary inside JSON that is broken elsewhere, or else the one before it."""
    found = _SUMMARY.search(_mended(text[start:]))
    try:
        inside = str(_decoder.decode(found[1])).strip() if found else ""
    except ValueError:
        inside = ""
    return inside or _beside(text, start, len(text))


def _understood(value: dict[str, Any], beside: str) -> StateAnswer:
    told = value.get("summary")
    summary = told.strip() if isinstance(told, str) and told.strip() else beside
    if "summary" in value and "state_delta" not in value:
        return StateAnswer(summary, None, "`state_delta` is missing")
    try:
        delta = _trimmed(msgspec.convert(_regular(value.get("state_delta", value)), Delta))
    except msgspec.ValidationError as trouble:
        return StateAnswer(summary, None, _one_line(str(trouble).replace("`$", "`state_delta")))
    return StateAnswer(summary, delta, "" if summary else "`summary` is missing or is no text")


def _regular(delta: Any) -> Any:
    """A list may hold plain texts, or be null; a removal may be an object; a status may be another word."""
    if not isinstance(delta, dict):
        return {} if delta is None else delta
    lists = {name: delta[name] for name in (*CAPS, "removed") if delta.get(name) is not None}
    for name, entries in lists.items():
        if isinstance(entries, list):
            lists[name] = [_removal(entry) if name == "removed" else _entry(entry) for entry in entries[:MOST_ITEMS]]
    return lists


def _removal(entry: Any) -> Any:
    return entry.get("id") or entry.get("text") if isinstance(entry, dict) else entry


def _entry(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return {"text": entry}
    status = entry.get("status")
    if isinstance(status, str):
        word = re.sub(r"[\s-]+", "_", status.strip().lower())
        status = _STATUSES.get(word, word)
    return {**{key: told for key, told in entry.items() if told is not None}, "status": status}


def _trimmed(delta: Delta) -> Delta:
    """Entries on one line each and of bearable length; those that say nothing are no entries."""
    lists = {
        name: tuple(
            Change(_cut(change.text), change.id.strip(), change.status)
            for change in getattr(delta, name)
            if change.text.strip() or change.id.strip()
        )
        for name in CAPS
    }
    return Delta(removed=tuple(filter(None, map(_cut, delta.removed))), **lists)


def _cut(text: str) -> str:
    text = folded(text)
    return text if len(text) <= LONGEST_ITEM else text[: LONGEST_ITEM - 1] + "…"


def _one_line(text: str) -> str:
    return folded(text)[:_LONGEST_PROBLEM]
