"""A structured summary read from what a model wrote, which is seldom exactly what it was asked for (L6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from .structured import (
    BARE_LEVEL,
    CLOSING,
    FENCE,
    LEFT_OUT,
    NOTHING,
    Heading,
    Removal,
    SectionName,
    Sections,
    Work,
    heading_of,
    unguarded,
)
from .thoughts import without_thoughts

_NOISE = re.compile(r"\s*(?:(?:[-*_]\s*){3,}|</?summary>)\s*$")
_BULLET = re.compile(r"(\s*)(?:[-*+–]\s+|[•·▪◦‣]\s*|\d{1,3}[.)]\s+)(.*)$")
_CHECK = re.compile(r"(?:\[([ xX✓✔]?)\]|([☐⬜🔲])|[✅☑✔]️?)\s*(.*)$")
_RULER = re.compile(r":?-+:?")
_PIPE = re.compile(r"(\\*)\|")
_LABEL = re.compile(
    r"(?i)(?P<bold>\*\*|__)?\s*(?:(?P<working>(?:currently )?working on|in progress|current focus)"
    r"|last completed|most recently completed)\s*"
    r"(?(bold)(?:[:：]\s*(?P=bold)|(?P=bold)\s*[:：])|[:：])\s*(?P<told>.*)$"
)
_DASHED = re.compile(r"\s+(?:[—–-]|→|->|=>|\|)\s+")
_WHY = (re.compile(r"\s*(?:→|->|=>)\s*"), re.compile(r"\s+[—–-]\s+"), re.compile(r":\s+|\s+(?=because\b)"))
_ACTED = re.compile(r"(.+?)\s*\(([\w ]{2,24})\)$")
_SHORT = 60
_DONE = "Done"


class _Entry(msgspec.Struct):
    """One item as it stands in the text."""

    text: str = ""
    checked: bool = False
    cells: tuple[str, ...] = ()
    """Of a table row."""

    def joined(self, between: str) -> str:
        return between.join(filter(None, self.cells)) if self.cells else self.text


def read_sections(text: str) -> Sections | None:
    """The sections of an answer; None where it has no section of a summary at all."""
    reader = _Reader()
    reader.read(without_thoughts(text).splitlines())
    if not reader.known:
        return None
    pending, errors = reader.found("pending"), reader.found("errors")
    working, last, others = _state(reader.found("state"), reader.found("progress"))
    done = [Work(text, _DONE) for text in _texts(entry for entry in pending if entry.checked)]
    return Sections(
        completed=(*map(_work, reader.found("completed")), *done),
        decisions=_texts(reader.found("decisions")),
        working_on=working,
        last_completed=last,
        pending=_texts(entry for entry in pending if not entry.checked),
        errors=_texts(errors, " → "),
        constraints=_texts(reader.found("constraints")),
        context=(*_texts(reader.found("context")), *others),
        removed=tuple(map(_removal, reader.found("removed"))),
        left_out=reader.left_out,
    )


class _Reader:
    """Goes through the lines once and sorts entries into sections."""

    def __init__(self) -> None:
        self.known: set[SectionName] = set()
        self.left_out = 0
        self._entries: dict[SectionName, list[_Entry]] = {}
        self._section: SectionName | None = None
        self._level = self._strongest = BARE_LEVEL
        self._open: _Entry | None = None
        self._indent = 0
        self._ruled = False

    def found(self, section: SectionName) -> list[_Entry]:
        """What a section holds; what only says that there is nothing is not there."""
        entries = self._entries.get(section, [])
        return [entry for entry in entries if any(map(_cleaned, entry.cells or (entry.text,)))]

    def read(self, lines: Sequence[str]) -> None:
        at, wrapped = 0, False
        while at < len(lines):
            line, at = lines[at], at + 1
            if fence := FENCE.match(line):
                end = _closing(lines, at, fence[1])
                if self._section in (None, "title"):
                    wrapped = True
                elif end is not None:
                    self._quote(lines[at:end])
                    at = end + 1
                elif wrapped and not fence[2]:
                    return
            elif not ((heading := heading_of(line)) and self._begins(heading)):
                self._take(line)

    def _begins(self, heading: Heading) -> bool:
        """Does it begin a section? Inside a copied task only what stands as high does; a bare name only among such."""
        if self._section == "task" and heading.level > self._level:
            return False
        if heading.level == BARE_LEVEL and self._strongest < BARE_LEVEL:
            return False
        if heading.section is None and heading.level > self._level and self._section != "title":
            self._add(_Entry(heading.title))
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
        if self._section in (None, "task", "title") or CLOSING.fullmatch(line.strip()):
            return
        if counted := LEFT_OUT.fullmatch(bare):
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
            self._add(_Entry(bare))

    def _bullet(self, indent: int, text: str) -> None:
        check = _CHECK.match(text) if self._section in ("pending", "completed") else None
        if self._open and not check and 0 <= self._indent < indent - 1:
            self._open.text += f" {text}" if self._open.text.endswith((":", "：")) else f"; {text}"
            return
        if self._indent < 0:
            self._indent = indent
        if not check:
            self._open = self._add(_Entry(text))
        elif check[3]:
            self._open = self._add(_Entry(check[3], checked=not check[2] and check[1] not in ("", " ")))

    def _row(self, cells: tuple[str, ...]) -> None:
        entries = self._entries.get(self._section or "context", [])
        self._open = None
        if all(map(_RULER.fullmatch, cells)):
            if not self._ruled and entries and entries[-1].cells:
                entries.pop()
            self._ruled = True
        elif self._ruled or [cell.casefold() for cell in cells[1:3]] != ["action", "description"]:
            self._add(_Entry(cells=cells))

    def _quote(self, lines: Sequence[str]) -> None:
        """A block of code belongs to the item before it."""
        text = " ".join(line.strip() for line in lines).strip()
        if self._section != "task" and text:
            if self._open:
                self._open.text += f" {text}"
            else:
                self._add(_Entry(text))

    def _add(self, entry: _Entry) -> _Entry:
        if self._section:
            self._entries.setdefault(self._section, []).append(entry)
        return entry


def _closing(lines: Sequence[str], start: int, fence: str) -> int | None:
    for at in range(start, len(lines)):
        found = FENCE.match(lines[at])
        if found and not found[2] and found[1].startswith(fence):
            return at
    return None


def _cells(row: str) -> tuple[str, ...]:
    """The cells of a row; a pipe after an odd number of backslashes belongs to the text."""
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


def _cleaned(text: str) -> str:
    return "" if NOTHING.fullmatch(text) else unguarded(text)


def _texts(entries: Iterable[_Entry], between: str = ": ") -> tuple[str, ...]:
    return tuple(_cleaned(entry.joined(between)) for entry in entries)


def _work(entry: _Entry) -> Work:
    if entry.cells:
        subject, action, *rest = (*map(_cleaned, entry.cells), "", "")
        return Work(subject, action, " | ".join(filter(None, rest)))
    parts = _DASHED.split(entry.text, maxsplit=2)
    if len(parts) == 1:
        subject, colon, told = entry.text.partition(": ")
        parts = [subject, told] if colon and len(subject) <= _SHORT else parts
    subject, description = parts[0].strip("*_ "), parts[-1] if len(parts) > 1 else ""
    if len(parts) == 3:
        return Work(subject, parts[1], description)
    acted = _ACTED.match(subject)
    return Work(acted[1].strip("*_ "), acted[2], description) if acted else Work(subject, "", description)


def _state(state: Iterable[_Entry], progress: Iterable[_Entry]) -> tuple[str, str, list[str]]:
    """What is worked on, what was completed last, and what else is told about the state."""
    working, last, others, labelled = list(_texts(progress)), list[str](), list[str](), False
    for text in _texts(state):
        found = _LABEL.match(text)
        labelled |= bool(found and found["working"])
        if found and (told := _cleaned(found["told"])):
            (working if found["working"] else last).append(told)
        elif not found:
            others.append(text)
    if not labelled and not working:
        working, others = others, []
    return "; ".join(working), "; ".join(last), others


def _removal(entry: _Entry) -> Removal:
    text = entry.joined(" → ")
    for why in _WHY:
        if found := list(why.finditer(text)):
            return Removal(text[: found[-1].start()].strip(), text[found[-1].end() :].strip())
    return Removal(text, "")
