"""What a long piece of work stands at: a few short lists, kept beside the summary and changed by deltas (W5, W9)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from .structured import folded

Status = Literal["open", "in_progress", "done", "blocked"]
CAPS = {
    "key_decisions": 8,
    "active_constraints": 6,
    "tasks": 10,
    "open_questions": 5,
    "risks": 5,
    "artifacts": 10,
    "agent_contributions": 6,
}
"""So many items each list holds after a merge."""
_WORD = re.compile(r"\w+")


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a list."""

    id: str
    text: str
    status: Status | None = None
    """Of a task."""


class State(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The lists, oldest entries first."""

    key_decisions: tuple[Item, ...] = ()
    active_constraints: tuple[Item, ...] = ()
    tasks: tuple[Item, ...] = ()
    open_questions: tuple[Item, ...] = ()
    risks: tuple[Item, ...] = ()
    artifacts: tuple[Item, ...] = ()
    agent_contributions: tuple[Item, ...] = ()
    issued: int = 0
    """How many ids were given out: none is given twice."""


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry to add, or to change if its id or its text is known."""

    text: str = ""
    id: str = ""
    status: Status | None = None


class Delta(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What became different."""

    key_decisions: tuple[Change, ...] = ()
    active_constraints: tuple[Change, ...] = ()
    tasks: tuple[Change, ...] = ()
    open_questions: tuple[Change, ...] = ()
    risks: tuple[Change, ...] = ()
    artifacts: tuple[Change, ...] = ()
    agent_contributions: tuple[Change, ...] = ()
    removed: tuple[str, ...] = ()
    """Ids or texts of entries that no longer hold."""


def merge(state: State, delta: Delta) -> State:
    """The state after a delta, within its caps; the same delta once more changes nothing."""
    issued, lists = state.issued, dict[str, tuple[Item, ...]]()
    for name, cap in CAPS.items():
        changes: Sequence[Change] = getattr(delta, name)
        named = {change.id for change in changes}
        kept = _capped(list(_changed(getattr(state, name), changes, delta.removed, name == "tasks")), cap)
        for at, item in enumerate(kept):
            while not kept[at].id:
                issued += 1
                number = f"{name.rpartition('_')[2][0]}{issued}"
                kept[at] = Item("" if number in named else number, item.text, item.status)
        lists[name] = tuple(kept)
    return State(issued=issued, **lists)


def _changed(
    items: Sequence[Item], changes: Iterable[Change], removed: Iterable[str], task: bool
) -> Iterator[tuple[Item, int]]:
    """Entries in their order, each with the place of the change that states it, or -1; new ones have no id yet.

    What the delta states is not removed by it, and two entries never say the same.
    """
    stated, marked = _sorted_out(changes)
    known = {item.id: item for item in items}
    found: dict[str, tuple[Item, int]] = {}
    new: list[tuple[Item, int]] = []
    for at, change in sorted(enumerate(stated.values()), key=lambda place: place[1].id not in known):
        by_text = {same(item.text): item.id for item in items if item.id not in found}
        name = change.id if change.id in known and change.id not in found else by_text.get(same(change.text), "")
        item = Item(name, change.text, _status(change, known.get(name)) if task else None)
        if name:
            found[name] = (item, at)
        else:
            new.append((item, at))
    gone = {*removed, *map(same, removed)}
    for item in items:
        if item.id in found:
            yield found[item.id]
        elif same(item.text) not in stated and item.id in marked:
            yield Item(item.id, item.text, (marked[item.id] or item.status) if task else None), len(stated)
        elif same(item.text) not in stated and not gone & {item.id, same(item.text)}:
            yield item, -1
    yield from new


def _status(change: Change, known: Item | None) -> Status:
    """A task that is stated again without a word on its status is as it was; if it was done, it is open again."""
    if change.status or known is None or known.status is None or known.status == "done":
        return change.status or "open"
    return known.status


def _sorted_out(changes: Iterable[Change]) -> tuple[dict[str, Change], dict[str, Status | None]]:
    """Changes by what they state, each text once; and the marks on entries that are named by their id alone."""
    stated: dict[str, Change] = {}
    marked: dict[str, Status | None] = {}
    for change in changes:
        if text := same(change.text):
            old = stated.get(text, change)
            stated[text] = Change(change.text, old.id or change.id, change.status or old.status)
        elif change.id:
            marked[change.id] = change.status or marked.get(change.id)
    for text, change in stated.items():
        stated[text] = Change(change.text, change.id, marked.pop(change.id, None) or change.status)
    return stated, marked


def _capped(items: Sequence[tuple[Item, int]], cap: int) -> list[Item]:
    """Done first out, then the oldest; what was stated just now stays longest."""
    places = range(len(items))
    going = sorted(places, key=lambda place: (items[place][0].status != "done", items[place][1], place))
    stay = set(going[max(0, len(items) - cap) :])
    return [items[place][0] for place in places if place in stay]


def same(text: str) -> str:
    """What two texts have in common that say the same in the same words."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold())) or text.strip()


def render(state: State) -> str:
    """For a prompt and for a context: each list under its name, each entry with its id."""
    blocks = []
    for name in CAPS:
        lines = [f"- [{item.id}] {folded(item.text)}{_told(item.status)}" for item in getattr(state, name)]
        if lines:
            blocks.append("\n".join([f"{name.replace('_', ' ').upper()}:", *lines]))
    return "\n\n".join(blocks)


def _told(status: Status | None) -> str:
    return f" ({status.replace('_', ' ')})" if status else ""
