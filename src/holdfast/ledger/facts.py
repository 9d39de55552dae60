"""Facts of the history that a summary must not lose, and the check of a summary against them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from .entries import Ledger
from .lines import CONSTRAINT, SENTENCE, LedgerLine, find_task
from .names import find_names, find_words, name_kind
from .plan import without_step_number
from .text import BRIEF_CHARS, clip
from .tool_calls import is_finished

FactKind = Literal["task", "constraint", "pending", "error", "file", "earlier", "statement"]
"""The task, the user's constraints, open work, errors, changed files, items of a summary by another tool, and other
statements of the user."""
EARLIER_SUMMARY = "an earlier summary"
"""Source of conclusions that another tool's summary states."""
_MAX_ERROR_FACTS = 3
_EXACT_KINDS = ("number", "figure", "code", "file")
_MIN_WORD_SHARE = 0.6
"""A fact is covered if one line contains this share of its words."""
_MIN_WORDS = 3
"""Shorter sentences are no statement."""


class Fact(msgspec.Struct, frozen=True):
    """Something that a summary must keep."""

    kind: FactKind
    text: str
    place: int
    """Number of its message; 0 if it belongs to no single one."""
    order: int = 0
    """Index of the sentence in its message."""


def required_facts(ledger: Ledger) -> tuple[Fact, ...]:
    """Returns the task, the user's constraints, open work, last errors and changed files.

    The user's other statements come last: not every constraint is worded as one.
    """
    task = find_task(ledger.users)
    sentences = stated_facts(ledger.users)
    printed = [line for line in ledger.errors if line.kind != "file"]  # error lines in files are not news
    return (
        *([Fact("task", task.text, task.place)] if task else ()),
        *(fact for fact in sentences if fact.kind == "constraint"),
        *(Fact("pending", step, 0) for step, status in ledger.plan if not is_finished(status)),
        *(Fact("error", line.text.strip(), line.place) for line in printed[-_MAX_ERROR_FACTS:]),
        *(Fact("file", file.path, file.place) for file in ledger.files if file.edits or file.deleted),
        *(Fact("earlier", line.text, 0) for line in ledger.closings if line.source == EARLIER_SUMMARY),
        *(fact for fact in sentences if fact.kind == "statement" and task and fact.text not in task.text),
    )


def stated_facts(lines: Iterable[LedgerLine]) -> list[Fact]:
    """Returns the sentences of these lines, as constraints or as other statements."""
    return [
        Fact("constraint" if CONSTRAINT.search(sentence) else "statement", sentence.strip(), line.place, order)
        for line in lines
        for order, sentence in enumerate(SENTENCE.findall(line.text))
        if len(find_words(sentence)) >= _MIN_WORDS or CONSTRAINT.search(sentence)
    ]


def steps_since(ledger: Ledger, place: int) -> list[tuple[int, str]]:
    """Returns calls, commands and file changes after this message, each with its number, in order."""
    ran = (
        (command.place, f"ran: {clip(command.text, BRIEF_CHARS)}{' (failed)' if command.failed else ''}")
        for command in ledger.commands
        if command.place > place
    )
    changed = (
        (file.place, f"{'deleted' if file.deleted else 'changed'}: {file.path}")
        for file in ledger.files
        if (file.edits or file.deleted) and file.place > place
    )
    return sorted([*((line.place, line.text) for line in ledger.calls), *ran, *changed])


def missing_facts(facts: Iterable[Fact], summary: str) -> tuple[Fact, ...]:
    """Returns the facts that this summary does not cover; a file is covered by its name."""
    lines = [_SummaryLine(line) for line in summary.splitlines() if line.strip()]
    whole = find_words(summary)
    return tuple(fact for fact in facts if not _is_covered(fact, lines, whole, summary))


class _SummaryLine:
    """A line of a summary, analysed lazily."""

    def __init__(self, line: str) -> None:
        self.line = line

    @cached_property
    def words(self) -> frozenset[str]:
        return find_words(self.line)

    @cached_property
    def is_constraint(self) -> bool:
        return CONSTRAINT.search(self.line) is not None


def _is_covered(fact: Fact, lines: Sequence[_SummaryLine], whole: frozenset[str], summary: str) -> bool:
    if fact.kind == "file":
        name = re.escape(PurePosixPath(fact.text).name)
        return re.search(rf"(?<![\w-]){name}(?!\w)", summary) is not None
    if fact.text.strip() in summary:
        return True
    if fact.kind == "error":
        return False
    text = without_step_number(fact.text) if fact.kind == "pending" else fact.text
    words = find_words(text)
    if not words or len(words & whole) < _MIN_WORD_SHARE * len(words):
        return False
    if fact.kind == "task":
        return True
    exact = {name.lower() for name in find_names(text) if name_kind(name) in _EXACT_KINDS}
    return any(
        exact <= line.words
        and len(words & line.words) >= _MIN_WORD_SHARE * len(words)
        and (fact.kind != "constraint" or line.is_constraint)
        for line in lines
    )
