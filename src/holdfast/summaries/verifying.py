"""A summary held against the log: what it lost is put back, word for word (H3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import msgspec

from ..ledger import Fact, File, Ledger, base_name, by_folder, clipped, fitting, missing, must_keep
from ..references import citation

HEADING = "## From the log, word for word"
_TITLES = {
    "task": "The task",
    "constraint": "The user said",
    "pending": "Still to be done",
    "error": "Last errors",
    "file": "Files changed",
    "read": "Files read",
}
_SHARES = {"task": 0.35, "constraint": 0.6, "pending": 0.3, "error": 0.3, "file": 0.4}
"""What part of the room each may take at most; what else the user said has what is left."""
_READ = 0.2
"""Files that were only read come last (P13)."""
_LEAST = 0.05
"""What part of it each leaves for every kind that comes after it."""
_CITED = 8
_TRIES = 6
_LEAST_TASK = 40
"""Fewer characters of a task would not say what it is."""


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
    known = f"{summary}\n{visible}"
    lost = _each_once(missing(must_keep(ledger), known))
    read = [file for file in ledger.files if not file.edits and base_name(file.path) not in known]
    texts = [*(fact.text for fact in lost), *(file.path for file in read)]
    characters = int(room * _characters_in_token(texts, measure))
    for _ in range(_TRIES):
        section, told = _section(lost, ledger, read, characters)
        if not section or (size := measure(section)) <= room:
            return Verified(section, told, len(lost) - told)
        characters = int(characters * min(0.9, room / size))
    return Verified("", 0, len(lost))


def _each_once(facts: Sequence[Fact]) -> list[Fact]:
    """What was said several times, as of the last time."""
    newest: dict[tuple[str, str], Fact] = {}
    for fact in reversed(facts):
        newest.setdefault((fact.kind, fact.text), fact)
    return list(newest.values())[::-1]


def _characters_in_token(texts: Iterable[str], measure: Callable[[str], int]) -> float:
    sample = "\n".join(texts)[:20_000]
    return len(sample) / max(1, measure(sample)) if sample else 1.0


def _section(lost: Sequence[Fact], ledger: Ledger, read: Sequence[File], room: int) -> tuple[str, int]:
    left, told = room - len(HEADING), 0
    chosen: dict[str, list[str]] = {}
    said: list[Fact] = []
    kinds = [kind for kind in _SHARES if any(fact.kind == kind for fact in lost)]
    for place, kind in enumerate(kinds, 1):
        facts = [fact for fact in lost if fact.kind == kind]
        others = room * _LEAST * (len(kinds) - place)
        most = int(min(left - others, room * _SHARES[kind])) - len(_TITLES[kind]) - 5
        if most <= 0:
            continue
        if kind == "task":
            lines = [clipped(facts[0].text, most)] if most >= min(_LEAST_TASK, len(facts[0].text)) else []
        elif kind == "constraint":
            task = "\n".join(chosen.get("task", ()))
            apart = [fact for fact in facts if fact.text not in task]
            told += len(facts) - len(apart)
            kept = _newest(apart, most)
            said += kept
            lines = [fact.text for fact in kept]
        elif kind == "file":
            changed = {fact.text for fact in facts}
            lines = fitting(by_folder(file for file in ledger.files if file.path in changed), most)
        else:
            lines = fitting((f"- {fact.text}" for fact in reversed(facts)), most)[::-1]
        if lines:
            left -= sum(len(line) + _CITED for line in lines) + len(_TITLES[kind]) + 5
            told += _told(lines, facts, kind)
            chosen[kind] = lines
    more = _newest([fact for fact in lost if fact.kind == "said"], left)
    if said or more:
        chosen["constraint"] = _quoted(said + more)
    left -= sum(len(fact.text) + _CITED for fact in more) + len(_TITLES["read"]) + 5
    chosen["read"] = fitting(by_folder(read), min(left, int(room * _READ)))
    parts = [f"### {_TITLES[kind]}\n" + "\n".join(chosen[kind]) for kind in _TITLES if chosen.get(kind)]
    return ("\n\n".join([HEADING, *parts]), told + len(more)) if parts else ("", 0)


def _told(lines: Sequence[str], facts: Sequence[Fact], kind: str) -> int:
    if kind != "file":
        return len(lines)
    text = "\n".join(lines)
    return sum(base_name(fact.text) in text for fact in facts)


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
