"""The state of a workstream: short lists that a delta changes, and that never grow beyond their caps (W5, W9)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.summaries.state import CAPS, Change, Delta, Item, State, merge, render

TEXTS = st.sampled_from([*"ABCDEFGHIJKLM", "a", "a.", "", " ", "→", "潮汐", "two\nlines"])
IDS = st.sampled_from(["", "", *(f"{kind}{number}" for kind in "tdc" for number in range(1, 15))])
STATUSES = st.sampled_from([None, "open", "in_progress", "done", "blocked"])
CHANGES = st.lists(st.builds(Change, TEXTS, IDS, STATUSES), max_size=14).map(tuple)
DELTAS = st.builds(
    Delta,
    tasks=CHANGES,
    key_decisions=CHANGES,
    active_constraints=CHANGES,
    risks=CHANGES,
    removed=st.lists(TEXTS | IDS, max_size=3).map(tuple),
)


def after(*deltas: Delta) -> State:
    state = State()
    for delta in deltas:
        state = merge(state, delta)
    return state


def tasks(*texts: str, **more: Any) -> Delta:
    return Delta(tasks=tuple(Change(text, **more) for text in texts))


def test_the_caps() -> None:
    """W9, to the number."""
    assert list(CAPS.values()) == [8, 6, 10, 5, 5, 10, 6]
    assert (*CAPS, "issued") == State.__struct_fields__
    assert (*CAPS, "removed") == Delta.__struct_fields__


@pytest.mark.parametrize(("name", "cap"), CAPS.items())
def test_the_oldest_leave_first(name: str, cap: int) -> None:
    first = Delta(**{name: tuple(Change(f"old {at}") for at in range(cap))})
    second = Delta(**{name: (Change("new"),)})
    texts = [item.text for item in getattr(after(first, second), name)]
    assert texts == [f"old {at}" for at in range(1, cap)] + ["new"]


def test_done_leaves_before_open() -> None:
    many = after(tasks(*"ABCDEFGHIJ"), tasks("J", status="done"), tasks("K"))
    assert [item.text for item in many.tasks] == [*"ABCDEFGHI", "K"]


def test_an_entry_has_an_id_for_life_and_no_id_is_given_twice() -> None:
    state = after(tasks("A", "B"), Delta(removed=("t1",)), tasks("C"))
    assert state.tasks == (Item("t2", "B", "open"), Item("t3", "C", "open"))


def test_an_entry_is_changed_by_its_id() -> None:
    state = after(
        tasks("Mend K7", "Rest"), Delta(tasks=(Change("Mend K7 and K8", "t1", "in_progress"), Change("", "t2", "done")))
    )
    assert state.tasks == (Item("t1", "Mend K7 and K8", "in_progress"), Item("t2", "Rest", "done"))


def test_an_entry_is_changed_by_its_text() -> None:
    assert after(tasks("Mend K7"), tasks("mend k7.", status="blocked")).tasks == (Item("t1", "mend k7.", "blocked"),)


def test_a_task_keeps_its_status_but_a_done_one_that_is_stated_again_is_open() -> None:
    first = Delta(tasks=(Change("A", "", "blocked"), Change("B", "", "done"), Change("C", "", "done")))
    state = after(first, Delta(tasks=(Change("A"), Change("B"), Change("", "t3"))))
    assert [item.status for item in state.tasks] == ["blocked", "open", "done"]


def test_an_id_that_nobody_gave_is_no_id() -> None:
    state = after(Delta(tasks=(Change("A", "t2"), Change("B", "t2"), Change("", "t9", "done"))))
    assert state.tasks == (Item("t1", "A", "open"), Item("t3", "B", "open"))


def test_only_tasks_have_a_status() -> None:
    assert after(Delta(risks=(Change("Storm", "", "done"),))).risks == (Item("r1", "Storm"),)


def test_what_is_removed_by_id_or_text_is_gone_unless_the_delta_states_it() -> None:
    state = after(tasks("A", "B", "C"), Delta(tasks=(Change("C"),), removed=("t1", "b", "C", "nobody")))
    assert [item.text for item in state.tasks] == ["C"]


def test_two_entries_never_say_the_same() -> None:
    state = after(tasks("A", "B"), Delta(tasks=(Change("B", "t1", "done"),)))
    assert state.tasks == (Item("t1", "B", "done"),)


@given(st.lists(DELTAS, max_size=4))
def test_caps_always_hold_and_ids_and_texts_are_single(deltas: list[Delta]) -> None:
    state = after(*deltas)
    for name, cap in CAPS.items():
        items = getattr(state, name)
        assert len(items) <= cap
        assert len({item.id for item in items}) == len(items)
        assert len({item.text.casefold() for item in items}) == len(items)
        assert all(item.id and item.text.strip() for item in items)


@given(st.lists(DELTAS, max_size=3), DELTAS)
def test_the_same_delta_again_changes_nothing(deltas: list[Delta], delta: Delta) -> None:
    state = after(*deltas, delta)
    assert merge(state, delta) == state
    assert after(*deltas, delta) == state


STATED = st.lists(st.builds(Change, st.sampled_from("ABCDEFGHIJKLMNOP"), st.just(""), STATUSES), max_size=16)


@given(st.lists(STATED.map(lambda changes: Delta(tasks=tuple(changes))), min_size=1, max_size=4))
def test_no_open_task_leaves_while_a_done_one_stays(deltas: list[Delta]) -> None:
    before, now = after(*deltas[:-1]).tasks, after(*deltas).tasks
    left = {item.text for item in before} - {item.text for item in now} - {change.text for change in deltas[-1].tasks}
    if any(item.status != "done" for item in before if item.text in left):
        assert all(item.status != "done" for item in now)


def test_a_state_for_people_and_models() -> None:
    """W5: with ids, so that a delta can name what it changes."""
    state = after(Delta(key_decisions=(Change("Use\ncm"),), tasks=(Change("Mend K7", "", "in_progress"),)))
    assert render(state) == "KEY DECISIONS:\n- [d1] Use cm\n\nTASKS:\n- [t2] Mend K7 (in progress)"
    assert render(State()) == ""


@given(st.lists(DELTAS, max_size=2))
def test_a_state_is_plain_data(deltas: list[Delta]) -> None:
    """A checkpoint carries it."""
    state = after(*deltas)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(state)), State) == state
