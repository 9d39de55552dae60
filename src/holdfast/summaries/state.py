"""Workstream state: a few short lists that are stored next to the summary and updated by deltas."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
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
_WORD = re.compile(r"\w+")


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
    items: Sequence[StateItem], changes: Iterable[StateChange], removed: Iterable[str], task: bool
) -> Iterator[tuple[StateItem, int]]:
    """Yields entries in order, each with the index of its change or -1; new entries have no id yet.

    A delta does not remove what it states, and no two entries have the same text.
    """
    stated, marked = _group_changes(changes)
    known = {item.id: item for item in items}
    found: dict[str, tuple[StateItem, int]] = {}
    new: list[tuple[StateItem, int]] = []
    for at, change in sorted(enumerate(stated.values()), key=lambda place: place[1].id not in known):
        by_text = {comparable_text(item.text): item.id for item in items if item.id not in found}
        name = (
            change.id
            if change.id in known and change.id not in found
            else by_text.get(comparable_text(change.text), "")
        )
        item = StateItem(name, change.text, _new_status(change, known.get(name)) if task else None)
        if name:
            found[name] = (item, at)
        else:
            new.append((item, at))
    gone = {*removed, *map(comparable_text, removed)}
    for item in items:
        if item.id in found:
            yield found[item.id]
        elif comparable_text(item.text) not in stated and item.id in marked:
            yield StateItem(item.id, item.text, (marked[item.id] or item.status) if task else None), len(stated)
        elif comparable_text(item.text) not in stated and not gone & {item.id, comparable_text(item.text)}:
            yield item, -1
    yield from new


def _new_status(change: StateChange, known: StateItem | None) -> Status:
    """Returns the change's status, else the known one; a done task that is stated again is reopened."""
    if change.status or known is None or known.status is None or known.status == "done":
        return change.status or "open"
    return known.status


def _group_changes(changes: Iterable[StateChange]) -> tuple[dict[str, StateChange], dict[str, Status | None]]:
    """Returns changes by text, without duplicates, and status changes of entries that are named by id alone."""
    stated: dict[str, StateChange] = {}
    marked: dict[str, Status | None] = {}
    for change in changes:
        if text := comparable_text(change.text):
            old = stated.get(text, change)
            stated[text] = StateChange(change.text, old.id or change.id, change.status or old.status)
        elif change.id:
            marked[change.id] = change.status or marked.get(change.id)
    for text, change in stated.items():
        stated[text] = StateChange(change.text, change.id, marked.pop(change.id, None) or change.status)
    return stated, marked


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
        lines = [f"- [{item.id}] {one_line(item.text)}{_status_suffix(item.status)}" for item in getattr(state, name)]
        if lines:
            blocks.append("\n".join([f"{name.replace('_', ' ').upper()}:", *lines]))
    return "\n\n".join(blocks)


_STATE_LINE = re.compile(r"- \[([^\]\s]+)\] (.*)$")
_STATUSES = tuple((f" ({status.replace('_', ' ')})", status) for status in get_args(Status))


def parse_state(text: str) -> WorkstreamState | None:
    """Returns the state that `render_state` wrote; None if the text has none of its lists."""
    titles = {f"{name.replace('_', ' ').upper()}:": name for name in LIST_CAPS}
    lists: dict[str, list[StateItem]] = {}
    items: list[StateItem] | None = None
    for line in text.splitlines():
        if line in titles:
            items = lists.setdefault(titles[line], [])
        elif items is not None and (found := _STATE_LINE.match(line)):
            items.append(_parse_item(found[1], found[2], items is lists.get("tasks")))
    issued = [int(digits) for named in lists.values() for item in named if (digits := item.id[1:]).isdecimal()]
    if not lists:
        return None
    return WorkstreamState(issued=max(issued, default=0), **{name: tuple(named) for name, named in lists.items()})


def _parse_item(id: str, text: str, task: bool) -> StateItem:
    suffix, status = next(((end, status) for end, status in _STATUSES if task and text.endswith(end)), ("", None))
    return StateItem(id, text.removesuffix(suffix), status)


def _status_suffix(status: Status | None) -> str:
    return f" ({status.replace('_', ' ')})" if status else ""
