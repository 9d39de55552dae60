"""Reads a structured summary in a model's answer: headed Markdown in many forms, or one JSON object.

Headings divide the answer. Below a known one, lines are items: bullets, checklists, rows of a table, code. Below any
other one, lines stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from textwrap import dedent

import msgspec

from . import structured_headings as headings
from .json_answer import as_markdown
from .structured import (
    EXTRA_LEVEL,
    LABELS,
    OVERVIEW,
    CompletedWork,
    ExtraSection,
    RemovedItem,
    SummarySections,
    is_code_block,
    is_no_cell,
    is_no_item,
    is_no_line,
    labelled_state,
    one_line,
    strip_bullet,
    unescape,
)
from .structured_headings import (
    Heading,
    SectionName,
    fence_ends,
    is_all_done,
    is_empty,
    is_empty_value,
    parse_heading,
    parse_plain_heading,
)
from .summarizer import FENCE, strip_reasoning

_RULER_ROW = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?$")
_PIPE = re.compile(r"(\\*)\|")
LABEL = re.compile(
    r"(?i)(?P<bold>\*\*|__)?\s*(?:(?P<working_on>(?:currently )?working on|in progress|current focus)"
    r"|(?P<next_step>(?:immediate )?next (?:steps?|action))|(?P<last_completed>last completed|most recently completed))"
    r"\s*(?(bold)(?:[:：]\s*(?P=bold)|(?P=bold)\s*[:：])|[:：])\s*(?P<text>.*)$"
)
_DASH_SEPARATOR = re.compile(r"\s+(?:[—–-]|→|->|=>|\|)\s+")
_REASON_SEPARATORS = (
    re.compile(r"\s*(?:→|->|=>)\s*"),
    re.compile(r"\s+[—–-]\s+"),
    re.compile(r":\s+|\s+(?=because\b)"),
)
_ACTION_SUFFIX = re.compile(r"(.+?)\s*\(([\w ]{2,24})\)$")
_MAX_SUBJECT = 60
CHECKBOX = re.compile(r"(?:\[([ xX✓✔]?)\]|([☐⬜🔲])|[✅☑✔]️?)\s*(.*)$")
_CHECKED_SECTIONS = ("pending", "completed", "progress", "next")
_RULER = re.compile(r":?-+:?")
_DONE = "Done"
_LINE_BREAK = " ⏎ "
"""Mark between the lines of a code block in an item."""
_MAX_PREFACE = 80
"""Characters of a single line before the first heading that introduces the answer and is not a part of it."""


def parse_sections(text: str, *, prose: bool = False) -> SummarySections | None:
    """Returns the sections of an answer, written as headed Markdown or as one JSON object.

    An answer without a known section is None, or with `prose` a section of its own.
    """
    outline = _Outline(as_markdown(strip_reasoning(text)).splitlines())
    if not (outline.is_known or prose):
        return None
    preface, *blocks = outline.blocks
    first = preface.texts()
    if outline.is_known and len(first) == 1 and len(first[0]) <= _MAX_PREFACE and "\n" not in first[0]:
        first = []
    overview, extra, found = list[str](), list[tuple[str, list[str]]](), dict[SectionName | None, list[ParsedItem]]()
    for block in blocks:
        if block.title and not any(block.lines):  # a heading with nothing below it is text, but not a task
            kept = block.prefix and block.section != "pending"
            block.lines, block.prefix = [block.title] if kept else [], ""
            overview += [] if kept else [block.title]
        if block.section in ("title", "other"):
            overview += block.texts()
        elif block.is_raw:
            extra.append((block.heading, block.texts()))
        elif block.section != "task":
            found.setdefault(block.section, []).extend(item for item in block.items() if not item.is_empty)
    pending = found.get("pending", [])
    ended = [item for item in pending if is_all_done(item.text)]
    pending = [item for item in pending if item not in ended]
    done = [CompletedWork(text, _DONE) for text in item_texts(item for item in pending if item.checked)]
    state, other = _current_state(found)
    return SummarySections(
        completed=(*map(completed_work, found.get("completed", ())), *done),
        pending=item_texts(item for item in pending if not item.checked),
        decisions=item_texts(found.get("decisions", ())),
        errors=item_texts(found.get("errors", ()), " → "),
        constraints=item_texts(found.get("constraints", ())),
        context=(*item_texts(found.get("context", ())), *other, *item_texts(ended)),
        extra=group_sections([(OVERVIEW, [*first, *overview]), *extra]),
        removed=tuple(map(removed_item, found.get("removed", ()))),
        left_out=outline.left_out,
        **{name: "; ".join(texts) for name, texts in state.items()},
    )


def _current_state(found: Mapping[SectionName | None, list[ParsedItem]]) -> tuple[dict[str, list[str]], list[str]]:
    """Sorts the items of the state by their labels; those without one are the current work if no other is."""
    state: dict[str, list[str]] = {name: [] for name in LABELS}
    state["working_on"] += item_texts(found.get("progress", ()))
    state["next_step"] += item_texts(found.get("next", ()))
    states_work, other = bool(state["working_on"]), list[str]()
    for text in item_texts(found.get("state", ())):
        if not (label := LABEL.match(text)):
            other.append(text)
            continue
        name = next(name for name in LABELS if label[name])
        states_work |= name == "working_on"
        state[name] += filter(None, [clean_text(label["text"])])
    return (state, other) if states_work else (state | {"working_on": other}, [])


def read_items(text: str) -> list[str]:
    """Returns the items of any summary, each on one line: first the state of the work, then what is open."""
    found = parse_sections(text, prose=True) or SummarySections()
    lists = (found.pending, found.constraints, found.errors, found.decisions, found.context)
    rows = (row.text for row in found.completed)
    extra = (item for section in found.extra for item in section.items)
    texts = [*(f"{label}: {text}" for label, text in labelled_state(found) if text), *chain(*lists), *rows, *extra]
    return [item for item in map(strip_bullet, map(one_line, texts)) if re.search(r"\w", item)]


class _Block(msgspec.Struct):
    """The lines below a heading: a code block is one of several lines, a blank line or a ruler is empty."""

    section: SectionName | None = None
    heading: str = ""
    level: int = headings.BARE_LEVEL
    prefix: str = ""
    """The heading inside the section."""
    title: str = ""
    """The heading, if it is text where nothing follows it."""
    lines: list[str] = []

    @property
    def is_raw(self) -> bool:
        """Whether its lines stay as they are."""
        return self.section in (None, "goal", "title", "other")

    @property
    def is_lead(self) -> bool:
        """Whether it stands before the sections: a fence that opens here may be around all of them."""
        return self.section in ("title", "other") or (self.section is None and not self.heading)

    def opens(self, heading: Heading, strongest: int) -> _Block | None:
        """Returns the block of a heading; None if it is text: in a copied task, a list, or bare among others."""
        if self.section == "task" and heading.level > self.level:
            return None
        if heading.level >= headings.CAPITALS_LEVEL > strongest:
            return None
        if heading.level == headings.NUMBERED_LEVEL > self.level:
            return None
        if heading.section == "next" and self.section == "state" and heading.rest:
            return None
        labels = self.section == "state" and LABEL.match(f"{heading.title}:")
        nested = heading.section is None and (heading.level > self.level or labels)
        in_items = nested and not self.is_raw and heading.level <= headings.BOLD_LEVEL
        if heading.plain and heading.level != self.level and not in_items:
            return None
        if nested and self.section not in ("title", "other"):
            depth = min(headings.MAX_LEVEL, EXTRA_LEVEL + heading.level - self.level)
            if self.is_raw:
                self.lines.append(f"{'#' * depth} {heading.title}")
                return self
            prefix = heading.title.strip("* :：")
            return _Block(self.section, self.heading, self.level, prefix, prefix)
        return _Block(heading.section, heading.title, heading.level, "", heading.title if heading.plain else "")

    def texts(self) -> list[str]:
        """Returns the lines as they were written."""
        found = list[str]()
        for line in filter(None, self.lines):
            whole = line.splitlines()
            found += [line] if is_code_block(whole) else map(read_line, filter(str.strip, whole))
        return found

    def items(self) -> Iterator[ParsedItem]:
        """Returns the items that the lines state: bullets, rows, and what continues them."""
        items, last, indent, ruled = list[ParsedItem](), None, -1, False
        for line in self.lines:
            is_code = "\n" in line
            bullet = None if is_code else headings.BULLET.match(line)
            bare = _code_text(line) if is_code else strip_bullet(line)
            check = CHECKBOX.match(bare) if bullet and self.section in _CHECKED_SECTIONS else None
            if not bare:
                last = last if is_code else None
            elif bullet and last and not check and 0 <= indent < len(bullet[1]) - 1:
                last.text += f" {bare}" if last.text.endswith((":", "：")) else f"; {bare}"
            elif bullet:
                indent = len(bullet[1]) if indent < 0 else indent
                checked = bool(check and not check[2] and check[1] not in ("", " "))
                last = ParsedItem(check[3] if check else bare, checked)
                items.append(last)
            elif not is_code and (bare.startswith("|") or (self.section == "completed" and "|" in bare)):
                cells, last = table_cells(bare), None
                if all(map(_RULER.fullmatch, cells)):
                    items = items[:-1] if not ruled and items and items[-1].cells else items
                    ruled = True
                elif ruled or [cell.casefold() for cell in cells[1:3]] != ["action", "description"]:
                    items.append(ParsedItem(cells=cells))
            elif last:
                last.text = f"{last.text} {bare}".strip()
            else:
                items.append(ParsedItem(bare))
        return (msgspec.structs.replace(item, prefix=self.prefix) for item in items)


def _code_text(block: str) -> str:
    """Returns a code block as the text of an item, which is one line."""
    code = dedent("\n".join(block.split("\n")[1:-1])).splitlines()
    return _LINE_BREAK.join(line.rstrip() for line in code if line.strip()).strip()


class _Outline:
    """The headings of an answer with the lines below them; first the lines before any heading."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.blocks, self.left_out, self.is_known = [_Block()], 0, False
        at, wrapped, strongest, end_of = 0, False, headings.BARE_LEVEL, fence_ends(lines)
        while at < len(lines):
            line, block, at = lines[at], self.blocks[-1], at + 1
            if fence := FENCE.match(line):
                end = end_of(at - 1)
                if block.is_lead and (
                    end is None or any(one and one.section for one in map(parse_heading, lines[at:end]))
                ):
                    wrapped = True
                elif end is not None:
                    block.lines.append("\n".join(lines[at - 1 : end + 1]))
                    at = end + 1
                elif wrapped and not fence[2]:
                    break
                elif block.is_raw:
                    block.lines.append(line.rstrip())
                continue
            heading = parse_heading(line) or parse_plain_heading(line)
            new = block.opens(heading, strongest) if heading else None
            if heading is None or new is None:
                self._add(line)
            elif new is not block:
                self.blocks.append(new)
                if heading.rest:
                    self._add(heading.rest)
                self.is_known |= headings.OWN_TITLE.fullmatch(heading.title) is not None
                if heading.section not in (None, "task", "title", "other", "removed"):
                    self.is_known, strongest = True, min(strongest, heading.level)

    def _add(self, line: str) -> None:
        """Adds a line that is no heading, unless it is one of ours, which counts or closes."""
        bare = strip_bullet(line)
        if self.blocks[-1].section == "task" or headings.CLOSING_LINE.fullmatch(line.strip()):
            return
        if counted := headings.LEFT_OUT_LINE.fullmatch(bare):
            self.left_out, self.is_known = max(self.left_out, int(counted[1].replace(",", ""))), True
        else:
            self.blocks[-1].lines.append("" if not bare or headings.NOISE.match(line) else line.rstrip())


