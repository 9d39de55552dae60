"""Items of a structured answer: texts, table rows, and the sections' own forms of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from .structured import CompletedWork, RemovedItem, unescape_item
from .structured_headings import is_empty, is_empty_value

_PIPE = re.compile(r"(\\*)\|")
LABEL = re.compile(
    r"(?i)(?P<bold>\*\*|__)?\s*(?:(?P<working>(?:currently )?working on|in progress|current focus)"
    r"|(?P<next>(?:immediate )?next (?:steps?|action))|last completed|most recently completed)\s*"
    r"(?(bold)(?:[:：]\s*(?P=bold)|(?P=bold)\s*[:：])|[:：])\s*(?P<text>.*)$"
)
_DASH_SEPARATOR = re.compile(r"\s+(?:[—–-]|→|->|=>|\|)\s+")
_REASON_SEPARATORS = (
    re.compile(r"\s*(?:→|->|=>)\s*"),
    re.compile(r"\s+[—–-]\s+"),
    re.compile(r":\s+|\s+(?=because\b)"),
)
_ACTION_SUFFIX = re.compile(r"(.+?)\s*\(([\w ]{2,24})\)$")
_MAX_SUBJECT = 60


class ParsedItem(msgspec.Struct):
    """An item as it is written in the answer."""

    text: str = ""
    checked: bool = False
    cells: tuple[str, ...] = ()
    """Cells, if the item is a table row."""
    prefix: str = ""
    """Title of the heading inside the section that the item is below."""

    @property
    def is_empty(self) -> bool:
        """Whether it stands for no value; a sentence like "no errors" may be one cell of several."""
        values = [text for text in self.cells or (self.text,) if text and not is_empty_value(text)]
        return not values or (len(values) == 1 and is_empty(values[0]))

    def joined(self, between: str) -> str:
        return between.join(filter(None, self.cells)) if self.cells else self.text

    def prefixed(self, text: str) -> str:
        """Returns the text of the item after the prefix, and a label of the current state before it."""
        label = LABEL.match(text)
        start = label.start("text") if label else 0
        stated = self.prefix and not is_empty(text[start:] or "None")
        return f"{text[:start]}{self.prefix}: {text[start:]}" if stated else text


def table_cells(row: str) -> tuple[str, ...]:
    """Splits a row into cells; a pipe after an odd number of backslashes is text."""
    cells, start = [""], 0
    for found in _PIPE.finditer(row):
        cells[-1] += row[start : found.start()] + "\\" * (len(found[1]) // 2)
        start = found.end()
        if len(found[1]) % 2:
            cells[-1] += "|"
        else:
            cells.append("")
    cells[-1] += row[start:]
    stripped = [cell.strip() for cell in cells]
    return tuple(stripped[not stripped[0] : len(stripped) - (not stripped[-1])])


def clean_text(text: str, empty: Callable[[str], bool] = is_empty) -> str:
    return "" if empty(text) else unescape_item(text, empty)


def item_texts(entries: Iterable[ParsedItem], between: str = ": ") -> tuple[str, ...]:
    return tuple(entry.prefixed(clean_text(entry.joined(between))) for entry in entries)


def completed_work(entry: ParsedItem) -> CompletedWork:
    """Returns the row of an item; a heading above it stands at the end, so that rows of one subject stay comparable."""
    row = _completed_row(entry)
    above = f"({entry.prefix})" if entry.prefix and row.description else entry.prefix
    return CompletedWork(row.subject, row.action, " ".join(filter(None, (row.description, above))))


def _completed_row(entry: ParsedItem) -> CompletedWork:
    if entry.cells:
        subject, action, *rest = (*(clean_text(cell, is_empty_value) for cell in entry.cells), "", "")
        return CompletedWork(subject, action, " | ".join(filter(None, rest)))
    parts = _DASH_SEPARATOR.split(entry.text, maxsplit=2)
    if len(parts) == 1:
        subject, colon, description = entry.text.partition(": ")
        parts = [subject, description] if colon and len(subject) <= _MAX_SUBJECT else parts
    subject, description = parts[0].strip("* "), parts[-1] if len(parts) > 1 else ""
    if len(parts) == 3:
        return CompletedWork(subject, parts[1], description)
    acted = _ACTION_SUFFIX.match(subject)
    if acted:
        return CompletedWork(acted[1].strip("* "), acted[2], description)
    return CompletedWork(subject, "", description)


def removed_item(entry: ParsedItem) -> RemovedItem:
    text = entry.prefixed(entry.joined(" → "))
    for why in _REASON_SEPARATORS:
        if found := list(why.finditer(text)):
            return RemovedItem(text[: found[-1].start()].strip(), text[found[-1].end() :].strip())
    return RemovedItem(text, "")
