"""Verifies a summary against the log: restores lost facts, reports hallucinated names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import msgspec

from ..context.references import citation
from ..ledger import (
    Fact,
    FileRecord,
    Ledger,
    base_name,
    clip,
    find_names,
    list_by_folder,
    missing_facts,
    name_kind,
    required_facts,
    take_fitting,
)

LOG_HEADING = "## From the log, word for word"
"""Heading of the facts that are added to a summary from the log."""
_TITLES = {
    "task": "The task",
    "constraint": "The user said",
    "pending": "Still to be done",
    "error": "Last errors",
    "file": "Files changed",
    "read": "Files read",
}
_SHARES = {"task": 0.35, "constraint": 0.6, "pending": 0.3, "error": 0.3, "file": 0.4}
"""Maximum share of the room for each kind of fact; other user statements get the rest."""
_READ_SHARE = 0.2
"""Share of files that were only read, which come last."""
_MIN_SHARE = 0.05
"""Share that each kind leaves for every kind after it."""
_CITATION_CHARACTERS = 8
_MAX_TRIES = 6
_MIN_TASK_CHARACTERS = 40
"""Minimum characters of the task that are worth showing."""


class RestoredFacts(msgspec.Struct, frozen=True):
    """A section with facts that the summary lost."""

    section: str
    restored: int = 0
    left_out: int = 0
    """Facts that did not fit."""

    @property
    def remarks(self) -> tuple[str, ...]:
        remarks = []
        if self.restored:
            remarks.append(f"{self.restored} facts missing from the summary were restored from the log")
        if self.left_out:
            remarks.append(f"{self.left_out} more did not fit: they are in the archive")
        return tuple(remarks)


def restore_missing_facts(
    summary: str, visible: str, ledger: Ledger, room: int, measure: Callable[[str], int]
) -> RestoredFacts:
    """Returns a section, within `room` tokens, with facts that neither the summary nor the visible messages contain."""
    known = f"{summary}\n{visible}"
    lost = _deduplicate(missing_facts(required_facts(ledger), known))
    read = [file for file in ledger.files if not file.edits and base_name(file.path) not in known]
    texts = [*(fact.text for fact in lost), *(file.path for file in read)]
    characters = int(room * _characters_in_token(texts, measure))
    for _ in range(_MAX_TRIES):
        section, included = _build_section(lost, ledger, read, characters)
        if not section or (size := measure(section)) <= room:
            return RestoredFacts(section, included, len(lost) - included)
        characters = int(characters * min(0.9, room / size))
    return RestoredFacts("", 0, len(lost))


def _deduplicate(facts: Sequence[Fact]) -> list[Fact]:
    """Keeps the last occurrence of repeated facts."""
    newest: dict[tuple[str, str], Fact] = {}
    for fact in reversed(facts):
        newest.setdefault((fact.kind, fact.text), fact)
    return list(newest.values())[::-1]


def _characters_in_token(texts: Iterable[str], measure: Callable[[str], int]) -> float:
    sample = "\n".join(texts)[:20_000]
    return len(sample) / max(1, measure(sample)) if sample else 1.0


def _build_section(lost: Sequence[Fact], ledger: Ledger, read: Sequence[FileRecord], room: int) -> tuple[str, int]:
    left, included = room - len(LOG_HEADING), 0
    chosen: dict[str, list[str]] = {}
    constraints: list[Fact] = []
    kinds = [kind for kind in _SHARES if any(fact.kind == kind for fact in lost)]
    for place, kind in enumerate(kinds, 1):
        facts = [fact for fact in lost if fact.kind == kind]
        others = room * _MIN_SHARE * (len(kinds) - place)
        most = int(min(left - others, room * _SHARES[kind])) - len(_TITLES[kind]) - 5
        if most <= 0:
            continue
        if kind == "task":
            lines = [clip(facts[0].text, most)] if most >= min(_MIN_TASK_CHARACTERS, len(facts[0].text)) else []
        elif kind == "constraint":
            task = "\n".join(chosen.get("task", ()))
            apart = [fact for fact in facts if fact.text not in task]
            included += len(facts) - len(apart)
            kept = _newest_that_fit(apart, most)
            constraints += kept
            lines = [fact.text for fact in kept]
        elif kind == "file":
            changed = {fact.text for fact in facts}
            lines = take_fitting(list_by_folder(file for file in ledger.files if file.path in changed), most)
        else:
            lines = take_fitting((f"- {fact.text}" for fact in reversed(facts)), most)[::-1]
        if lines:
            left -= sum(len(line) + _CITATION_CHARACTERS for line in lines) + len(_TITLES[kind]) + 5
            included += _count_included(lines, facts, kind)
            chosen[kind] = lines
    more = _newest_that_fit([fact for fact in lost if fact.kind == "statement"], left)
    if constraints or more:
        chosen["constraint"] = _with_citations(constraints + more)
    left -= sum(len(fact.text) + _CITATION_CHARACTERS for fact in more) + len(_TITLES["read"]) + 5
    chosen["read"] = take_fitting(list_by_folder(read), min(left, int(room * _READ_SHARE)))
    parts = [f"### {_TITLES[kind]}\n" + "\n".join(chosen[kind]) for kind in _TITLES if chosen.get(kind)]
    return ("\n\n".join([LOG_HEADING, *parts]), included + len(more)) if parts else ("", 0)


def _count_included(lines: Sequence[str], facts: Sequence[Fact], kind: str) -> int:
    if kind != "file":
        return len(lines)
    text = "\n".join(lines)
    return sum(base_name(fact.text) in text for fact in facts)


def _newest_that_fit(facts: Sequence[Fact], room: int) -> list[Fact]:
    """Returns as many of the newest facts as fit."""
    kept = []
    for fact in reversed(facts):
        if len(fact.text) + _CITATION_CHARACTERS <= room:
            room -= len(fact.text) + _CITATION_CHARACTERS
            kept.append(fact)
    return kept[::-1]


def _with_citations(facts: Iterable[Fact]) -> list[str]:
    """Groups sentences by message, in order, each with its citation."""
    ordered = groupby(sorted(facts, key=lambda fact: (fact.place, fact.order)), key=lambda fact: fact.place)
    return [f"{citation(place)} " + " ".join(fact.text for fact in group) for place, group in ordered]


class HallucinationCheck(msgspec.Struct, frozen=True):
    """A summary without list items that contain only hallucinated names."""

    text: str
    hallucinated: tuple[str, ...] = ()
    removed_lines: tuple[str, ...] = ()
    """The list items that were removed."""

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.hallucinated:
            return ()
        lines = "; ".join(map(str.strip, self.removed_lines))
        removed = f"; {len(self.removed_lines)} lines with no other name were removed: {lines}" if lines else ""
        return (
            f"the summary contains names that do not occur in the history: {', '.join(self.hallucinated)}{removed}",
        )


_LIST_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)]|\|)\s+(?!\s|\[ ?\])")
_PLAN_HEADING = re.compile(
    r"(?i)next|pending|to[- ]?do|plan|open|remain|blocked|step|schritt|offen|ausstehend|à faire|prochain|pendiente"
    r"|siguiente|próxim|下一步|待办|待辦|计划|計劃|未完成"
)
_PLAN_ITEM = re.compile(r"(?i)\s*[-*•]\s+\W*(?:immediate )?next (?:steps?|action)\W*[:：]")
"""The next step in a list: like a plan, it may contain new names."""
_TITLE = re.compile(r"\s*(?:#+\s|\*\*[^*]+\*\*[:：]?\s*$|[A-Z][A-Z &]+$)")
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

    Plans may contain new names and stay as they are; so does a summary that would become empty.
    """
    named = {name for line in summary.splitlines() for name in _exact_names(line)}
    if not named:
        return HallucinationCheck(summary)
    lowered = history().lower()
    hallucinated = {name for name in named if name.lower() not in lowered}
    if hallucinated:
        plain = _DIGIT_SEPARATOR.sub("", lowered)
        hallucinated = {name for name in hallucinated if not _is_reworded(name.lower(), plain)}
    if not hallucinated:
        return HallucinationCheck(summary)
    kept, removed, in_plan = list[str](), list[str](), False
    for line in summary.splitlines():
        if _TITLE.match(line) or _LABEL.match(line):
            in_plan = _PLAN_HEADING.search(line) is not None or (in_plan and not _TITLE.match(line))
        names = set(_exact_names(line))
        hallucinated_only = names <= hallucinated and not all(map(_REWORDABLE.fullmatch, names))
        if hallucinated_only and not in_plan and _LIST_ITEM.match(line) and not _PLAN_ITEM.match(line):
            removed.append(line)
        else:
            kept.append(line)
    if not any(line.strip() and not _TITLE.match(line) for line in kept):
        return HallucinationCheck(summary, tuple(sorted(hallucinated)))
    return HallucinationCheck("\n".join(kept), tuple(sorted(hallucinated)), tuple(removed))


def _is_reworded(name: str, history: str) -> bool:
    """Returns whether the name occurs with digit separators, with its unit apart, or without its hyphens."""
    name = _DIGIT_SEPARATOR.sub("", name)
    if unit := _WITH_UNIT.fullmatch(name):
        name = unit[1]
    pieces = [name] if "." in name else name.split("-")
    return all(piece in history for piece in pieces)


def _exact_names(line: str) -> list[str]:
    """Returns names that must be exact: files, identifiers, long numbers."""
    return [
        name
        for name in find_names(line)
        if ((kind := name_kind(name)) == "number" and _NUMBER.fullmatch(name))
        or (kind in ("file", "code") and not name.isupper() and not _ORDINARY_WORD.fullmatch(name))
    ]
