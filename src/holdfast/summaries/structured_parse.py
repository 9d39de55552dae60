"""Parses a structured summary from a model's answer, tolerating other headings, bullets, tables and fences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from textwrap import dedent
from typing import Literal

from .json_answer import find_object
from .structured import (
    LAST_COMPLETED,
    NEXT_STEP,
    UNKNOWN_TASK,
    WORKING_ON,
    CompletedWork,
    SummarySections,
    escape_cell,
    escape_item,
    one_line,
)
from .structured_extra import OVERVIEW, escape_line, group_sections, is_code_block, nested_heading, read_line
from .structured_headings import (
    BARE_LEVEL,
    BOLD_LEVEL,
    BULLET,
    CAPITALS_LEVEL,
    CLOSING_LINE,
    LEFT_OUT_LINE,
    NOISE,
    NUMBERED_LEVEL,
    OWN_TITLE,
    TASK,
    Heading,
    SectionName,
    closing_fence,
    is_all_done,
    parse_heading,
    parse_plain_heading,
)
from .structured_items import LABEL, ParsedItem, clean_text, completed_work, item_texts, removed_item, table_cells
from .summarizer import FENCE, strip_reasoning

CHECKBOX = re.compile(r"(?:\[([ xX✓✔]?)\]|([☐⬜🔲])|[✅☑✔]️?)\s*(.*)$")
_RULER = re.compile(r":?-+:?")
_DONE = "Done"
_LINE_BREAK = " ⏎ "
"""Mark between the lines of a code block in an item."""
_MAX_PREFACE = 80
"""Characters of a single line before the first heading that introduces the answer and is not a part of it."""
_TITLE_LEVEL = 2
_State = dict[Literal["working", "last", "next", "other"], list[str]]


def parse_sections(text: str, *, prose: bool = False) -> SummarySections | None:
    """Returns the sections of an answer, written as headed Markdown or as one JSON object.

    An answer without a known section is None, or with `prose` a section of its own.
    """
    reader = _SectionParser()
    reader.read(as_markdown(strip_reasoning(text)).splitlines())
    if not (reader.known or prose):
        return None
    preface = reader.preface
    if reader.known and len(preface) == 1 and len(preface[0]) <= _MAX_PREFACE and "\n" not in preface[0]:
        preface = []
    extra = group_sections([(OVERVIEW, [*preface, *reader.overview]), *reader.extra])
    pending, errors = reader.found("pending"), reader.found("errors")
    ended = [entry for entry in pending if is_all_done(entry.text)]
    pending = [entry for entry in pending if entry not in ended]
    state = _current_state(reader)
    done = [CompletedWork(text, _DONE) for text in item_texts(entry for entry in pending if entry.checked)]
    return SummarySections(
        completed=(*map(completed_work, reader.found("completed")), *done),
        decisions=item_texts(reader.found("decisions")),
        working_on="; ".join(state["working"]),
        last_completed="; ".join(state["last"]),
        next_step="; ".join(state["next"]),
        pending=item_texts(entry for entry in pending if not entry.checked),
        errors=item_texts(errors, " → "),
        constraints=item_texts(reader.found("constraints")),
        context=(*item_texts(reader.found("context")), *state["other"], *item_texts(ended)),
        extra=extra,
        removed=tuple(map(removed_item, reader.found("removed"))),
        left_out=reader.left_out,
    )


_LABELS = {"working_on": WORKING_ON, "last_completed": LAST_COMPLETED, "next_step": NEXT_STEP}
_OBJECT_BEGIN = re.compile(r"\s*(?:`{3,}\w*\s*)?\{")


def as_markdown(text: str) -> str:
    """Returns an answer of one JSON object as the headed Markdown with the same content; any other one as it is."""
    found = find_object(text, _is_field) if _OBJECT_BEGIN.match(text) else None
    if not (found and found.value):
        return text
    state = {name: found.value.pop(name) for name in _LABELS if name in found.value}
    fields = {**({"current_state": state} if state else {}), **found.value}
    return "\n\n".join(f"### {field_title(name)}\n" + "\n".join(_field(name, value)) for name, value in fields.items())


def _is_field(name: str) -> bool:
    heading = parse_heading(f"### {field_title(name)}")
    return name in _LABELS or bool(heading and heading.section)


def field_title(name: str) -> str:
    return one_line(name.replace("_", " ")).title() or OVERVIEW


def _field(name: str, value: object) -> Iterator[str]:
    """Yields the lines of a field: labels of the state, items, or rows for items of several texts."""
    if isinstance(value, dict):
        yield from (
            f"- {_LABELS.get(key, one_line(key))}: {one_line(str(text))}" for key, text in value.items() if text
        )
        return
    for entry in value if isinstance(value, list) else str(value or "").splitlines():
        fields = dict(entry) if isinstance(entry, dict) else {"text": entry}
        if "title" in fields and "text" in fields:
            yield from (f"#### {one_line(str(fields['title']))}", *map(escape_line, str(fields["text"]).splitlines()))
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


def read_items(text: str) -> list[str]:
    """Returns the items of any summary, each on one line: first the state of the work, then what is open."""
    found = parse_sections(text, prose=True) or SummarySections()
    labelled = zip(_LABELS.values(), (found.working_on, found.last_completed, found.next_step), strict=True)
    lists = (found.pending, found.constraints, found.errors, found.decisions, found.context)
    rows = (row.text for row in found.completed)
    extra = (item for section in found.extra for item in section.items)
    texts = [*(f"{label}: {text}" for label, text in labelled if text), *chain(*lists), *rows, *extra]
    bare = (bullet[2] if (bullet := BULLET.match(item)) else item for item in map(one_line, texts))
    return [item for item in bare if re.search(r"\w", item)]


def rendered_part(text: str) -> str:
    """Returns a rendered summary without the excerpts that follow it: its own sections are deeper than its title."""
    lines, kept, at, inside = text.splitlines(), list[str](), 0, True
    if not any(map(_is_own_title, lines)):
        return text
    while at < len(lines):
        fence, heading = FENCE.match(lines[at]), parse_heading(lines[at])
        end = closing_fence(lines, at + 1, fence[1]) if fence else None
        if heading and heading.level <= _TITLE_LEVEL:
            inside = _is_own_title(lines[at])
        block = lines[at : (at if end is None else end) + 1]
        kept += block if inside else ()
        at += len(block)
    return "\n".join(kept)


def original_task(text: str) -> str:
    """Returns the task that a rendered summary shows verbatim, without the fence around it; empty if it shows none."""
    lines = text.splitlines()
    start, title = next(((at, found) for at, line in enumerate(lines) if (found := _own_title(line))), (0, None))
    level = title.level + 1 if title else 0
    begin = next((at for at in range(start, len(lines)) if _is_task(lines[at], level)), None)
    if begin is None:
        return ""
    first = next((at for at in range(begin + 1, len(lines)) if lines[at].strip()), len(lines))
    fence = FENCE.match(lines[first]) if first < len(lines) else None
    if fence and (end := closing_fence(lines, first + 1, fence[1])) is not None:
        return "\n".join(lines[first + 1 : end])
    following = (at for at in range(first, len(lines)) if (found := parse_heading(lines[at])) and found.level <= level)
    task = "\n".join(lines[first : next(following, len(lines))]).strip()
    return "" if task == UNKNOWN_TASK else task


def _is_task(line: str, level: int) -> bool:
    heading = parse_heading(line)
    return bool(heading and heading.level == level and heading.title == TASK)


def summary_round(text: str) -> int:
    """Returns the round in the title of a rendered summary; 0 if it has no such title."""
    lines = text.splitlines() if OWN_TITLE.search(text) else []
    heading = next(filter(None, map(_own_title, lines)), None)
    return int(re.findall(r"\d+", heading.title)[0]) if heading else 0


def _own_title(line: str) -> Heading | None:
    heading = parse_heading(line)
    return heading if heading and OWN_TITLE.fullmatch(heading.title) else None


def _is_own_title(line: str) -> bool:
    heading = parse_heading(line)
    return bool(heading and heading.level == _TITLE_LEVEL and OWN_TITLE.fullmatch(heading.title))


class _SectionParser:
    """Reads the lines once and collects items by section; unknown sections are collected line by line."""

    def __init__(self) -> None:
        self.known = False
        self.left_out = 0
        self.preface: list[str] = []
        """Lines before the first heading."""
        self.overview: list[str] = []
        """Lines below a title."""
        self.extra: list[tuple[str, list[str]]] = []
        self._entries: dict[SectionName, list[ParsedItem]] = {}
        self._section: SectionName | None = None
        self._lines: list[str] | None = self.preface
        """Where the lines of the current section go as they are; None in a known section."""
        self._level = self._strongest = BARE_LEVEL
        self._prefix = self._unused = ""
        """The heading inside the section, and the newest heading with nothing below it so far."""
        self._open: ParsedItem | None = None
        self._indent = 0
        self._ruled = False

    def found(self, section: SectionName) -> list[ParsedItem]:
        """Returns the items of a section, without those that only say "none"."""
        return [entry for entry in self._entries.get(section, []) if not entry.is_empty]

    def read(self, lines: Sequence[str]) -> None:
        at, wrapped = 0, False
        while at < len(lines):
            line, at = lines[at], at + 1
            if fence := FENCE.match(line):
                end = closing_fence(lines, at, fence[1])
                if self._is_lead() and (end is None or _has_section(lines[at:end])):
                    wrapped = True
                elif end is not None:
                    self._quote(lines[at - 1 : end + 1])
                    at = end + 1
                elif wrapped and not fence[2]:
                    break
                elif self._lines is not None:
                    self._lines.append(line.rstrip())
            elif (heading := parse_heading(line) or parse_plain_heading(line)) and self._begins(heading):
                self._unused = self._prefix or (heading.title if heading.plain else "")
                continue
            else:
                self._take(line)
            if line.strip():
                self._unused = ""
        self._keep_unused()

    def _is_lead(self) -> bool:
        return self._lines is self.preface or self._lines is self.overview

    def _begins(self, heading: Heading) -> bool:
        """Starts a section, unless the heading is nested in a copied task, a list item, or bare among others."""
        if self._section == "task" and heading.level > self._level:
            return False
        if heading.level >= CAPITALS_LEVEL > self._strongest:
            return False
        if heading.level == NUMBERED_LEVEL and self._level < NUMBERED_LEVEL:
            return False
        if heading.section == "next" and self._section == "state" and heading.rest:
            return False
        labels = self._section == "state" and LABEL.match(f"{heading.title}:")
        nested = heading.section is None and (heading.level > self._level or labels)
        in_items = nested and self._lines is None and heading.level <= BOLD_LEVEL
        if heading.plain and heading.level != self._level and not in_items:
            return False
        self._keep_unused()
        self._prefix, self._open, self._indent = "", None, -1
        if nested and self._section not in ("title", "other"):
            if self._lines is None:
                self._prefix = heading.title.strip("* :：")
            else:
                self._lines.append(nested_heading(heading.title, heading.level - self._level))
            return True
        self._section, self._level, self._ruled = heading.section, heading.level, False
        self._lines = self._lines_below(heading)
        if heading.section not in (None, "task", "title", "other", "removed"):
            self.known = True
            self._strongest = min(self._strongest, heading.level)
        if heading.rest:
            self._take(heading.rest)
        return True

    def _keep_unused(self) -> None:
        """Keeps a heading with nothing below it as text, but not as a task."""
        if self._unused and self._prefix and self._section != "pending":
            self._prefix = ""
            self._add(ParsedItem(self._unused))
        elif self._unused:
            self.overview.append(self._unused)

    def _lines_below(self, heading: Heading) -> list[str] | None:
        if heading.section in ("title", "other"):
            self.known |= bool(OWN_TITLE.fullmatch(heading.title))
            return self.overview
        if heading.section not in (None, "goal"):
            return None
        self.extra.append((heading.title, []))
        return self.extra[-1][1]

    def _take(self, line: str) -> None:
        bullet = BULLET.match(line)
        bare = bullet[2].strip() if bullet else line.strip()
        if self._section == "task" or CLOSING_LINE.fullmatch(line.strip()):
            return
        if counted := LEFT_OUT_LINE.fullmatch(bare):
            self.left_out, self.known = max(self.left_out, int(counted[1].replace(",", ""))), True
        elif not bare or NOISE.match(line):
            self._open = None
        elif self._lines is not None:
            self._lines.append(read_line(line))
        elif bullet:
            self._bullet(len(bullet[1]), bare)
        elif bare.startswith("|") or (self._section == "completed" and "|" in bare):
            self._row(table_cells(bare))
        elif self._open:
            self._open.text += f" {bare}"
        else:
            self._add(ParsedItem(bare))

    def _bullet(self, indent: int, text: str) -> None:
        check = CHECKBOX.match(text) if self._section in ("pending", "completed", "progress", "next") else None
        if self._open and not check and 0 <= self._indent < indent - 1:
            self._open.text += f" {text}" if self._open.text.endswith((":", "：")) else f"; {text}"
            return
        if self._indent < 0:
            self._indent = indent
        if not check:
            self._open = self._add(ParsedItem(text))
        elif check[3]:
            self._open = self._add(ParsedItem(check[3], checked=not check[2] and check[1] not in ("", " ")))

    def _row(self, cells: tuple[str, ...]) -> None:
        entries = self._entries.get(self._section or "context", [])
        self._open = None
        if all(map(_RULER.fullmatch, cells)):
            if not self._ruled and entries and entries[-1].cells:
                entries.pop()
            self._ruled = True
        elif self._ruled or [cell.casefold() for cell in cells[1:3]] != ["action", "description"]:
            self._add(ParsedItem(cells=cells))

    def _quote(self, block: Sequence[str]) -> None:
        """Keeps a code block as it is, or appends it to the item before it, which is one line."""
        code = dedent("\n".join(block[1:-1])).splitlines()
        text = _LINE_BREAK.join(line.rstrip() for line in code if line.strip()).strip()
        if self._lines is not None:
            self._lines += ["\n".join(block)] if is_code_block(block) else map(read_line, filter(str.strip, block))
        elif self._section != "task" and text:
            if self._open:
                self._open.text += f" {text}"
            else:
                self._add(ParsedItem(text))

    def _add(self, entry: ParsedItem) -> ParsedItem:
        if self._section:
            entry.prefix = self._prefix
            self._entries.setdefault(self._section, []).append(entry)
        return entry


def _has_section(lines: Iterable[str]) -> bool:
    return any(heading.section for heading in map(parse_heading, lines) if heading)


def _current_state(reader: _SectionParser) -> _State:
    """Sorts the items of the state by their labels; items without one are the current work if no other is."""
    state: _State = {"working": [*item_texts(reader.found("progress"))], "last": [], "next": [], "other": []}
    state["next"] += item_texts(reader.found("next"))
    labelled = bool(state["working"])
    for text in item_texts(reader.found("state")):
        found = LABEL.match(text)
        labelled |= bool(found and found["working"])
        if not found:
            state["other"].append(text)
        elif value := clean_text(found["text"]):
            state["working" if found["working"] else "next" if found["next"] else "last"].append(value)
    if not labelled:
        state["working"], state["other"] = state["other"], []
    return state
