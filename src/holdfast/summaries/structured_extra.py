"""Sections that a model adds to the template: kept under their own headings, as data.

They are rendered below one heading of ours, one level deeper than our own sections. A line that the parser would take
for structure gets a backslash, so that no text of a model can pass for a heading of ours or end the summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from .log_section import LOG_HEADING
from .structured_headings import (
    BULLET,
    CLOSING_LINE,
    LEFT_OUT_LINE,
    NOISE,
    OTHER,
    closing_fence,
    is_empty,
    parse_heading,
)
from .summarizer import ANY_REASONING_TAG, FENCE

OVERVIEW = "Overview"
"""Title of text that has no heading of its own."""
EXTRA_LEVEL = 4
_MAX_LEVEL = 6
_RULER_ROW = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?$")


class ExtraSection(msgspec.Struct, frozen=True):
    """A section outside the template."""

    title: str
    items: tuple[str, ...]
    """Lines as they were written; a code block is one item of several lines."""


def render_extra(sections: Iterable[ExtraSection]) -> str:
    """Renders the sections below their common heading; empty if there are none."""
    blocks = ["\n".join([f"{'#' * EXTRA_LEVEL} {one.title}", *map(_render_item, one.items)]) for one in sections]
    return "\n\n".join([f"### {OTHER}", *blocks]) if blocks else ""


def _render_item(item: str) -> str:
    lines = item.splitlines()
    return item if is_code_block(lines) else "\n".join(map(escape_line, lines))


def is_code_block(lines: Sequence[str]) -> bool:
    """Returns whether a fence opens in the first line and closes in the last one, so that the parser skips the rest."""
    fence = FENCE.match(lines[0]) if lines else None
    return bool(
        fence
        and closing_fence(lines, 1, fence[1]) == len(lines) - 1
        and not any(line.startswith(LOG_HEADING) for line in lines)
    )


def nested_heading(title: str, depth: int) -> str:
    """Returns a heading inside an extra section, `depth` levels below it."""
    return f"{'#' * min(_MAX_LEVEL, EXTRA_LEVEL + depth)} {title}"


def read_line(line: str) -> str:
    """Returns a line of an extra section without the backslash of `render_extra`; rulers of tables become uniform."""
    text = line.lstrip()
    if text.startswith("\\") and _is_structure(text.lstrip("\\")):
        return line[: len(line) - len(text)] + text[1:].rstrip()
    return f"|{'---|' * (text.strip().strip('|').count('|') + 1)}" if _RULER_ROW.match(text) else line.rstrip()


def escape_line(line: str) -> str:
    text = line.lstrip()
    return f"{line[: len(line) - len(text)]}\\{text}" if _is_structure(text.lstrip("\\")) else line


def _is_structure(text: str) -> bool:
    """Returns whether the parser would take this line of an extra section for something else than its text."""
    heading = parse_heading(text)
    if heading and (heading.section or heading.level <= EXTRA_LEVEL):
        return True
    bullet = BULLET.match(text)
    bare = bullet[2].strip() if bullet else text.strip()
    return bool(
        FENCE.match(text)
        or NOISE.match(text)
        or ANY_REASONING_TAG.match(text)
        or CLOSING_LINE.fullmatch(text.strip())
        or LEFT_OUT_LINE.fullmatch(bare)
    )


def title_key(title: str) -> str:
    """Returns a title in a form in which spellings of the same title are equal."""
    return " ".join(title.casefold().split()).strip("*_:： ") or title


def group_sections(written: Iterable[tuple[str, Iterable[str]]]) -> tuple[ExtraSection, ...]:
    """Joins sections of one title, and leaves out those in which every line stands for no value."""
    grouped: dict[str, ExtraSection] = {}
    for title, items in written:
        before = grouped.get(title_key(title), ExtraSection(title, ()))
        grouped[title_key(title)] = ExtraSection(before.title, (*before.items, *items))
    return tuple(section for section in grouped.values() if any(map(_says_something, section.items)))


def _says_something(item: str) -> bool:
    bullet = BULLET.match(item)
    return not is_empty(bullet[2].strip() if bullet else item.strip())
