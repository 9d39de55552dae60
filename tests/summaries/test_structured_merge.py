"""merge_sections restores silently dropped items; trim_to_fit drops in order (L6, P24)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.summaries.structured import CompletedWork, ExtraSection, RemovedItem, SummarySections, render_body
from holdfast.summaries.structured_merge import MergedSections, dropped_items, merge_sections, trim_to_fit, with_ids
from holdfast.summaries.structured_parse import parse_sections

LISTS = ("pending", "decisions", "constraints", "errors", "context")
WORDS = "tide berth table moon harbour low high mend check never K7 K8 src/a.py src/b.py 泊位 潮汐表 мост".split()
ITEMS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
ANY = ITEMS | st.text(max_size=20)
EXTRA = st.builds(
    ExtraSection, st.sampled_from(["Weather", "Crew", "Prices"]), st.lists(ITEMS, min_size=1, max_size=3).map(tuple)
)
SECTIONS = st.builds(
    SummarySections,
    completed=st.lists(st.builds(CompletedWork, ANY, ANY, ANY), max_size=4).map(tuple),
    working_on=ANY,
    last_completed=ANY,
    next_step=ANY,
    extra=st.lists(EXTRA, max_size=2, unique_by=lambda section: section.title).map(tuple),
    removed=st.lists(st.builds(RemovedItem, ANY, st.sampled_from(["", "done with"])), max_size=2).map(tuple),
    left_out=st.integers(0, 20),
    **{name: st.lists(ANY, max_size=4).map(tuple) for name in LISTS},
)


def texts(sections: SummarySections) -> list[str]:
    listed = [item for name in LISTS for item in getattr(sections, name)]
    added = [item for section in sections.extra for item in section.items]
    state = [sections.working_on, sections.last_completed, sections.next_step]
    return [*state, *listed, *added, *(row.text for row in sections.completed)]


def merged(section: str, before: list[str], after: list[str], **others: Any) -> MergedSections:
    return merge_sections(
        SummarySections(**{section: tuple(before)}), SummarySections(**{section: tuple(after)}, **others)
    )


@pytest.mark.parametrize("section", LISTS)
def test_merge_restores_dropped_items_at_their_position(section: str) -> None:
    result = merged(section, ["Mend berth K6", "Ask the office", "Check the moon"], ["Check the moon", "Buy rope"])
    kept = ("Mend berth K6", "Ask the office", "Check the moon", "Buy rope")
    assert getattr(result.sections, section) == kept
    assert result.restored == kept[:2]
    assert result.removed == ()


@pytest.mark.parametrize("section", LISTS)
def test_merge_accepts_removal_with_a_reason(section: str) -> None:
    removed = (RemovedItem("Mend berth K6", "sold"), RemovedItem("the office", ""))
    result = merged(section, ["Mend berth K6", "Ask the office"], [], removed=removed)
    assert getattr(result.sections, section) == ("Ask the office",)
    assert result.removed == (RemovedItem("Mend berth K6", "sold"),)
    assert result.restored == ("Ask the office",)
    assert result.sections.removed == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Add the index to the table", "Add the users index to the table"),
        ("Heights are kept in centimetres", "All heights are kept in centimetres (integers)"),
        ("Alle Höhen in Zentimetern speichern", "alle Höhen als Zentimeter speichern, in Zentimetern"),
        ("所有高度以厘米为单位保存。", "**所有高度以厘米为单位保存**（整数）"),
        ("يجب حفظ الارتفاعات بالسنتيمتر", "يجب حفظ كل الارتفاعات بالسنتيمتر"),
    ],
)
def test_merge_item_with_all_words_of_an_earlier_one_is_the_same_item(before: str, after: str) -> None:
    assert merged("decisions", [before], [after]) == MergedSections(SummarySections(decisions=(after,)))


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
        ("Add the index to the users table", "Add an index to users table"),
        ("所有高度以厘米为单位保存", "所有高度都以厘米为单位保存"),
    ],
)
def test_merge_items_with_other_words_are_different(before: str, after: str) -> None:
    assert merged("pending", [before], [after]).sections.pending == (before, after)


def test_merge_item_named_by_its_id_is_updated_moved_or_kept() -> None:
    """In whatever words, and wherever the answer puts it; an id alone repeats the item, an unknown one is new."""
    before = SummarySections(
        completed=(CompletedWork("a.py", "Created", "tides"),),
        decisions=("Add the index to the users table",),
        pending=("Mend berth K6", "Paint the boat", "Ask the office"),
    )
    assert with_ids(before).pending[1] == "[p2] Paint the boat"
    after = SummarySections(
        completed=(CompletedWork("[w1]"), CompletedWork("[p2] the hull", "Done")),
        decisions=("[d1] 用户表需要索引", "[d9] Use metres"),
        pending=("[p3]", "[p1] The sixth one, by Friday"),
    )
    assert merge_sections(before, after) == MergedSections(
        SummarySections(
            completed=(before.completed[0], CompletedWork("the hull", "Done")),
            decisions=("用户表需要索引", "Use metres"),
            pending=("Ask the office", "The sixth one, by Friday"),
        )
    )
    gone = SummarySections(removed=(RemovedItem("[p1]", "sold"), RemovedItem("p3", "answered")))
    result = merge_sections(before, gone)
    assert result.sections.pending == ("Paint the boat",)
    one = merge_sections(
        SummarySections(pending=("Paint the boat", "Paint the pier")),
        SummarySections(removed=(RemovedItem("Paint", "it rains"),)),
    )
    assert one.sections.pending == ("Paint the pier",), "a reason removes one item"
    assert result.removed == (RemovedItem("Mend berth K6", "sold"), RemovedItem("Ask the office", "answered"))


def test_merge_partial_match_covers_one_item_only() -> None:
    before = ["Check the northern gate", "Check the southern gate"]
    assert merged("pending", before, before[:1]).sections.pending == tuple(before)


def test_merge_full_match_may_cover_two_items() -> None:
    result = merged("decisions", ["Use Redis", "Cache tides"], ["Use Redis to cache tides"])
    assert result == MergedSections(SummarySections(decisions=("Use Redis to cache tides",)))


@pytest.mark.parametrize(
    "moved",
    [
        {"completed": (CompletedWork("tides.py", "Modified", "Checked the table of berth K7"),)},
        {"last_completed": "The table of berth K7 (check)"},
        {"working_on": "Check the table of berth K7"},
        {"errors": ("Check of table of berth K7 failed → locked",)},
    ],
)
def test_merge_pending_item_may_move_to_another_section(moved: dict[str, Any]) -> None:
    result = merge_sections(SummarySections(pending=("Check table of berth K7",)), SummarySections(**moved))
    assert result == MergedSections(SummarySections(**moved))


def test_merge_completed_work_does_not_cover_a_constraint() -> None:
    done = SummarySections(completed=(CompletedWork("archive", "Never", "delete the archive"),))
    assert merge_sections(SummarySections(constraints=("Never delete the archive",)), done).restored == (
        "Never delete the archive",
    )


def test_merge_rows_of_one_subject_newer_wins() -> None:
    """L6: the previous summary is integrated, not repeated."""
    before = SummarySections(
        completed=(CompletedWork("src/a.py", "Created", "tides"), CompletedWork("Makefile", "Created", "targets"))
    )
    after = SummarySections(
        completed=(CompletedWork("src/b.py", "Created", "moon"), CompletedWork("`src/a.py`", "Modified"))
    )
    result = merge_sections(before, after)
    assert result.sections.completed == (
        CompletedWork("`src/a.py`", "Modified", "tides"),
        CompletedWork("Makefile", "Created", "targets"),
        CompletedWork("src/b.py", "Created", "moon"),
    )
    assert result.restored == ("Makefile – Created – targets",)


def test_merge_row_with_similar_subject_is_another_row() -> None:
    before, after = CompletedWork("The login page", "Done", "works"), CompletedWork("The logout page", "Done", "works")
    assert merge_sections(
        SummarySections(completed=(before,)), SummarySections(completed=(after,))
    ).sections.completed == (before, after)


def test_merge_current_work_not_mentioned_becomes_pending() -> None:
    result = merge_sections(
        SummarySections(working_on="Mend berth K7"), SummarySections(working_on="Paint the boat", pending=("Rest",))
    )
    assert result.sections == SummarySections(working_on="Paint the boat", pending=("Mend berth K7", "Rest"))
    assert (
        merge_sections(SummarySections(working_on="Mend berth K7"), SummarySections()).sections.working_on
        == "Mend berth K7"
    )
    done = SummarySections(last_completed="Mend berth K7")
    assert merge_sections(SummarySections(working_on="Mend berth K7"), done) == MergedSections(done)


def test_merge_previous_last_completed_becomes_a_row() -> None:
    result = merge_sections(SummarySections(last_completed="Berth K6"), SummarySections(last_completed="Berth K7"))
    assert result.sections == SummarySections(completed=(CompletedWork("Berth K6", "Done"),), last_completed="Berth K7")


def test_merge_newest_next_step_wins_and_the_other_is_reported() -> None:
    before, after = SummarySections(next_step="Edit tides.py"), SummarySections(next_step="Run make moon")
    assert merge_sections(before, after) == MergedSections(after, replaced="Edit tides.py")
    assert merge_sections(before, SummarySections()) == MergedSections(before, restored=("Edit tides.py",))
    done = SummarySections(last_completed="Edit tides.py: all tests pass")
    assert merge_sections(before, done) == MergedSections(done)
    pending = SummarySections(pending=("Run make moon",))
    assert merge_sections(pending, after) == MergedSections(after)


def weather(*items: str) -> SummarySections:
    return SummarySections(extra=(ExtraSection("Weather", items),))


def test_merge_restores_lines_of_added_sections() -> None:
    before = weather("- Storm on Friday", "##### Ice", "- None so far", "- Fog at six")
    assert merge_sections(before, SummarySections(pending=("K8",))).sections == SummarySections(
        pending=("K8",), extra=before.extra
    )
    result = merge_sections(before, weather("- Storm on Friday, 9 Bft", "- Fog at six"))
    assert result.sections == weather("- Storm on Friday, 9 Bft", "##### Ice", "- None so far", "- Fog at six")
    assert result.restored == ("##### Ice", "- None so far")


def test_merge_added_section_ends_with_a_reason_or_elsewhere() -> None:
    gone = SummarySections(removed=(RemovedItem("Storm on Friday", "it is over"),))
    assert merge_sections(weather("- Storm on Friday"), gone) == MergedSections(
        SummarySections(), removed=(RemovedItem("- Storm on Friday", "it is over"),)
    )
    moved = SummarySections(context=("A storm on Friday",))
    assert merge_sections(weather("- Storm on Friday"), moved) == MergedSections(moved)
    partly = SummarySections(context=("A storm, some day",))
    assert merge_sections(weather("- Storm on Friday"), partly).restored == ("- Storm on Friday",)


def test_merge_added_sections_keep_titles_and_order() -> None:
    before = SummarySections(extra=(ExtraSection("Crew", ("Anna",)), ExtraSection("Weather", ("Storm",))))
    after = SummarySections(extra=(ExtraSection("Prices", ("4 EUR",)), ExtraSection("**weather**", ("Storm, fog",))))
    assert merge_sections(before, after).sections.extra == (
        ExtraSection("Crew", ("Anna",)),
        ExtraSection("**weather**", ("Storm, fog",)),
        ExtraSection("Prices", ("4 EUR",)),
    )


PLAIN = st.lists(st.sampled_from("tide berth table moon low high mend check K7 K8".split()), max_size=5).map(" ".join)
ROWS = st.lists(
    st.builds(CompletedWork, PLAIN.filter(bool), PLAIN, PLAIN), max_size=3, unique_by=lambda row: row.subject
)
PLAIN_SECTIONS = st.builds(
    SummarySections,
    completed=ROWS.map(tuple),
    working_on=PLAIN,
    last_completed=PLAIN,
    next_step=PLAIN,
    extra=st.lists(
        st.builds(
            ExtraSection,
            st.sampled_from(["Weather", "Crew"]),
            st.lists(PLAIN.filter(bool), min_size=1, max_size=3).map(tuple),
        ),
        max_size=2,
        unique_by=lambda section: section.title,
    ).map(tuple),
    removed=st.lists(st.builds(RemovedItem, PLAIN, st.sampled_from(["", "sold"])), max_size=2).map(tuple),
    **{name: st.lists(PLAIN.filter(bool), max_size=4).map(tuple) for name in LISTS},
)


def is_covered(item: str, sections: SummarySections) -> bool:
    words = set(item.split())
    return any(len(words & set(text.split())) >= 0.6 * len(words) for text in texts(sections))


@given(PLAIN_SECTIONS, PLAIN_SECTIONS)
def test_merge_loses_no_item_without_a_reason(previous: SummarySections, new: SummarySections) -> None:
    """Each earlier item is kept, covered by the answer in other words, or removed with a reason."""
    result = merge_sections(previous, new)
    present = {*texts(result.sections), *(removal.item for removal in result.removed)}
    newer = {row.subject for row in new.completed}
    rows = tuple(row for row in previous.completed if row.subject not in newer)
    working, last, following, *items = texts(msgspec.structs.replace(previous, completed=rows))
    assert all(item in present or is_covered(item, new) for item in items)
    assert all(item in present or is_covered(item, result.sections) for item in (working, last))
    assert following in {*present, result.replaced} or is_covered(following, result.sections)
    assert all(removal.reason == "sold" for removal in result.removed)


@given(SECTIONS, SECTIONS)
def test_merge_keeps_all_items_of_the_answer(previous: SummarySections, new: SummarySections) -> None:
    result = merge_sections(previous, new).sections
    for name in LISTS:
        written = {" ".join(item.splitlines()).strip() for item in getattr(new, name)} - {""}
        listed = getattr(result, name)
        assert len(set(listed)) == len(listed)
        assert not any(item not in listed and item.isprintable() for item in written)


@given(SECTIONS, SECTIONS)
def test_merge_with_itself_changes_nothing(previous: SummarySections, new: SummarySections) -> None:
    once = merge_sections(previous, new)
    assert merge_sections(once.sections, once.sections) == MergedSections(once.sections)
    assert merge_sections(previous, new) == once


FULL = SummarySections(
    completed=(CompletedWork("a", "Created"), CompletedWork("b", "Created"), CompletedWork("a", "Modified")),
    decisions=("d1", "d2"),
    working_on="w",
    last_completed="l",
    next_step="n",
    pending=("p1", "p2"),
    errors=("e",),
    constraints=("c",),
    context=("x",),
    extra=(ExtraSection("t", ("y1", "y2")),),
)


def test_trim_to_fit_drops_items_in_order() -> None:
    """Repeated rows, old rows, …, and last the current work; all dropped items are counted."""
    before, gone = {*texts(FULL)}, list[str]()
    for room in reversed(range(15)):
        left = trim_to_fit(FULL, lambda text, room=room: items_in(text) <= room)  # type: ignore[misc]
        gone += before - {*texts(left)}
        before = {*texts(left)}
        assert left.left_out == 15 - room
    assert gone[:7] == ["a – Created", "b – Created", "a – Modified", "e", "y1", "y2", "x"]
    assert gone[7:] == ["d1", "d2", "l", "p2", "p1", "c", "n", "w"]


def items_in(text: str) -> int:
    read = parse_sections(text)
    assert read is not None
    return sum(map(bool, texts(read)))


@given(SECTIONS, st.integers(0, 900))
def test_trim_to_fit_fits_and_counts_dropped_items(sections: SummarySections, room: int) -> None:
    left = trim_to_fit(sections, lambda text: len(text) <= room)
    gone = Counter(dropped_items(sections, left))
    assert len(render_body(left)) <= room or not any(map(str.strip, texts(left)))
    if left.left_out > sections.left_out:
        assert f"… and {left.left_out} earlier item" in render_body(left)
        assert gone.total() <= left.left_out - sections.left_out, "blank items are counted, and not reported"
    else:
        assert left == sections
    assert Counter(filter(str.strip, texts(left))) + bare(gone) == Counter(filter(str.strip, texts(sections)))


def bare(items: Counter[str]) -> Counter[str]:
    """The items without the titles of added sections."""
    return Counter(
        item.removeprefix("Weather: ").removeprefix("Crew: ").removeprefix("Prices: ") for item in items.elements()
    )
