"""Workstream state: lists that are changed by deltas and bounded by caps (W5, W9)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.summaries.state import (
    LIST_CAPS,
    StateChange,
    StateDelta,
    StateItem,
    WorkstreamState,
    apply_delta,
    render_state,
)

TEXTS = st.sampled_from([*"ABCDEFGHIJKLM", "a", "a.", "", " ", "→", "潮汐", "two\nlines"])
IDS = st.sampled_from(["", "", *(f"{kind}{number}" for kind in "tdc" for number in range(1, 15))])
STATUSES = st.sampled_from([None, "open", "in_progress", "done", "blocked"])
CHANGES = st.lists(st.builds(StateChange, TEXTS, IDS, STATUSES), max_size=14).map(tuple)
DELTAS = st.builds(
    StateDelta,
    tasks=CHANGES,
    key_decisions=CHANGES,
    active_constraints=CHANGES,
    risks=CHANGES,
    removed=st.lists(TEXTS | IDS, max_size=3).map(tuple),
)


def after(*deltas: StateDelta) -> WorkstreamState:
    state = WorkstreamState()
    for delta in deltas:
        state = apply_delta(state, delta)
    return state


def tasks(*texts: str, **more: Any) -> StateDelta:
    return StateDelta(tasks=tuple(StateChange(text, **more) for text in texts))


def test_w9_caps_are_those_of_the_document() -> None:
    """W9, to the number."""
    assert list(LIST_CAPS.values()) == [8, 6, 10, 5, 5, 10, 6]
    assert (*LIST_CAPS, "issued") == WorkstreamState.__struct_fields__
    assert (*LIST_CAPS, "removed") == StateDelta.__struct_fields__


@pytest.mark.parametrize(("name", "cap"), LIST_CAPS.items())
def test_cap_evicts_the_oldest_first(name: str, cap: int) -> None:
    first = StateDelta(**{name: tuple(StateChange(f"old {number}") for number in range(cap))})
    second = StateDelta(**{name: (StateChange("new"),)})
    texts = [item.text for item in getattr(after(first, second), name)]
    assert texts == [f"old {number}" for number in range(1, cap)] + ["new"]


def test_cap_evicts_done_before_open() -> None:
    many = after(tasks(*"ABCDEFGHIJ"), tasks("J", status="done"), tasks("K"))
    assert [item.text for item in many.tasks] == [*"ABCDEFGHI", "K"]


def test_ids_are_stable_and_never_reused() -> None:
    state = after(tasks("A", "B"), StateDelta(removed=("t1",)), tasks("C"))
    assert state.tasks == (StateItem("t2", "B", "open"), StateItem("t3", "C", "open"))


def test_change_by_id() -> None:
    state = after(
        tasks("Mend K7", "Rest"),
        StateDelta(tasks=(StateChange("Mend K7 and K8", "t1", "in_progress"), StateChange("", "t2", "done"))),
    )
    assert state.tasks == (StateItem("t1", "Mend K7 and K8", "in_progress"), StateItem("t2", "Rest", "done"))


def test_change_by_text() -> None:
    assert after(tasks("Mend K7"), tasks("mend k7.", status="blocked")).tasks == (
        StateItem("t1", "mend k7.", "blocked"),
    )


def test_task_keeps_status_and_restated_done_task_is_reopened() -> None:
    first = StateDelta(
        tasks=(StateChange("A", "", "blocked"), StateChange("B", "", "done"), StateChange("C", "", "done"))
    )
    state = after(first, StateDelta(tasks=(StateChange("A"), StateChange("B"), StateChange("", "t3"))))
    assert [item.status for item in state.tasks] == ["blocked", "open", "done"]


def test_unknown_id_is_ignored() -> None:
    state = after(StateDelta(tasks=(StateChange("A", "t2"), StateChange("B", "t2"), StateChange("", "t9", "done"))))
    assert state.tasks == (StateItem("t1", "A", "open"), StateItem("t3", "B", "open"))


def test_id_alone_changes_the_entry_that_the_delta_states_under_it() -> None:
    state = after(tasks("A"), StateDelta(tasks=(StateChange("B", "t1"), StateChange("", "t1", "done"))))
    assert state.tasks == (StateItem("t1", "B", "done"),)
    state = after(StateDelta(tasks=(StateChange("", "t9", "blocked"), StateChange("C", "t9"))))
    assert state.tasks == (StateItem("t1", "C", "blocked"),)


def test_status_is_dropped_outside_tasks() -> None:
    assert after(StateDelta(risks=(StateChange("Storm", "", "done"),))).risks == (StateItem("r1", "Storm"),)


def test_removal_by_id_or_text_unless_restated() -> None:
    state = after(tasks("A", "B", "C"), StateDelta(tasks=(StateChange("C"),), removed=("t1", "b", "C", "nobody")))
    assert [item.text for item in state.tasks] == ["C"]


def test_entries_have_distinct_texts() -> None:
    state = after(tasks("A", "B"), StateDelta(tasks=(StateChange("B", "t1", "done"),)))
    assert state.tasks == (StateItem("t1", "B", "done"),)


@given(st.lists(DELTAS, max_size=4))
def test_caps_hold_and_ids_and_texts_are_unique(deltas: list[StateDelta]) -> None:
    state = after(*deltas)
    for name, cap in LIST_CAPS.items():
        items = getattr(state, name)
        assert len(items) <= cap
        assert len({item.id for item in items}) == len(items)
        assert len({item.text.casefold() for item in items}) == len(items)
        assert all(item.id and item.text.strip() for item in items)


@given(st.lists(DELTAS, max_size=3), DELTAS)
def test_apply_delta_is_idempotent(deltas: list[StateDelta], delta: StateDelta) -> None:
    state = after(*deltas, delta)
    assert apply_delta(state, delta) == state
    assert after(*deltas, delta) == state


STATED = st.lists(st.builds(StateChange, st.sampled_from("ABCDEFGHIJKLMNOP"), st.just(""), STATUSES), max_size=16)


@given(st.lists(STATED.map(lambda changes: StateDelta(tasks=tuple(changes))), min_size=1, max_size=4))
def test_open_task_is_not_evicted_before_a_done_one(deltas: list[StateDelta]) -> None:
    before, now = after(*deltas[:-1]).tasks, after(*deltas).tasks
    left = {item.text for item in before} - {item.text for item in now} - {change.text for change in deltas[-1].tasks}
    if any(item.status != "done" for item in before if item.text in left):
        assert all(item.status != "done" for item in now)


def test_render_state_shows_ids() -> None:
    """W5: with ids, so that a delta can name what it changes."""
    state = after(
        StateDelta(key_decisions=(StateChange("Use\ncm"),), tasks=(StateChange("Mend K7", "", "in_progress"),))
    )
    assert render_state(state) == "KEY DECISIONS:\n- [d1] Use cm\n\nTASKS:\n- [t2] Mend K7 (in progress)"
    assert render_state(WorkstreamState()) == ""


@given(st.lists(DELTAS, max_size=2))
def test_state_round_trips_through_json(deltas: list[StateDelta]) -> None:
    """A checkpoint carries it."""
    state = after(*deltas)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(state)), WorkstreamState) == state
