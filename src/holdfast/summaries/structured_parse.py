"""Parses a structured summary from a model's answer, tolerating other headings, bullets, tables and fences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from .structured import (
    BARE_LEVEL,
    CLOSING_LINE,
    EMPTY_ITEM,
    FENCE,
    LEFT_OUT_LINE,
    CompletedWork,
    Heading,
    RemovedItem,
    SectionName,
    SummarySections,
    parse_heading,
    unescape_item,
)
from .summarizer import strip_reasoning

_NOISE = re.compile(r"\s*(?:(?:[-*_]\s*){3,}|</?summary>)\s*$")
_BULLET = re.compile(r"(\s*)(?:[-*+–]\s+|[•·▪◦‣]\s*|\d{1,3}[.)]\s+)(.*)$")
_CHECKBOX = re.compile(r"(?:\[([ xX✓✔]?)\]|([☐⬜🔲])|[✅☑✔]️?)\s*(.*)$")
_RULER = re.compile(r":?-+:?")
_PIPE = re.compile(r"(\\*)\|")
_LABEL = re.compile(
    r"(?i)(?P<bold>\*\*|__)?\s*(?:(?P<working>(?:currently )?working on|in progress|current focus)"
    r"|last completed|most recently completed)\s*"
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
_DONE = "Done"


class _ParsedItem(msgspec.Struct):
    """An item as it is written in the answer."""

    text: str = ""
    checked: bool = False
    cells: tuple[str, ...] = ()
    """Cells, if the item is a table row."""

    def joined(self, between: str) -> str:
        return between.join(filter(None, self.cells)) if self.cells else self.text


def parse_sections(text: str) -> SummarySections | None:
    """Returns the sections of an answer; None if it has no known section."""
    reader = _SectionParser()
    reader.read(strip_reasoning(text).splitlines())
    if not reader.known:
        return None
    pending, errors = reader.found("pending"), reader.found("errors")
    working, last, others = _current_state(reader.found("state"), reader.found("progress"))
    done = [CompletedWork(text, _DONE) for text in _texts(entry for entry in pending if entry.checked)]
    return SummarySections(
        completed=(*map(_completed_work, reader.found("completed")), *done),
        decisions=_texts(reader.found("decisions")),
        working_on=working,
        last_completed=last,
        pending=_texts(entry for entry in pending if not entry.checked),
        errors=_texts(errors, " → "),
        constraints=_texts(reader.found("constraints")),
        context=(*_texts(reader.found("context")), *others),
        removed=tuple(map(_removed_item, reader.found("removed"))),
        left_out=reader.left_out,
    )


class _SectionParser:
    """Reads the lines once and collects items by section."""

    def __init__(self) -> None:
        self.known: set[SectionName] = set()
        self.left_out = 0
        self._entries: dict[SectionName, list[_ParsedItem]] = {}
        self._section: SectionName | None = None
        self._level = self._strongest = BARE_LEVEL
        self._open: _ParsedItem | None = None
        self._indent = 0
        self._ruled = False

    def found(self, section: SectionName) -> list[_ParsedItem]:
        """Returns the items of a section, without those that only say "none"."""
        entries = self._entries.get(section, [])
        return [entry for entry in entries if any(map(_clean, entry.cells or (entry.text,)))]

    def read(self, lines: Sequence[str]) -> None:
        at, wrapped = 0, False
        while at < len(lines):
            line, at = lines[at], at + 1
            if fence := FENCE.match(line):
                end = _closing_fence(lines, at, fence[1])
                if self._section in (None, "title"):
                    wrapped = True
                elif end is not None:
                    self._quote(lines[at:end])
                    at = end + 1
                elif wrapped and not fence[2]:
                    return
            elif not ((heading := parse_heading(line)) and self._begins(heading)):
                self._take(line)

    def _begins(self, heading: Heading) -> bool:
        """Starts a section, unless the heading is nested in a copied task, or bare among marked headings."""
        if self._section == "task" and heading.level > self._level:
            return False
        if heading.level == BARE_LEVEL and self._strongest < BARE_LEVEL:
            return False
        if heading.section is None and heading.level > self._level and self._section != "title":
            self._add(_ParsedItem(heading.title))
            return True
        self._section, self._level, self._ruled = heading.section or "context", heading.level, False
        self._open, self._indent = None, -1
        if heading.section not in (None, "task", "title", "removed"):
            self.known.add(self._section)
            self._strongest = min(self._strongest, heading.level)
        if heading.rest:
            self._take(heading.rest)
        return True

    def _take(self, line: str) -> None:
        bullet = _BULLET.match(line)
        bare = bullet[2].strip() if bullet else line.strip()
        if self._section in (None, "task", "title") or CLOSING_LINE.fullmatch(line.strip()):
            return
        if counted := LEFT_OUT_LINE.fullmatch(bare):
            self.left_out = max(self.left_out, int(counted[1].replace(",", "")))
        elif not bare or _NOISE.match(line):
            self._open = None
        elif bullet:
            self._bullet(len(bullet[1]), bare)
        elif bare.startswith("|") or (self._section == "completed" and "|" in bare):
            self._row(_cells(bare))
        elif self._open:
            self._open.text += f" {bare}"
        else:
            self._add(_ParsedItem(bare))

    def _bullet(self, indent: int, text: str) -> None:
        check = _CHECKBOX.match(text) if self._section in ("pending", "completed") else None
        if self._open and not check and 0 <= self._indent < indent - 1:
            self._open.text += f" {text}" if self._open.text.endswith((":", "：")) else f"; {text}"
            return
        if self._indent < 0:
            self._indent = indent
        if not check:
            self._open = self._add(_ParsedItem(text))
        elif check[3]:
            self._open = self._add(_ParsedItem(check[3], checked=not check[2] and check[1] not in ("", " ")))

    def _row(self, cells: tuple[str, ...]) -> None:
        entries = self._entries.get(self._section or "context", [])
        self._open = None
        if all(map(_RULER.fullmatch, cells)):
            if not self._ruled and entries and entries[-1].cells:
                entries.pop()
            self._ruled = True
        elif self._ruled or [cell.casefold() for cell in cells[1:3]] != ["action", "description"]:
            self._add(_ParsedItem(cells=cells))

    def _quote(self, lines: Sequence[str]) -> None:
        """Appends a code block to the item before it."""
        text = " ".join(line.strip() for line in lines).strip()
        if self._section != "task" and text:
            if self._open:
                self._open.text += f" {text}"
            else:
                self._add(_ParsedItem(text))

    def _add(self, entry: _ParsedItem) -> _ParsedItem:
        if self._section:
            self._entries.setdefault(self._section, []).append(entry)
        return entry


def _closing_fence(lines: Sequence[str], start: int, fence: str) -> int | None:
    for at in range(start, len(lines)):
        found = FENCE.match(lines[at])
        if found and not found[2] and found[1].startswith(fence):
            return at
    return None


def _cells(row: str) -> tuple[str, ...]:
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


def _clean(text: str) -> str:
    return "" if EMPTY_ITEM.fullmatch(text) else unescape_item(text)


def _texts(entries: Iterable[_ParsedItem], between: str = ": ") -> tuple[str, ...]:
    return tuple(_clean(entry.joined(between)) for entry in entries)


def _completed_work(entry: _ParsedItem) -> CompletedWork:
    if entry.cells:
        subject, action, *rest = (*map(_clean, entry.cells), "", "")
        return CompletedWork(subject, action, " | ".join(filter(None, rest)))
    parts = _DASH_SEPARATOR.split(entry.text, maxsplit=2)
    if len(parts) == 1:
        subject, colon, description = entry.text.partition(": ")
        parts = [subject, description] if colon and len(subject) <= _MAX_SUBJECT else parts
    subject, description = parts[0].strip("*_ "), parts[-1] if len(parts) > 1 else ""
    if len(parts) == 3:
        return CompletedWork(subject, parts[1], description)
    acted = _ACTION_SUFFIX.match(subject)
    if acted:
        return CompletedWork(acted[1].strip("*_ "), acted[2], description)
    return CompletedWork(subject, "", description)


def _current_state(state: Iterable[_ParsedItem], progress: Iterable[_ParsedItem]) -> tuple[str, str, list[str]]:
    """Returns the current work, the last completed work, and the other items of the state."""
    working, last, others, labelled = list(_texts(progress)), list[str](), list[str](), False
    for text in _texts(state):
        found = _LABEL.match(text)
        labelled |= bool(found and found["working"])
        if found and (value := _clean(found["text"])):
            (working if found["working"] else last).append(value)
        elif not found:
            others.append(text)
    if not labelled and not working:
        working, others = others, []
    return "; ".join(working), "; ".join(last), others


def _removed_item(entry: _ParsedItem) -> RemovedItem:
    text = entry.joined(" → ")
    for why in _REASON_SEPARATORS:
        if found := list(why.finditer(text)):
            return RemovedItem(text[: found[-1].start()].strip(), text[found[-1].end() :].strip())
    return RemovedItem(text, "")
