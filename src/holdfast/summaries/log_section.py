"""The section that code adds to a summary from the log: facts that the model dropped, and all that is carried on.

A process that has only the messages reads the section back, so it states the round and, whether or not the summary
mentions them, the task, the user's rules and the files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import get_args

import msgspec

from ..context.references import NUMBER, citation
from ..ledger import (
    ROUND,
    Fact,
    FactKind,
    FileRecord,
    Ledger,
    base_name,
    clip,
    find_task,
    list_by_folder,
    missing_facts,
    quote_structure,
    required_facts,
    take_fitting,
)
from ..ledger.facts import EARLIER_SUMMARY
from ..ledger.files import parse_file_list
from ..ledger.lines import LedgerLine
from ..ledger.parse import cited_lines, parse_number, parse_page, split_sections
from ..ledger.text import unquote_structure
from .summarizer import write_to_fit

LOG_HEADING = "## From the log, word for word"
"""Heading of the facts that are added to a summary from the log."""
_TITLES = {
    "task": "The task",
    "constraint": "The user said",
    "pending": "Still to be done",
    "error": "Last errors",
    "file": "Files changed",
    "earlier": "From the earlier summary",
    "read": "Files read",
}
_LAST_MESSAGE, _LAST_REPLY = "The user's last message", "The reply to it"
_LAST_STEPS = "Done since the user's last message"
_SHOWN_AS_TASK = "(the task)"
_LAST_SHARE, _STEPS_SHARE = 0.6, 0.15
"""Shares of the room for the last message with its reply, and for the steps since."""
_MAX_REPLY_CHARACTERS = 1_200
_SHARES = {"task": 0.35, "constraint": 0.6, "pending": 0.3, "error": 0.3, "file": 0.4, "earlier": 0.3}
"""Maximum share of the room for each kind of fact; other user statements get the rest."""
_CARRIED = ("file", "earlier")
"""Facts that the section states although the summary covers them, for a round that has only the messages."""
_READ_RESERVE, _READ_SHARE = 0.2, 0.5
"""Share that the user's statements leave for files that were only read, and the most that these take; last."""
_COVERED_SHARE = 0.2
"""Share of the user's statements that the summary covers in other words."""
_MIN_SHARE = 0.05
"""Share that each kind leaves for every kind after it."""
_CITATION_CHARACTERS = 8
_MIN_TASK_CHARACTERS = 40
"""Minimum characters of the task that are worth showing."""
_ROUND_LINE = re.compile(
    rf"{ROUND}({NUMBER}): ({NUMBER}) messages? archived(?:, the task is \[({NUMBER})\])?\.$", re.MULTILINE
)


class RestoredFacts(msgspec.Struct, frozen=True):
    """A section with facts that the summary lost, and with those that are carried on."""

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


class LastRequest(msgspec.Struct, frozen=True):
    """The user's newest message, with its archived reply or the archived steps since."""

    place: int
    text: str
    reply: str = ""
    """The final reply, archived with the message itself; empty if the message stays visible."""
    reply_place: int = 0
    steps: tuple[tuple[int, str], ...] = ()
    """Message number and description of each archived step, if there is no final reply."""


class Archived(msgspec.Struct, frozen=True):
    """The archived messages: how many, in which round, and where the user's words can still be read."""

    round: int
    count: int
    staying: Collection[int] = ()
    """Numbers of those that stay visible."""
    shows_task: bool = False
    """Whether the summary shows the task in a section of its own."""
    last: LastRequest | None = None
    """The newest user message, if anything after it is archived."""

    def opening(self, task: LedgerLine | None = None) -> str:
        """Returns the heading and the line with the round; `task` is the one that the note shows."""
        messages = "1 message" if self.count == 1 else f"{self.count:,} messages"
        shown = f", the task is {citation(task.place)}" if task else ""
        return f"{LOG_HEADING}\n{ROUND}{self.round:,}: {messages} archived{shown}."


