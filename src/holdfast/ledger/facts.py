"""What no summary may lose: facts from the log, to hold against what a model wrote (H3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from .deeds import is_finished
from .entries import Ledger
from .lines import Line
from .names import kind_of, names_in, words_in
from .speakers import task_in

FactKind = Literal["task", "constraint", "pending", "error", "file", "said"]
"""What was asked, what is to be observed, open work, errors, changed files, and whatever else the user said."""
_STANDING = re.compile(
    r"(?i)\b(?:always|never|must(?:n't)?|don't|do not|only|from now on|make sure|no longer|at (?:least|most)|"
    r"immer|niemals|nie|nur|muss|müssen|nicht|kein\w*|ab jetzt|toujours|jamais|doit|siempre|nunca|debe)\b"
    r"|必须|不要|不能|始终|一定|只能|دائما|أبدا|يجب|لا ت"
)
_SENTENCE = re.compile(r"[^.!?。！？؟\n]+(?:[.!?](?!\s|$)[^.!?。！？؟\n]*)*[.!?。！？؟]*")
_ERRORS = 3
_EXACT = ("number", "figure", "code", "file")
_ENOUGH = 0.6
"""A fact is there if this part of its words is, in one line."""
_SAYS_SOMETHING = 3
"""Fewer words are a nod, not a wish."""


class Fact(msgspec.Struct, frozen=True):
    """Something that must still be known afterwards."""

    kind: FactKind
    text: str
    place: int
    """The message it stands in; 0 where it is in no single one."""
    order: int = 0
    """Which sentence of it."""


def must_keep(ledger: Ledger) -> tuple[Fact, ...]:
    """The task, all that the user asked to be observed, open work, last errors, files that were changed.

    Not every wish is worded as one, so what else the user said is among it, last.
    """
    task = task_in(ledger.users)
    said = [Fact(_kind(sentence), sentence, place, order) for sentence, place, order in _sentences(ledger)]
    return (
        *([Fact("task", task.text, task.place)] if task else ()),
        *(fact for fact in said if fact.kind == "constraint"),
        *(Fact("pending", step, 0) for step, status in ledger.plan if not is_finished(status)),
        *(Fact("error", line.text.strip(), line.place) for line in _printed(ledger.errors)[-_ERRORS:]),
        *(Fact("file", file.path, file.place) for file in ledger.files if file.edits or file.deleted),
        *(fact for fact in said if fact.kind == "said" and task and fact.text not in task.text),
    )


def _printed(errors: Sequence[Line]) -> list[Line]:
    """Those that something printed when it ran: what a file says of errors is no news."""
    return [line for line in errors if line.voice != "file"]


def _kind(sentence: str) -> FactKind:
    return "constraint" if _STANDING.search(sentence) else "said"


def _sentences(ledger: Ledger) -> Iterator[tuple[str, int, int]]:
    for line in ledger.users:
        for order, sentence in enumerate(_SENTENCE.findall(line.text)):
            if len(words_in(sentence)) >= _SAYS_SOMETHING or _STANDING.search(sentence):
                yield sentence.strip(), line.place, order


def missing(facts: Iterable[Fact], summary: str) -> tuple[Fact, ...]:
    """The facts that this summary does not tell; a file is told by its name."""
    lines = [_Told(line) for line in summary.splitlines() if line.strip()]
    whole = words_in(summary)
    return tuple(fact for fact in facts if not _is_told(fact, lines, whole, summary))


class _Told:
    """A line of a summary, taken apart when it is first needed."""

    def __init__(self, line: str) -> None:
        self.line = line

    @cached_property
    def words(self) -> frozenset[str]:
        return words_in(self.line)

    @cached_property
    def stands(self) -> bool:
        return _STANDING.search(self.line) is not None


def _is_told(fact: Fact, lines: Sequence[_Told], whole: frozenset[str], summary: str) -> bool:
    if fact.kind == "file":
        name = re.escape(PurePosixPath(fact.text).name)
        return re.search(rf"(?<![\w-]){name}(?!\w)", summary) is not None
    if fact.text.strip() in summary:
        return True
    if fact.kind == "error":
        return False
    words = words_in(fact.text)
    if not words or len(words & whole) < _ENOUGH * len(words):
        return False
    if fact.kind == "task":
        return True
    exact = {name.lower() for name in names_in(fact.text) if kind_of(name) in _EXACT}
    return any(
        exact <= line.words
        and len(words & line.words) >= _ENOUGH * len(words)
        and (fact.kind != "constraint" or line.stands)
        for line in lines
    )
