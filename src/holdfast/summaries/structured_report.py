"""Reports text of a structured answer that the summary does not contain: nothing that a model wrote vanishes unseen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .structured import COLUMNS
from .structured_extra import ExtraSection
from .structured_headings import (
    BULLET,
    CLOSING_LINE,
    EMPTY_ITEM,
    LEFT_OUT_LINE,
    NOISE,
    OWN_HEADINGS,
    OWN_TITLE,
    parse_heading,
)
from .structured_parse import CHECKBOX, LABEL
from .summarizer import FENCE

_WORD = re.compile(r"[^\W_]+")
_PIPE = re.compile(r"\\*\|")
_STRUCTURE = (FENCE, NOISE, LEFT_OUT_LINE, CLOSING_LINE, OWN_TITLE, EMPTY_ITEM)
_OWN_WORDS = {name.casefold() for name in (*OWN_HEADINGS, *COLUMNS)}


def missing_text(answer: str, kept: str) -> list[str]:
    """Returns the lines and table cells of an answer whose words do not occur in this order in what was kept."""
    known = _in_order(kept)
    pieces = (piece for line in answer.splitlines() for piece in _pieces(line))
    return list(dict.fromkeys(piece for piece in pieces if _in_order(piece) not in known))


def is_copy(section: ExtraSection, task: str) -> bool:
    """Returns whether a section only repeats the task, or parts of it."""
    known, items = _in_order(task), [item for item in section.items if _WORD.search(item)]
    return bool(items) and all(_in_order(item) in known for item in items)


def _in_order(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _pieces(line: str) -> Iterator[str]:
    """Yields the texts of a line without markup: a heading and the text after it, an item, or the cells of a row."""
    if heading := parse_heading(line):
        yield from _without_structure((heading.title, heading.rest))
        return
    bullet = BULLET.match(line)
    text = bullet[2].strip() if bullet else line.strip()
    if checkbox := CHECKBOX.match(text):
        text = checkbox[3]
    if label := LABEL.match(text):
        text = label["text"]
    yield from _without_structure(() if FENCE.match(line) else _PIPE.split(text))


def _without_structure(texts: Iterable[str]) -> Iterator[str]:
    for text in map(str.strip, texts):
        structure = any(pattern.fullmatch(text) for pattern in _STRUCTURE)
        if not structure and text.casefold() not in _OWN_WORDS and _WORD.search(text):
            yield text