def log_section(
    summary: str,
    visible: str,
    ledger: Ledger,
    room: int,
    measure: Callable[[str], int],
    archived: Archived | None = None,
    kinds: Collection[FactKind] = get_args(FactKind),
) -> RestoredFacts:
    """Returns a section, within `room` tokens, with facts that neither the summary nor the visible messages contain.

    With `archived`, a later round reads everything back from it: it also states the round and what is covered. Without,
    it has facts of these kinds, and files that were read if files are one of them.
    """
    known, facts = f"{summary}\n{visible}", _deduplicate(required_facts(ledger))
    if archived is None:
        facts = [fact for fact in facts if fact.kind in kinds]
        heading, lost = f"{LOG_HEADING}\n\n", missing_facts(facts, known)
        read = [file for file in ledger.files if not file.edits and base_name(file.path) not in known]
        read = read if "file" in kinds else []
        found = _fit(lost, (), ledger, read, room - measure(heading), measure)
        return msgspec.structs.replace(found, section=heading + found.section) if found.section else found
    task, request = find_task(ledger.users), archived.last
    last = _last_request(request, task, room, measure, archived.shows_task) if request else ""
    quotes_task = bool(last and task and request and request.reply and task.place == request.place)
    shows_task = archived.shows_task or quotes_task
    facts = [fact for fact in facts if not (fact.kind == "task" and shows_task)]
    if task is not None and request is not None and not request.reply and request.place < task.place:
        # an earlier request is still visible: it is the task, and this one a later statement
        facts = [msgspec.structs.replace(fact, kind="constraint") if fact.kind == "task" else fact for fact in facts]
    lost = missing_facts(facts, f"{known}\n{last}")
    missing = set(lost)
    covered = [
        fact
        for fact in facts
        if fact not in missing and (fact.kind in _CARRIED or not fact.place > 0 or fact.place not in archived.staying)
    ]
    read = [file for file in ledger.files if not (file.edits or file.deleted)]
    left = room - measure(archived.opening(task)) - measure(last)
    found = _fit(lost, covered, ledger, read, left, measure)
    shown = shows_task or found.section.startswith(_heading("task"))
    opening = archived.opening(task if shown else None)
    return msgspec.structs.replace(found, section="\n\n".join(filter(None, (opening, found.section, last))))


def _last_request(
    last: LastRequest, task: LedgerLine | None, room: int, measure: Callable[[str], int], shows_task: bool
) -> str:
    """Returns the last message with its reply, or the steps since it, so that none of them is done again."""
    is_shown = shows_task and task is not None and task.place == last.place
    share = int(room * (_LAST_SHARE if last.reply else _STEPS_SHARE))
    characters = int(share * _characters_in_token([last.text, last.reply, *(text for _, text in last.steps)], measure))

    def write(characters: int) -> str:
        return _answered(last, characters, is_shown) if last.reply else _steps(last, characters)

    return write_to_fit(write, characters, share, measure)


