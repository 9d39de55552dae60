"""What a model forgets to carry over is put back; what it removes, it removes with a reason (L6, P24)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.summaries.merging import Merged, bounded, merge
from holdfast.summaries.structured import Removal, Sections, Work, write_body
from holdfast.summaries.structured_text import read_sections

LISTS = ("pending", "decisions", "constraints", "errors", "context")
WORDS = "tide berth table moon harbour low high mend check never K7 K8 src/a.py src/b.py 泊位 潮汐表 мост".split()
ITEMS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
ANY = ITEMS | st.text(max_size=20)
SECTIONS = st.builds(
    Sections,
    completed=st.lists(st.builds(Work, ANY, ANY, ANY), max_size=4).map(tuple),
    working_on=ANY,
    last_completed=ANY,
    removed=st.lists(st.builds(Removal, ANY, st.sampled_from(["", "done with"])), max_size=2).map(tuple),
    left_out=st.integers(0, 20),
    **{name: st.lists(ANY, max_size=4).map(tuple) for name in LISTS},
)


def texts(sections: Sections) -> list[str]:
    listed = [item for name in LISTS for item in getattr(sections, name)]
    return [sections.working_on, sections.last_completed, *listed, *(row.text for row in sections.completed)]


def merged(section: str, before: list[str], after: list[str], **others: Any) -> Merged:
    return merge(Sections(**{section: tuple(before)}), Sections(**{section: tuple(after)}, **others))


@pytest.mark.parametrize("section", LISTS)
def test_what_was_forgotten_stands_again_where_it_stood(section: str) -> None:
    result = merged(section, ["Mend berth K6", "Ask the office", "Check the moon"], ["Check the moon", "Buy rope"])
    kept = ("Mend berth K6", "Ask the office", "Check the moon", "Buy rope")
    assert getattr(result.sections, section) == kept
    assert result.put_back == kept[:2]
    assert result.dropped == ()


@pytest.mark.parametrize("section", LISTS)
def test_what_was_removed_with_a_reason_is_gone(section: str) -> None:
    removed = (Removal("Mend berth K6", "sold"), Removal("the office", ""))
    result = merged(section, ["Mend berth K6", "Ask the office"], [], removed=removed)
    assert getattr(result.sections, section) == ("Ask the office",)
    assert result.dropped == (Removal("Mend berth K6", "sold"),)
    assert result.put_back == ("Ask the office",)
    assert result.sections.removed == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Add the index to the users table", "Add an index to users table"),
        ("Heights are kept in centimetres", "All heights are kept in centimetres (integers)"),
        ("Alle Höhen in Zentimetern speichern", "alle Höhen als Zentimeter speichern, in Zentimetern"),
        ("所有高度以厘米为单位保存", "所有高度都以厘米为单位保存"),
        ("يجب حفظ الارتفاعات بالسنتيمتر", "يجب حفظ كل الارتفاعات بالسنتيمتر"),
    ],
)
def test_a_reworded_item_is_the_same_item_in_any_language(before: str, after: str) -> None:
    assert merged("decisions", [before], [after]) == Merged(Sections(decisions=(after,)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Mend the table in src/a.py", "Mend the table in src/b.py"),
        ("Check the tide at berth 7", "Check the tide at berth 8"),
        ("Check the gate of quay A", "Check the gate of quay B"),
        ("Call readTide from the loop", "Call readMoon from the loop"),
        ("Mend src/a.py and src/b.py now", "Mend src/a.py now and go on"),
        ("检查泊位7的潮汐表", "检查泊位8的潮汐表"),
        ("Ask the office about rope", "Paint the boat"),
    ],
)
def test_what_is_spelled_otherwise_is_another_item(before: str, after: str) -> None:
    assert merged("pending", [before], [after]).sections.pending == (before, after)


def test_one_rewording_stands_for_one_item_alone() -> None:
    before = ["Check the northern gate", "Check the southern gate"]
    assert merged("pending", before, before[:1]).sections.pending == tuple(before)


def test_an_item_that_joins_two_stands_for_both() -> None:
    result = merged("decisions", ["Use Redis", "Cache tides"], ["Use Redis to cache tides"])
    assert result == Merged(Sections(decisions=("Use Redis to cache tides",)))


@pytest.mark.parametrize(
    "moved",
    [
        {"completed": (Work("tides.py", "Modified", "Checked the table of berth K7"),)},
        {"last_completed": "The table of berth K7 (check)"},
        {"working_on": "Check the table of berth K7"},
        {"errors": ("Check of table of berth K7 failed → locked",)},
    ],
)
def test_pending_work_may_move_on(moved: dict[str, Any]) -> None:
    result = merge(Sections(pending=("Check table of berth K7",)), Sections(**moved))
    assert result == Merged(Sections(**moved))


def test_a_constraint_is_not_done_by_work() -> None:
    done = Sections(completed=(Work("archive", "Never", "delete the archive"),))
    assert merge(Sections(constraints=("Never delete the archive",)), done).put_back == ("Never delete the archive",)


def test_rows_of_one_subject_are_one_row_and_the_newer_wins() -> None:
    """L6: the previous summary is integrated, not repeated."""
    before = Sections(completed=(Work("src/a.py", "Created", "tides"), Work("Makefile", "Created", "targets")))
    after = Sections(completed=(Work("src/b.py", "Created", "moon"), Work("`src/a.py`", "Modified")))
    result = merge(before, after)
    assert result.sections.completed == (
        Work("`src/a.py`", "Modified", "tides"),
        Work("Makefile", "Created", "targets"),
        Work("src/b.py", "Created", "moon"),
    )
    assert result.put_back == ("Makefile – Created – targets",)


def test_a_row_about_something_alike_is_no_substitute() -> None:
    before, after = Work("The login page", "Done", "works"), Work("The logout page", "Done", "works")
    assert merge(Sections(completed=(before,)), Sections(completed=(after,))).sections.completed == (before, after)


def test_work_in_hand_that_is_not_mentioned_again_is_pending() -> None:
    result = merge(Sections(working_on="Mend berth K7"), Sections(working_on="Paint the boat", pending=("Rest",)))
    assert result.sections == Sections(working_on="Paint the boat", pending=("Mend berth K7", "Rest"))
    assert merge(Sections(working_on="Mend berth K7"), Sections()).sections.working_on == "Mend berth K7"
    done = Sections(last_completed="Mend berth K7")
    assert merge(Sections(working_on="Mend berth K7"), done) == Merged(done)


def test_what_was_completed_last_becomes_a_row_when_something_newer_was() -> None:
    result = merge(Sections(last_completed="Berth K6"), Sections(last_completed="Berth K7"))
    assert result.sections == Sections(completed=(Work("Berth K6", "Done"),), last_completed="Berth K7")


PLAIN = st.lists(st.sampled_from("tide berth table moon low high mend check K7 K8".split()), max_size=5).map(" ".join)
ROWS = st.lists(st.builds(Work, PLAIN.filter(bool), PLAIN, PLAIN), max_size=3, unique_by=lambda row: row.subject)
PLAIN_SECTIONS = st.builds(
    Sections,
    completed=ROWS.map(tuple),
    working_on=PLAIN,
    last_completed=PLAIN,
    removed=st.lists(st.builds(Removal, PLAIN, st.sampled_from(["", "sold"])), max_size=2).map(tuple),
    **{name: st.lists(PLAIN.filter(bool), max_size=4).map(tuple) for name in LISTS},
)


def is_told(item: str, sections: Sections) -> bool:
    words = set(item.split())
    return any(len(words & set(text.split())) >= 0.6 * len(words) for text in texts(sections))


@given(PLAIN_SECTIONS, PLAIN_SECTIONS)
def test_nothing_is_lost_without_a_reason(previous: Sections, new: Sections) -> None:
    """Each earlier item is still there, or the answer tells it in other words, or it was dropped with a reason."""
    result = merge(previous, new)
    there = {*texts(result.sections), *(removal.item for removal in result.dropped)}
    newer = {row.subject for row in new.completed}
    rows = tuple(row for row in previous.completed if row.subject not in newer)
    working, last, *items = texts(msgspec.structs.replace(previous, completed=rows))
    assert all(item in there or is_told(item, new) for item in items)
    assert all(item in there or is_told(item, result.sections) for item in (working, last))
    assert all(removal.reason == "sold" for removal in result.dropped)


@given(SECTIONS, SECTIONS)
def test_an_answer_keeps_all_it_says(previous: Sections, new: Sections) -> None:
    result = merge(previous, new).sections
    for name in LISTS:
        said = {" ".join(item.splitlines()).strip() for item in getattr(new, name)} - {""}
        listed = getattr(result, name)
        assert len(set(listed)) == len(listed)
        assert not any(item not in listed and item.isprintable() for item in said)


@given(SECTIONS, SECTIONS)
def test_merging_a_summary_with_itself_changes_nothing(previous: Sections, new: Sections) -> None:
    once = merge(previous, new)
    assert merge(once.sections, once.sections) == Merged(once.sections)
    assert merge(previous, new) == once


FULL = Sections(
    completed=(Work("a", "Created"), Work("b", "Created"), Work("a", "Modified")),
    decisions=("d1", "d2"),
    working_on="w",
    last_completed="l",
    pending=("p1", "p2"),
    errors=("e",),
    constraints=("c",),
    context=("x",),
)


def test_the_order_in_which_things_go() -> None:
    """Rows told again, old rows, … and last what is being worked on; and all of it counted."""
    before, gone = {*texts(FULL)}, list[str]()
    for room in reversed(range(12)):
        left = bounded(FULL, lambda text, room=room: items_in(text) <= room)  # type: ignore[misc]
        gone += before - {*texts(left)}
        before = {*texts(left)}
        assert left.left_out == 12 - room
    assert gone[:7] == ["a – Created", "b – Created", "a – Modified", "e", "x", "d1", "d2"]
    assert gone[7:] == ["l", "p2", "p1", "c", "w"]


def items_in(text: str) -> int:
    read = read_sections(text)
    assert read is not None
    return sum(map(bool, texts(read)))


@given(SECTIONS, st.integers(0, 900))
def test_a_bounded_summary_fits_and_says_what_is_missing(sections: Sections, room: int) -> None:
    left = bounded(sections, lambda text: len(text) <= room)
    assert len(write_body(left)) <= room or not any(map(str.strip, texts(left)))
    if left.left_out > sections.left_out:
        assert f"… and {left.left_out} earlier item" in write_body(left)
    else:
        assert left == sections