# -- items ------------------------------------------------------------------------------------------


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


def clean_text(text: str) -> str:
    """Returns the text of an item; nothing for one that says only "none"."""
    return "" if is_empty(text) else unescape(text, is_no_item)


def item_texts(entries: Iterable[ParsedItem], between: str = ": ") -> tuple[str, ...]:
    return tuple(entry.prefixed(clean_text(entry.joined(between))) for entry in entries)


def completed_work(entry: ParsedItem) -> CompletedWork:
    """Returns the row of an item; a heading above it stands at the end, so that rows of one subject stay comparable."""
    row = _completed_row(entry)
    above = f"({entry.prefix})" if entry.prefix and row.description else entry.prefix
    return CompletedWork(row.subject, row.action, " ".join(filter(None, (row.description, above))))


def _completed_row(entry: ParsedItem) -> CompletedWork:
    if entry.cells:
        subject, action, *rest = (
            *("" if is_empty_value(cell) else unescape(cell, is_no_cell) for cell in entry.cells),
            "",
            "",
        )
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


# -- added sections -------------------------------------------------------------------------------------------------


def read_line(line: str) -> str:
    """Returns a line of an added section as it was written; rulers of tables become uniform."""
    bare = line.lstrip()
    if _RULER_ROW.match(bare) and not bare.startswith("\\"):
        return f"|{'---|' * (bare.strip().strip('|').count('|') + 1)}"
    return unescape(line, is_no_line).rstrip()


def title_key(title: str) -> str:
    """Returns a title in a form in which spellings of the same title are equal."""
    return " ".join(title.casefold().split()).strip("*_:： ") or title


def group_sections(written: Iterable[tuple[str, Iterable[str]]]) -> tuple[ExtraSection, ...]:
    """Joins sections of one title, and leaves out those in which every line stands for no value."""
    grouped: dict[str, ExtraSection] = {}
    for title, items in written:
        before = grouped.get(title_key(title), ExtraSection(title, ()))
        grouped[title_key(title)] = ExtraSection(before.title, (*before.items, *items))
    filled = [
        section for section in grouped.values() if not all(is_empty(strip_bullet(item)) for item in section.items)
    ]
    return tuple(filled)
