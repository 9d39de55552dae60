"""Selecting lines within a budget (H3)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.ledger.lines import LedgerLine
from holdfast.ledger.select import MIN_LINE_CHARS, Candidate, Selection, rank_candidates

NAMES = [f"name_{number}" for number in range(12)]
TEXTS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(" and ".join)
LINES = st.lists(st.tuples(TEXTS, st.sampled_from("ab")), min_size=1, max_size=30, unique_by=lambda one: one[0])
WORTH = st.fixed_dictionaries({name: st.floats(0.001, 1.0) for name in NAMES})
OWN = st.dictionaries(TEXTS, st.floats(0.0, 1.0), max_size=10)
ROOMS = st.integers(0, 600)
TITLE = 9
NEXT_TO_NOTHING, EQUAL = "name_1 and name_1", dict.fromkeys(NAMES, 1.0)


def named(text: str) -> tuple[str, ...]:
    return tuple(text.split(" and "))


def pool(
    lines: list[tuple[str, str]],
    worth: dict[str, float],
    own: dict[str, float],
    reuse: dict[str, float] | None = None,
) -> list[Candidate]:
    noted = [LedgerLine(text, "file", source, 1, 1, 1) for text, source in lines]
    return rank_candidates(noted, named, worth, own, reuse or {})


def test_candidates_of_equal_score_begin_with_the_newest() -> None:
    ranked = pool([("name_1 and name_2", "old"), ("name_3 and name_4", "new")], EQUAL, {})
    assert [one.line.source for one in ranked if one.line.kind == "file"] == ["new", "old"]
    assert [one.line.text for one in ranked if one.line.kind == "name"] == ["name_3", "name_4", "name_1", "name_2"]


def test_short_line_is_no_candidate_however_deep_its_indentation() -> None:
    ranked = pool(
        [("\t" * 12 + "continue", "a"), ("return name_1", "a")],
        {},
        dict.fromkeys(["\t" * 12 + "continue", "return name_1"], 1.0),
    )
    assert [one.line.text for one in ranked] == ["return name_1"]


def selection(among: list[Candidate], worth: dict[str, float], known: str = "") -> Selection:
    return Selection(among, named, worth, covered=(), heading=lambda line: (line.source, TITLE), known=known)


@given(LINES, WORTH, OWN, OWN, ROOMS, ROOMS)
@example([("name_0 and name_1", "a"), (NEXT_TO_NOTHING, "a")], EQUAL, {NEXT_TO_NOTHING: 3e-203}, {}, 11, 18)
def test_selection_reused_with_other_room_equals_fresh_selection(
    lines: list[tuple[str, str]],
    worth: dict[str, float],
    own: dict[str, float],
    reuse: dict[str, float],
    first: int,
    second: int,
) -> None:
    among = pool(lines, worth, own, reuse)
    again = selection(among, worth)
    again.within(first)
    assert again.within(second) == selection(among, worth).within(second)


@given(LINES, WORTH, OWN, ROOMS)
def test_selection_has_no_duplicates_and_fits_the_room(
    lines: list[tuple[str, str]], worth: dict[str, float], own: dict[str, float], room: int
) -> None:
    chosen = selection(pool(lines, worth, own), worth).within(room)
    assert len({line.text for line in chosen}) == len(chosen)
    assert sum(len(line.text) + 1 for line in chosen) <= room


@given(LINES, WORTH)
def test_selection_with_ample_room_covers_every_name_once(
    lines: list[tuple[str, str]], worth: dict[str, float]
) -> None:
    chosen = selection(pool(lines, worth, {}), worth).within(100_000)
    alone = [line.text for line in chosen if line.kind == "name"]
    on_lines = {name for line in chosen if line.kind != "name" for name in line.text.split(" and ")}
    assert on_lines.isdisjoint(alone)
    shown = {text for text, _ in lines if len(text) >= MIN_LINE_CHARS}
    assert on_lines.union(alone) == {name for text in shown for name in text.split(" and ")}


def test_lone_name_is_selected_when_its_line_is_too_long() -> None:
    """H3: a name alone can be searched for; with more room its line replaces it."""
    lines = [("name_1 and " + " and ".join(f"a{number}" for number in range(40)), "a")]
    among = pool(lines, {"name_1": 0.5}, {})
    assert [line.text for line in selection(among, {"name_1": 0.5}).within(60)] == ["name_1"]
    assert [line.text for line in selection(among, {"name_1": 0.5}).within(600)] == [lines[0][0]]


def test_room_of_a_lone_name_is_used_again_where_its_line_takes_its_place() -> None:
    """The name is worth most for its characters, so it comes first; then its line comes, and then the other one."""
    lines = [("name_1 and a quarter of the tide", "a"), ("the rest of the tide of name_2", "a")]
    worth, own = {"name_1": 1.0}, dict.fromkeys((text for text, _ in lines), 0.3)
    chosen = selection(pool(lines, worth, own), worth)
    assert [line.text for line in chosen.within(TITLE + 20)] == ["name_1"]
    room = TITLE + sum(len(text) + 1 for text, _ in lines)
    assert [line.text for line in chosen.within(room)] == [text for text, _ in lines]


def test_own_score_of_a_line_adds_to_its_names() -> None:
    lines = [("name_1 and a1", "a"), ("name_1 and a2", "a")]
    among = [one for one in pool(lines, {"name_1": 0.5}, {"name_1 and a2": 0.25}) if one.line.kind != "name"]
    assert [one.line.text for one in among] == ["name_1 and a2", "name_1 and a1"]
    assert [one.own_score for one in among] == [0.25, 0.0]
    assert among[0].density / among[1].density == pytest.approx(0.75 / 0.5)


ROPES, BOATS = "the ropes of the harbour are taut", "the boats of the harbour are at sea"


def test_text_that_is_shown_already_is_not_selected_for_reuse() -> None:
    """A line that may be written again is worth nothing more where the kept messages or another line show its text."""
    among = pool([(ROPES, "a"), (BOATS, "a")], {}, {}, {ROPES: 1.0, BOATS: 0.5})
    assert [line.text for line in selection(among, {}).within(500)] == [ROPES, BOATS]
    assert [line.text for line in selection(among, {}, f"He said: {ROPES} tonight.").within(500)] == [BOATS]
    inside = ROPES.removeprefix("the ")
    among = pool([(ROPES, "a"), (inside, "a")], {}, {}, {ROPES: 1.0, inside: 0.5})
    assert [line.text for line in selection(among, {}).within(500)] == [ROPES]


def test_text_shown_in_part_is_worth_its_rest() -> None:
    among = pool([(ROPES, "a"), (BOATS, "a")], {}, {}, {ROPES: 1.0, BOATS: 1.0})
    ranking = selection(among, {}, "of the harbour are taut").ranking(500)
    assert [one.line.text for one in ranking] == [BOATS, ROPES]
    assert 0 < ranking[1].density < ranking[0].density
    unknown = selection(among, {}).ranking(500)
    assert ranking[1].density < unknown[0].density


def test_edits_are_worth_the_same_wherever_the_text_is_shown() -> None:
    among = pool([(ROPES, "a")], {}, {ROPES: 1.0})
    assert [line.text for line in selection(among, {}, f"{ROPES} tonight").within(500)] == [ROPES]
