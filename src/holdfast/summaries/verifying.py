"""A summary held against the log: what it lost is put back, what it made up is found (H3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import msgspec

from ..ledger import Fact, Ledger, by_folder, clipped, fitting, missing, must_keep, names_in
from ..references import citation

HEADING = "## From the log, word for word"
_TITLES = {
    "task": "The task",
    "constraint": "The user said",
    "pending": "Still to be done",
    "error": "Last errors",
    "file": "Files changed",
}
_SHARES = {"task": 0.35, "constraint": 0.6, "pending": 0.3, "error": 0.3, "file": 0.4}
"""What part of the room each may take at most; what else the user said has what is left."""
_CITED = 8
_TRIES = 6


class Verified(msgspec.Struct, frozen=True):
    """What stands under a summary, and what it took."""

    section: str
    put_back: int = 0
    left_out: int = 0
    """Facts for which there was no room."""

    @property
    def remarks(self) -> tuple[str, ...]:
        said = []
        if self.put_back:
            said.append(f"{self.put_back} facts that the summary does not tell were put back from the log")
        if self.left_out:
            said.append(f"{self.left_out} more had no room: they are in the archive")
        return tuple(said)


def verified(summary: str, visible: str, ledger: Ledger, room: int, measure: Callable[[str], int]) -> Verified:
    """What must be kept and is told neither by the summary nor by what stays visible, in at most so many tokens."""
    lost = missing(must_keep(ledger), f"{summary}\n{visible}")
    characters = int(room * _characters_in_token(lost, measure))
    for _ in range(_TRIES):
        section, told = _section(lost, ledger, characters)
        if not section or measure(section) <= room:
            return Verified(section, told, len(lost) - told)
        characters = int(characters * 0.8)
    return Verified("", 0, len(lost))


def _characters_in_token(facts: Sequence[Fact], measure: Callable[[str], int]) -> float:
    sample = "\n".join(fact.text for fact in facts)[:20_000]
    return len(sample) / max(1, measure(sample)) if sample else 1.0


def _section(lost: Sequence[Fact], ledger: Ledger, room: int) -> tuple[str, int]:
    left, told = room - len(HEADING), 0
    chosen: dict[str, list[str]] = {}
    said: list[Fact] = []
    for kind, share in _SHARES.items():
        facts = [fact for fact in lost if fact.kind == kind]
        if not facts or left <= 0:
            continue
        most = min(left, int(room * share)) - len(_TITLES[kind]) - 5
        if kind == "task":
            lines = [clipped(facts[0].text, most)] if most > 0 else []
        elif kind == "constraint":
            kept = _newest(facts, most)
            said += kept
            lines = [fact.text for fact in kept]
        elif kind == "file":
            changed = {fact.text for fact in facts}
            lines = fitting(by_folder(file for file in ledger.files if file.path in changed), most)
        else:
            lines = fitting((f"- {fact.text}" for fact in reversed(facts)), most)[::-1]
        left -= sum(len(line) + _CITED for line in lines) + len(_TITLES[kind]) + 5
        told += _told(lines, facts, kind)
        chosen[kind] = lines
    more = _newest([fact for fact in lost if fact.kind == "said"], left)
    if said or more:
        chosen["constraint"] = _quoted(said + more)
    parts = [f"### {_TITLES[kind]}\n" + "\n".join(chosen[kind]) for kind in _TITLES if chosen.get(kind)]
    return ("\n\n".join([HEADING, *parts]), told + len(more)) if parts else ("", 0)


def _told(lines: Sequence[str], facts: Sequence[Fact], kind: str) -> int:
    if kind != "file":
        return len(lines)
    text = "\n".join(lines)
    return sum(fact.text.rpartition("/")[2] in text for fact in facts)


def _newest(facts: Sequence[Fact], room: int) -> list[Fact]:
    """As many as there is room for, from the newest back."""
    kept = []
    for fact in reversed(facts):
        if len(fact.text) + _CITED <= room:
            room -= len(fact.text) + _CITED
            kept.append(fact)
    return kept[::-1]


def _quoted(facts: Iterable[Fact]) -> list[str]:
    """Sentences under the number of their message, in its order."""
    ordered = groupby(sorted(facts, key=lambda fact: (fact.place, fact.order)), key=lambda fact: fact.place)
    return [f"{citation(place)} " + " ".join(fact.text for fact in said) for place, said in ordered]


class Checked(msgspec.Struct, frozen=True):
    """A summary without the lines that speak of nothing but what nobody ever said."""

    text: str
    invented: tuple[str, ...] = ()
    removed: int = 0

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.invented:
            return ()
        gone = f"; {self.removed} lines that told nothing else were removed" if self.removed else ""
        return (f"the summary names what occurs nowhere in the history: {', '.join(self.invented)}{gone}",)


_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)]|\|)\s+(?!\[ \])")
_AHEAD = re.compile(r"(?i)next|pending|to ?do|plan|open|remain|blocked|step")
_TITLE = re.compile(r"\s*(?:#+\s|\*\*[^*]+\*\*:?\s*$)")
_LONG_NUMBER = 4


def checked(summary: str, history: Callable[[], str]) -> Checked:
    """Find names that occur nowhere in the history; a list item that holds no other name goes.

    What lies ahead may have new names: plans are left alone.
    """
    named = {name for line in summary.splitlines() for name in _exact(line)}
    if not named:
        return Checked(summary)
    told = history().lower()
    invented = {name for name in named if name.lower() not in told}
    if not invented:
        return Checked(summary)
    kept, removed, ahead = [], 0, False
    for line in summary.splitlines():
        if _TITLE.match(line):
            ahead = _AHEAD.search(line) is not None
        names = set(_exact(line))
        if names and names <= invented and not ahead and _ITEM.match(line):
            removed += 1
        else:
            kept.append(line)
    return Checked("\n".join(kept), tuple(sorted(invented)), removed)


def _exact(line: str) -> list[str]:
    """Names that a reader would take at their word: files, identifiers, long numbers."""
    found = []
    for name, kind in names_in(line):
        long = kind == "number" and len(name.strip("#")) >= _LONG_NUMBER
        if long or kind == "file" or (kind == "code" and not name.isupper()):
            found.append(name)
    return found
