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
    lost = _each_once(missing(must_keep(ledger), f"{summary}\n{visible}"))
    characters = int(room * _characters_in_token(lost, measure))
    for _ in range(_TRIES):
        section, told = _section(lost, ledger, characters)
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


def _characters_in_token(facts: Sequence[Fact], measure: Callable[[str], int]) -> float:
    sample = "\n".join(fact.text for fact in facts)[:20_000]
    return len(sample) / max(1, measure(sample)) if sample else 1.0


def _section(lost: Sequence[Fact], ledger: Ledger, room: int) -> tuple[str, int]:
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


_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)]|\|)\s+(?!\s|\[ ?\])")
_AHEAD = re.compile(
    r"(?i)next|pending|to[- ]?do|plan|open|remain|blocked|step|schritt|offen|ausstehend|à faire|prochain|pendiente"
    r"|siguiente|próxim|下一步|待办|待辦|计划|計劃|未完成"
)
_TITLE = re.compile(r"\s*(?:#+\s|\*\*[^*]+\*\*[:：]?\s*$|[A-Z][A-Z &]+$)")
_LABEL = re.compile(r"\s*(?:\d+[.)]\s*)?\w[^.|]{0,60}[:：]\s*$")
_ORDINARY = re.compile(
    r"(?:\w\.)+\w"  # e.g, d.h, p.m
    r"|[^\W\d_]{1,4}\.\d+"  # Nr.5
    r"|[A-Z]{2,}s"  # APIs
)
_NUMBER = re.compile(r"#?(?=.{4})\d+(?:[.-]\d+)*")
_UNIT = re.compile(r"(\d+)[^\W\d_]{1,5}")
_GROUPED = re.compile(r"(?<=\d)[,.'’_ \u00a0\u202f](?=\d{3})")
_WORDING = re.compile(r"[^\W\d_]+|\d+(?:[.-]\d+)+|(?:19|20)\d\d")
"""What may be another way to put what is there: a name in letters alone (`JavaScript`), a date, a version."""


def checked(summary: str, history: Callable[[], str]) -> Checked:
    """Find names that occur nowhere in the history; a list item that holds no other name goes.

    What lies ahead may have new names: plans are left alone. So is a summary that would have nothing left.
    """
    named = {name for line in summary.splitlines() for name in _exact(line)}
    if not named:
        return Checked(summary)
    told = history().lower()
    invented = {name for name in named if name.lower() not in told}
    if invented:
        plain = _GROUPED.sub("", told)
        invented = {name for name in invented if not _is_said_otherwise(name.lower(), plain)}
    if not invented:
        return Checked(summary)
    kept, removed, ahead = [], 0, False
    for line in summary.splitlines():
        if _TITLE.match(line) or _LABEL.match(line):
            ahead = _AHEAD.search(line) is not None or (ahead and not _TITLE.match(line))
        names = set(_exact(line))
        made_up = names <= invented and not all(map(_WORDING.fullmatch, names))
        if made_up and not ahead and _ITEM.match(line):
            removed += 1
        else:
            kept.append(line)
    if not any(line.strip() and not _TITLE.match(line) for line in kept):
        return Checked(summary, tuple(sorted(invented)))
    return Checked("\n".join(kept), tuple(sorted(invented)), removed)


def _is_said_otherwise(name: str, told: str) -> bool:
    """Does it occur with commas in its number, its unit apart, or without its hyphens?"""
    name = _GROUPED.sub("", name)
    if unit := _UNIT.fullmatch(name):
        name = unit[1]
    pieces = [name] if "." in name else name.split("-")
    return all(piece in told for piece in pieces)


def _exact(line: str) -> list[str]:
    """Names that a reader would take at their word: files, identifiers, long numbers."""
    return [
        name
        for name, kind in names_in(line)
        if (kind == "number" and _NUMBER.fullmatch(name))
        or (kind in ("file", "code") and not name.isupper() and not _ORDINARY.fullmatch(name))
    ]