def _answered(last: LastRequest, characters: int, is_shown: bool) -> str:
    text = _SHOWN_AS_TASK if is_shown else quote_structure(clip(last.text, characters * 3 // 4))
    reply = quote_structure(clip(last.reply, min(_MAX_REPLY_CHARACTERS, characters // 4)))
    parts = ((_LAST_MESSAGE, last.place, text), (_LAST_REPLY, last.reply_place, reply))
    return "\n\n".join(f"### {title}\n{citation(place)} {shown}" for title, place, shown in parts)


def _steps(last: LastRequest, characters: int) -> str:
    lines = [f"{citation(place)} {quote_structure(text)}" for place, text in last.steps]
    kept = take_fitting(reversed(lines), characters - len(_LAST_STEPS) - 5)[::-1]
    return "\n".join([f"### {_LAST_STEPS}", *kept]) if kept else ""


def _heading(kind: str) -> str:
    return f"### {_TITLES[kind]}\n"


def _fit(
    lost: Sequence[Fact],
    covered: Sequence[Fact],
    ledger: Ledger,
    read: Sequence[FileRecord],
    room: int,
    measure: Callable[[str], int],
) -> RestoredFacts:
    """Returns the largest section that fits `room` tokens, without its heading."""
    texts = [*(fact.text for fact in (*lost, *covered)), *(file.path for file in read)]

    def write(characters: int) -> str:
        return _build_section(lost, covered, ledger, read, characters - len(LOG_HEADING))

    section = write_to_fit(write, int(room * _characters_in_token(texts, measure)), room, measure)
    left_out = sum(not _is_shown(fact, section) for fact in lost)
    return RestoredFacts(section, len(lost) - left_out, left_out)


def _is_shown(fact: Fact, section: str) -> bool:
    """Returns whether a section shows a fact: of the task, its beginning is enough."""
    if fact.kind == "task":
        return section.startswith(_heading("task"))
    text = base_name(fact.text) if fact.kind == "file" else fact.text
    return text in section or quote_structure(text) in section


def _deduplicate(facts: Sequence[Fact]) -> list[Fact]:
    """Keeps the last occurrence of repeated facts."""
    newest: dict[tuple[str, str], Fact] = {}
    for fact in reversed(facts):
        newest.setdefault((fact.kind, fact.text), fact)
    return list(newest.values())[::-1]


def _characters_in_token(texts: Iterable[str], measure: Callable[[str], int]) -> float:
    sample = "\n".join(texts)[:20_000]
    return len(sample) / max(1, measure(sample)) if sample else 1.0


def _build_section(
    lost: Sequence[Fact], covered: Sequence[Fact], ledger: Ledger, read: Sequence[FileRecord], room: int
) -> str:
    """Returns the section: the lost facts and, in the room that they leave, those that the summary covers."""
    left, chosen, rules = room, dict[str, list[str]](), list[Fact]()
    kinds = [kind for kind in _SHARES if any(fact.kind == kind for fact in (*lost, *covered))]
    for place, kind in enumerate(kinds, 1):
        facts, known = ([fact for fact in pool if fact.kind == kind] for pool in (lost, covered))
        others = room * _MIN_SHARE * (len(kinds) - place)
        most = int(min(left - others, room * _SHARES[kind])) - len(_TITLES[kind]) - 5
        if most <= 0:
            continue
        if kind == "task":
            text = [*facts, *known][0].text
            lines = [quote_structure(clip(text, most))] if most >= min(_MIN_TASK_CHARACTERS, len(text)) else []
        elif kind == "constraint":
            task = "\n".join(chosen.get("task", ()))
            rules += _choose_that_fit([fact for fact in facts if fact.text not in task], most)
            rules += _choose_that_fit([fact for fact in known if fact.text not in task], most - _size(rules))
            lines = [fact.text for fact in rules]
        elif kind == "file":
            changed = {fact.text for fact in (*facts, *known)}
            lines = take_fitting(list_by_folder(file for file in ledger.files if file.path in changed), most)
        elif kind == "earlier":
            lines = take_fitting((f"- {quote_structure(fact.text)}" for fact in (*facts, *known)), most)
        else:
            lines = take_fitting((f"- {fact.text}" for fact in reversed(facts)), most)[::-1]
        if lines:
            left -= sum(len(line) + _CITATION_CHARACTERS for line in lines) + len(_TITLES[kind]) + 5
            chosen[kind] = lines
    listed = list(list_by_folder(read))
    reserved = min(sum(len(line) + 1 for line in listed) + len(_TITLES["read"]) + 5, int(room * _READ_RESERVE))
    stated = _choose_that_fit([fact for fact in lost if fact.kind == "statement"], left - reserved)
    left -= _size(stated)
    known = [fact for fact in covered if fact.kind == "statement"]
    stated += (also := _choose_that_fit(known, min(left - reserved, int(room * _COVERED_SHARE))))
    if rules or stated:
        chosen["constraint"] = _with_citations([*rules, *stated])
    left -= _size(also) + len(_TITLES["read"]) + 5
    chosen["read"] = take_fitting(listed, min(left, int(room * _READ_SHARE)))
    return "\n\n".join(_heading(kind) + "\n".join(chosen[kind]) for kind in _TITLES if chosen.get(kind))


def _size(facts: Iterable[Fact]) -> int:
    return sum(len(fact.text) + _CITATION_CHARACTERS for fact in facts)


def _choose_that_fit(facts: Sequence[Fact], room: int) -> list[Fact]:
    """Returns facts that fit: one of each message first, so that a pasted text does not displace the others."""
    seen: Counter[int] = Counter()
    ranked: list[tuple[int, int]] = []
    for index, fact in enumerate(facts):
        ranked.append((seen[fact.place], -index))
        seen[fact.place] += 1
    kept: list[int] = []
    for _, index in sorted(ranked):
        size = len(facts[-index].text) + _CITATION_CHARACTERS
        if size <= room:
            room -= size
            kept.append(-index)
    return [facts[index] for index in sorted(kept)]


def _with_citations(facts: Iterable[Fact]) -> list[str]:
    """Groups sentences by message, in order, each with its citation."""
    ordered = groupby(sorted(facts, key=lambda fact: (fact.place, fact.order)), key=lambda fact: fact.place)
    return [f"{citation(place)} " + " ".join(fact.text for fact in group) for place, group in ordered]


# -- reading back -----------------------------------------------------------------------------------


class LogSection(msgspec.Struct, frozen=True):
    """A section as a later round reads it."""

    ledger: Ledger
    task_place: int | None = None
    """Number of the task, if the note shows it."""
    has_task: bool = False
    """Whether the section itself shows the task."""


def split_log_section(text: str) -> tuple[str, str]:
    """Splits a note's text into the summary and the section from the log with what follows it.

    The last heading counts: a model may write such a heading, too.
    """
    summary, heading, section = f"\n{text}".rpartition(f"\n{LOG_HEADING}")
    return (summary.strip(), heading.strip() + section) if heading else (text, "")


def parse_log_section(section: str) -> LogSection:
    """Returns the ledger that a section and the excerpts after it state."""
    ledger = parse_page(section)
    opened = _ROUND_LINE.search(section.partition("\n\n")[0])
    if opened:
        ledger.round, ledger.archived = parse_number(opened[1]), parse_number(opened[2])
    place = parse_number(opened[3]) if opened and opened[3] else None
    users, files, has_task = list[LedgerLine](), list[FileRecord](), False
    for heading, body in split_sections(section.partition("\n## ")[0], lambda line: line.startswith("### ")):
        title, items = heading.removeprefix("### "), [line[2:] for line in body if line[:2] == "- "]
        if title == _TITLES["task"]:
            users.insert(0, LedgerLine(unquote_structure("\n".join(body)).strip(), "user", "", place or 0, 0, 0))
            has_task = True
        elif title == _TITLES["constraint"]:
            users += cited_lines(body, "user")
        elif title == _LAST_MESSAGE:
            for line in cited_lines(body, "user"):
                if line.text != _SHOWN_AS_TASK:
                    has_task |= line.place == place
                    users.insert(0 if line.place == place else len(users), line)
        elif title == _LAST_REPLY:
            ledger.closings += cited_lines(body, "said")
        elif title == _LAST_STEPS:
            ledger.calls = cited_lines(body, "asked")
        elif title in (_TITLES["file"], _TITLES["read"]):
            files += parse_file_list(filter(str.strip, body))
        elif title == _TITLES["pending"]:
            ledger.plan, ledger.plan_from_page = [(item, "pending") for item in items], True
        elif title == _TITLES["earlier"]:
            ledger.closings += earlier_items(map(unquote_structure, items))
        elif title == _TITLES["error"] and not ledger.errors:
            ledger.errors = [LedgerLine(text, "output", "", 0, number, 0) for number, text in enumerate(items)]
    listed = {file.path for file in ledger.files}
    ledger.users, ledger.files = users, [*ledger.files, *(file for file in files if file.path not in listed)]
    return LogSection(ledger, place, has_task)


def earlier_items(texts: Iterable[str]) -> list[LedgerLine]:
    """Returns items of another tool's summary as a ledger carries them."""
    return [LedgerLine(text, "said", EARLIER_SUMMARY, 0, number, 0) for number, text in enumerate(texts)]
