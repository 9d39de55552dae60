"""What no summary may lose: facts from the log, to hold against what a model wrote (H3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from .deeds import FINISHED
from .entries import Ledger
from .names import names_in

FactKind = Literal["task", "constraint", "file", "error", "pending"]
_STANDING = re.compile(
    r"(?i)\b(?:always|never|must(?:n't)?|don't|do not|only|from now on|make sure|no longer|at (?:least|most)|"
    r"immer|niemals|nie|nur|muss|müssen|nicht|kein\w*|ab jetzt|toujours|jamais|doit|siempre|nunca|debe)\b"
    r"|必须|不要|不能|始终|一定|只能|دائما|أبدا|يجب|لا ت"
)
_SENTENCE = re.compile(r"[^.!?。！？؟\n]+(?:[.!?](?!\s|$)[^.!?。！？؟\n]*)*[.!?。！？؟]*")
_ERRORS, _CONSTRAINTS = 3, 40
_ENOUGH = 0.6
"""A fact is there if this part of its words is."""


class Fact(msgspec.Struct, frozen=True):
    """Something that must still be known afterwards."""

    kind: FactKind
    text: str
    place: int
    """The message it stands in; 0 where it is in no single one."""


def must_keep(ledger: Ledger) -> tuple[Fact, ...]:
    """The task, standing constraints in the user's words, files that were changed, last errors, pending work."""
    constraints = [Fact("constraint", said, place) for said, place in _constraints(ledger)]
    return (
        *(Fact("task", line.text, line.place) for line in ledger.users[:1]),
        *constraints[-_CONSTRAINTS:],
        *(Fact("file", file.path, file.place) for file in ledger.files if file.edits),
        *(Fact("error", line.text, line.place) for line in ledger.errors[-_ERRORS:]),
        *(Fact("pending", step, 0) for step, status in ledger.plan if status not in FINISHED),
    )


def _constraints(ledger: Ledger) -> Iterator[tuple[str, int]]:
    for line in ledger.users:
        for sentence in _SENTENCE.findall(line.text):
            if _STANDING.search(sentence):
                yield sentence.strip(), line.place


def missing(facts: Iterable[Fact], summary: str) -> tuple[Fact, ...]:
    """The facts that this summary does not tell; a file is told by its name."""
    told = _words(summary)
    return tuple(fact for fact in facts if not _is_told(fact, told, summary))


def _is_told(fact: Fact, told: frozenset[str], summary: str) -> bool:
    if fact.kind == "file":
        return PurePosixPath(fact.text).name in summary
    words = _words(fact.text)
    return len(words & told) >= _ENOUGH * len(words) if words else fact.text.strip() in summary


def _words(text: str) -> frozenset[str]:
    return frozenset(name.lower() for line in text.splitlines() for name, _ in names_in(line))
