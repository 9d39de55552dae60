"""Workstream state: a few short lists that are stored next to the summary and updated by deltas."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from ..messages.json_text import decodable
from .structured import one_line

Status = Literal["open", "in_progress", "done", "blocked"]
LIST_CAPS = {
    "key_decisions": 8,
    "active_constraints": 6,
    "tasks": 10,
    "open_questions": 5,
    "risks": 5,
    "artifacts": 10,
    "agent_contributions": 6,
}
"""Maximum items of each list after a merge."""
_SUFFIXES: dict[Status | None, str] = {status: f" ({status.replace('_', ' ')})" for status in get_args(Status)}
"""Follow the text of a task."""
_WORD = re.compile(r"\w+")
_STATE_LINE = re.compile(r"- \[([^\]\s]+)\] (.*)$")


class StateItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a list."""

    id: str
    text: str
    status: Status | None = None
    """Only for tasks."""


@decodable
class WorkstreamState(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The lists, oldest entries first."""

    key_decisions: tuple[StateItem, ...] = ()
    active_constraints: tuple[StateItem, ...] = ()
    tasks: tuple[StateItem, ...] = ()
    open_questions: tuple[StateItem, ...] = ()
    risks: tuple[StateItem, ...] = ()
    artifacts: tuple[StateItem, ...] = ()
    agent_contributions: tuple[StateItem, ...] = ()
    issued: int = 0
    """Number of ids issued so far; an id is never reused."""


class StateChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry to add, or to change if its id or its text is known."""

    text: str = ""
    id: str = ""
    status: Status | None = None


@decodable
class StateDelta(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Changes to the lists."""

    key_decisions: tuple[StateChange, ...] = ()
    active_constraints: tuple[StateChange, ...] = ()
    tasks: tuple[StateChange, ...] = ()
    open_questions: tuple[StateChange, ...] = ()
    risks: tuple[StateChange, ...] = ()
    artifacts: tuple[StateChange, ...] = ()
    agent_contributions: tuple[StateChange, ...] = ()
    removed: tuple[str, ...] = ()
    """Ids or texts of entries to remove."""


def apply_delta(state: WorkstreamState, delta: StateDelta) -> WorkstreamState:
    """Returns the state after a delta, within its caps. Idempotent: applying the delta again changes nothing."""
    issued, lists = state.issued, dict[str, tuple[StateItem, ...]]()
    for name, cap in LIST_CAPS.items():
        changes: Sequence[StateChange] = getattr(delta, name)
        named = {change.id for change in changes}
        kept = _enforce_cap(list(_apply_changes(getattr(state, name), changes, delta.removed, name == "tasks")), cap)
        for at, item in enumerate(kept):
            while not kept[at].id:
                issued += 1
                number = f"{name.rpartition('_')[2][0]}{issued}"
                kept[at] = StateItem("" if number in named else number, item.text, item.status)
        lists[name] = tuple(kept)
    return WorkstreamState(issued=issued, **lists)


def _apply_changes(
    items: Sequence[StateItem], changes: Sequence[StateChange], removed: Iterable[str], task: bool
) -> Iterator[tuple[StateItem, int]]:
    """Yields entries in order, each with the index of its change or -1; new entries have no id yet.

    A delta does not remove what it states, and no two entries have the same text.
    """
    known = {item.id: item for item in items}
    stated = _group_changes(changes, known)
    found: dict[str, tuple[StateItem, int]] = {}
    new: list[tuple[StateItem, int]] = []
    for at, change in sorted(enumerate(stated.values()), key=lambda place: place[1].id not in known):
        name = change.id
        if name not in known or name in found:
            left = (item for item in items if item.id not in found)
            name = next((one.id for one in left if comparable_text(one.text) == comparable_text(change.text)), "")
        item = StateItem(name, change.text, _new_status(change, known.get(name)) if task else None)
        if name:
            found[name] = (item, at)
        else:
            new.append((item, at))
    gone = {*removed, *map(comparable_text, removed)}
    for item in items:
        if item.id in found:
            yield found[item.id]
        elif not {*stated, *gone} & {comparable_text(item.text)} and item.id not in gone:
            yield item, -1
    yield from new


def _new_status(change: StateChange, known: StateItem | None) -> Status:
    """Returns the change's status, else the known one; a done task that is stated again is reopened."""
    if change.status or known is None or known.status is None or known.status == "done":
        return change.status or "open"
    return known.status


def _group_changes(changes: Sequence[StateChange], known: Mapping[str, StateItem]) -> dict[str, StateChange]:
    """Returns changes by text, without duplicates; one that names an entry by its id alone states it as it is."""
    texts = {change.id: change.text for change in changes if change.id and comparable_text(change.text)}
    stated: dict[str, StateChange] = {}
    for change in changes:
        if not comparable_text(change.text):
            item = StateItem("", texts[change.id]) if change.id in texts else known.get(change.id, StateItem("", ""))
            change = StateChange(item.text, change.id, change.status or item.status)
        if text := comparable_text(change.text):
            old = stated.get(text, change)
            stated[text] = StateChange(change.text, old.id or change.id, change.status or old.status)
    return stated


def _enforce_cap(items: Sequence[tuple[StateItem, int]], cap: int) -> list[StateItem]:
    """Evicts done entries first, then the oldest; entries of this delta are evicted last."""
    places = range(len(items))
    going = sorted(places, key=lambda place: (items[place][0].status != "done", items[place][1], place))
    stay = set(going[max(0, len(items) - cap) :])
    return [items[place][0] for place in places if place in stay]


def comparable_text(text: str) -> str:
    """Normalizes a text for comparison: lower case, words only."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold())) or text.strip()


def render_state(state: WorkstreamState) -> str:
    """Renders each list under its name and each entry with its id, for prompts and contexts."""
    blocks = []
    for name in LIST_CAPS:
        lines = [
            f"- [{item.id}] {one_line(item.text)}{_SUFFIXES.get(item.status, '')}" for item in getattr(state, name)
        ]
        if lines:
            blocks.append("\n".join([f"{name.replace('_', ' ').upper()}:", *lines]))
    return "\n\n".join(blocks)


def parse_state(text: str) -> WorkstreamState | None:
    """Returns the state that `render_state` wrote; None if the text has none of its lists."""
    titles = {f"{name.replace('_', ' ').upper()}:": name for name in LIST_CAPS}
    lists: dict[str, list[StateItem]] = {}
    items: list[StateItem] | None = None
    for line in text.splitlines():
        if line in titles:
            items = lists.setdefault(titles[line], [])
        elif items is not None and (found := _STATE_LINE.match(line)):
            ends = _SUFFIXES.items() if items is lists.get("tasks") else ()
            status, end = next(((status, end) for status, end in ends if found[2].endswith(end)), (None, ""))
            items.append(StateItem(found[1], found[2].removesuffix(end), status))
    issued = [int(digits) for named in lists.values() for item in named if (digits := item.id[1:]).isdecimal()]
    if not lists:
        return None
    return WorkstreamState(issued=max(issued, default=0), **{name: tuple(named) for name, named in lists.items()})
