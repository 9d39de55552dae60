"""Verifies names, commands and quotations in a summary against the log, and removes what is left empty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ..ledger import find_names, name_kind
from .structured_headings import closing_fence, split_at_headings
from .summarizer import FENCE


class HallucinationCheck(msgspec.Struct, frozen=True):
    """A summary without list items that contain only hallucinated names, and without the lines below them."""

    text: str
    hallucinated: tuple[str, ...] = ()
    removed_lines: tuple[str, ...] = ()
    """The list items that were removed."""
    removed_below: tuple[str, ...] = ()
    """The lines that were indented below one of them."""

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.hallucinated:
            return ()
        lines = "; ".join(map(str.strip, self.removed_lines))
        removed = f"; {len(self.removed_lines)} lines with no other name were removed: {lines}" if lines else ""
        if below := "; ".join(map(str.strip, self.removed_below)):
            removed += f"; and {len(self.removed_below)} lines below them: {below}"
        return (
            f"the summary contains names that do not occur in the history: {', '.join(self.hallucinated)}{removed}",
        )


_LIST_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)]|\|)\s+(?!\s|\[ ?\])")
_PLAN_HEADING = re.compile(
    r"(?i)next|pending|to[- ]?do|^tasks:|plan|open|remain|blocked|step|schritt|offen|ausstehend|à faire|prochain"
    r"|pendiente|siguiente|próxim|下一步|待办|待辦|计划|計劃|未完成"
)
_PLAN_ITEM = re.compile(r"(?i)\s*[-*•]\s+\W*(?:immediate )?next (?:steps?|action)\W*[:：]")
"""The next step in a list: like a plan, it may contain new names."""
_TITLE = re.compile(r"\s*(?:#+\s|\*\*[^*]+\*\*[:：]?\s*$|[A-Z][A-Z &]+:?$)")
_ITEM_ID = re.compile(r"^\s*[-*•]\s+\[[a-z]\d+\] ")
_QUOTED = re.compile(r"`([^`\n]+ [^`\n]+)`|[\"“„«]([^\"”“»\n]+ [^\"”“»\n]+ [^\"”“»\n]+)[\"”“»]")
"""Commands in code marks, and quotations of several words."""
_QUOTED_WORD = re.compile(r"\w+")
_RULER = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?")
_LABEL = re.compile(r"\s*(?:\d+[.)]\s*)?\w[^.|]{0,60}[:：]\s*$")
_ORDINARY_WORD = re.compile(
    r"(?:\w\.)+\w"  # e.g, d.h, p.m
    r"|[^\W\d_]{1,4}\.\d+"  # Nr.5
    r"|[A-Z]{2,}s"  # APIs
)
_NUMBER = re.compile(r"#?(?=.{4})\d+(?:[.-]\d+)*")
_WITH_UNIT = re.compile(r"(\d+)[^\W\d_]{1,5}")
_DIGIT_SEPARATOR = re.compile(r"(?<=\d)[,.'’_ \u00a0\u202f](?=\d{3})")
_REWORDABLE = re.compile(r"[^\W\d_]+|\d+(?:[.-]\d+)+|(?:19|20)\d\d")
"""Names that may reword the history: letters alone (`JavaScript`), a date, a version."""


def remove_hallucinated_names(summary: str, history: Callable[[], str]) -> HallucinationCheck:
    """Finds names that do not occur in the history, and removes list items that contain no other name.

    The lines that are indented below such an item are removed with it: they would belong to the item above.
    Plans may contain new names and stay as they are; so does a summary that would become empty.
    """
    named = {name for line in summary.splitlines() for name in _literals(line)}
    if not named:
        return HallucinationCheck(summary)
    lowered = history().lower()
    hallucinated = {name for name in named if name.lower() not in lowered}
    if hallucinated:
        plain = _DIGIT_SEPARATOR.sub("", lowered)
        words = _in_order(lowered) if any(" " in name for name in hallucinated) else ""
        hallucinated = {
            name
            for name in hallucinated
            if not (_in_order(name.lower()) in words if " " in name else _is_reworded(name.lower(), plain))
        }
    if not hallucinated:
        return HallucinationCheck(summary)
    kept, removed, below, in_plan = list[str](), list[str](), list[str](), False
    lines, at = summary.splitlines(), 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if _TITLE.match(line) or _LABEL.match(line):
            in_plan = _PLAN_HEADING.search(line) is not None or (in_plan and not _TITLE.match(line))
        names = set(_literals(line))
        hallucinated_only = names <= hallucinated and not all(map(_REWORDABLE.fullmatch, names))
        if hallucinated_only and not in_plan and _LIST_ITEM.match(line) and not _PLAN_ITEM.match(line):
            removed.append(line)
            end = _end_of_item(lines, at)
            below += filter(str.strip, lines[at:end])
            at = end
        else:
            kept.append(line)
    if not any(line.strip() and not _TITLE.match(line) for line in kept):
        return HallucinationCheck(summary, tuple(sorted(hallucinated)))
    text = drop_empty_headings("\n".join(kept)) if removed else "\n".join(kept)
    return HallucinationCheck(text, tuple(sorted(hallucinated)), tuple(removed), tuple(below))


def _end_of_item(lines: Sequence[str], at: int) -> int:
    """Returns the index after the lines that are indented deeper than the list item before `at`."""
    item, end = lines[at - 1], at
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > _indent(item)):
        if fence := FENCE.match(lines[at]):
            at = closing_fence(lines, at + 1, fence[1]) or at
        at += 1
        if lines[at - 1].strip():
            end = at
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def drop_empty_headings(summary: str) -> str:
    """Removes Markdown headings with nothing below them but, at most, a table without rows."""
    blocks, kept, below = list(split_at_headings(summary)), list[str](), 0
    for heading, lines in reversed(blocks):
        level = heading.level if heading else 0
        if not level or below > level or _has_text(lines[1:]):
            kept.append("\n".join(lines))
            below = level
    return "\n".join(reversed(kept)).strip("\n") if len(kept) < len(blocks) else summary


def _has_text(lines: Iterable[str]) -> bool:
    filled = [line.strip() for line in lines if line.strip()]
    return bool(filled) and not (len(filled) == 2 and _RULER.fullmatch(filled[1]))


def _is_reworded(name: str, history: str) -> bool:
    """Returns whether the name occurs with digit separators, with its unit apart, or without its hyphens."""
    name = _DIGIT_SEPARATOR.sub("", name)
    if unit := _WITH_UNIT.fullmatch(name):
        name = unit[1]
    pieces = [name] if "." in name else name.split("-")
    return all(piece in history for piece in pieces)


def _in_order(text: str) -> str:
    """Returns the words of a text alone, in their order."""
    return " ".join(_QUOTED_WORD.findall(text))


def _literals(line: str) -> list[str]:
    """Returns what a line of a summary repeats to the letter: exact names, commands and quotations."""
    text = _ITEM_ID.sub("", line)
    return [*_exact_names(text), *(found[1] or found[2] for found in _QUOTED.finditer(text))]


def _exact_names(line: str) -> list[str]:
    """Returns names that must be exact: files, identifiers, long numbers."""
    return [
        name
        for name in find_names(line)
        if ((kind := name_kind(name)) == "number" and _NUMBER.fullmatch(name))
        or (kind in ("file", "code") and not name.isupper() and not _ORDINARY_WORD.fullmatch(name))
    ]
