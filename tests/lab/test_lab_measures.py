"""Each measure on contexts that keep it and contexts that do not."""

from __future__ import annotations

import pytest

from holdfast.lab.measures import Score, kept_names, measure
from holdfast.lab.needs import Needs, needs
from holdfast.messages import user
from lab_story import AFTER, BEFORE, used


@pytest.fixture(scope="module")
def needed() -> Needs:
    return needs(BEFORE, AFTER)


def score(text: str, needed: Needs) -> Score:
    return measure([user(text)], needed)


def test_the_whole_history_keeps_everything(needed: Needs) -> None:
    whole = measure(BEFORE, needed)
    shares = (whole.names, whole.in_context, whole.edited_lines, whole.modified, whole.read, whole.users)
    assert shares == (1.0,) * 6
    assert (whole.errors, whole.commands, whole.fetch, whole.invented) == (1.0, 1.0, 0, 0)


def test_nothing_keeps_nothing(needed: Needs) -> None:
    empty = score("", needed)
    shares = (empty.names, empty.in_context, empty.edited_lines, empty.modified, empty.read, empty.users)
    assert shares == (0.0,) * 6
    assert (empty.errors, empty.commands, empty.invented) == (0.0, 0.0, 0)
    assert empty.fetch > 0


def test_a_name_alone_is_present_but_not_in_context(needed: Needs) -> None:
    listed = score("names: parse_table, tides.py", needed)
    assert (listed.names, listed.in_context) == (1.0, 0.0)
    assert score("table = parse_table(path)", needed).in_context == 0.5


def test_half_of_the_other_words_are_context_enough(needed: Needs) -> None:
    assert score("table parse_table", needed).in_context == 0.5
    assert score("parse_table", needed).in_context == 0.0


def test_edited_lines_must_be_verbatim(needed: Needs) -> None:
    assert score("tides.py: table = parse_table(path) # seen", needed).edited_lines == 1.0
    assert score("table = parse_table( path )", needed).edited_lines == 0.0


def test_files_commands_and_errors(needed: Needs) -> None:
    files = score("changed notes.md, read tides.py", needed)
    assert (files.modified, files.read) == (1.0, 1.0)
    assert score("$ pytest -q tests", needed).commands == 1.0
    assert score("$ pytest tests -q", needed).commands == 0.0
    assert score("FAILED test_tides.py::test_high - KeyError: 'noon'", needed).errors == 1.0
    assert score("FAILED test_tides.py::test_high - KeyError", needed).errors == 0.0


def test_a_user_message_is_readable_with_most_of_its_words(needed: Needs) -> None:
    assert score("make harbour schedule respect tomorrow's closing", needed).users == 1.0
    assert score("harbour schedule", needed).users == 0.0


def test_fetching_again_costs_the_results_that_hold_what_is_missing(needed: Needs) -> None:
    assert score("parse_table tides.py", needed).fetch == 0
    costs = {names: tokens for tokens, names in needed.results}
    assert score("tides.py", needed).fetch == costs[frozenset({"parse_table"})]


def test_the_first_column_of_a_table_is_not_invented() -> None:
    table = [user("4711\tOsterhaven\n88123\tWesthaven")]
    assert measure([user("4711 and 88123, but not 9999")], needs(table, [])).invented == 1


def test_names_that_occur_nowhere_are_invented(needed: Needs) -> None:
    assert score("parse_tables in tides.py, see [12] and [1,204]", needed).invented == 1
    made = used("Read", "x", file_path="tides.py")
    quoted = user(f"what {made[0].calls[0].id} gave")
    assert measure([*made, quoted], needed).invented == 0, "ids of calls and keys are no names"
    assert measure([quoted], needed).invented == 1


def test_where_nothing_was_needed_there_is_no_share() -> None:
    empty = measure([user("hello")], needs([user("hello there")], []))
    assert (empty.names, empty.edited_lines, empty.commands) == (None, None, None)


def test_which_names_were_kept(needed: Needs) -> None:
    kept = kept_names([user("parse_table\n")], needed)
    assert (kept.present, kept.in_context) == (frozenset({"parse_table"}), frozenset())
