"""Each measure on contexts with and without the needed item."""

from __future__ import annotations

import pytest

from holdfast.lab.measures import RetentionScore, kept_names, score_context
from holdfast.lab.needs import NeededItems, find_needed
from holdfast.messages import user
from lab_story import AFTER, BEFORE, used


@pytest.fixture(scope="module")
def needed() -> NeededItems:
    return find_needed(BEFORE, AFTER)


def score(text: str, needed: NeededItems) -> RetentionScore:
    return score_context([user(text)], needed)


def test_score_of_whole_history_is_full(needed: NeededItems) -> None:
    whole = score_context(BEFORE, needed)
    shares = (whole.names, whole.in_context, whole.edited_lines, whole.modified, whole.read, whole.users)
    assert shares == (1.0,) * 6
    assert (whole.errors, whole.commands, whole.fetch, whole.invented) == (1.0, 1.0, 0, 0)


def test_score_of_empty_context_is_zero(needed: NeededItems) -> None:
    empty = score("", needed)
    shares = (empty.names, empty.in_context, empty.edited_lines, empty.modified, empty.read, empty.users)
    assert shares == (0.0,) * 6
    assert (empty.errors, empty.commands, empty.invented) == (0.0, 0.0, 0)
    assert empty.fetch > 0


def test_name_alone_is_not_in_context(needed: NeededItems) -> None:
    listed = score("names: parse_table, tides.py", needed)
    assert (listed.names, listed.in_context) == (1.0, 0.0)
    assert score("table = parse_table(path)", needed).in_context == 0.5


def test_half_of_the_other_words_is_context(needed: NeededItems) -> None:
    assert score("table parse_table", needed).in_context == 0.5
    assert score("parse_table", needed).in_context == 0.0


def test_edited_lines_must_be_verbatim(needed: NeededItems) -> None:
    assert score("tides.py: table = parse_table(path) # seen", needed).edited_lines == 1.0
    assert score("table = parse_table( path )", needed).edited_lines == 0.0


def test_score_files_commands_and_errors(needed: NeededItems) -> None:
    files = score("changed notes.md, read tides.py", needed)
    assert (files.modified, files.read) == (1.0, 1.0)
    assert score("$ pytest -q tests", needed).commands == 1.0
    assert score("$ pytest tests -q", needed).commands == 0.0
    assert score("FAILED test_tides.py::test_high - KeyError: 'noon'", needed).errors == 1.0
    assert score("FAILED test_tides.py::test_high - KeyError", needed).errors == 0.0


def test_user_message_needs_most_of_its_words(needed: NeededItems) -> None:
    assert score("make harbour schedule respect tomorrow's closing", needed).users == 1.0
    assert score("harbour schedule", needed).users == 0.0


def test_fetch_counts_results_with_missing_names(needed: NeededItems) -> None:
    assert score("parse_table tides.py", needed).fetch == 0
    costs = {names: tokens for tokens, names in needed.results}
    assert score("tides.py", needed).fetch == costs[frozenset({"parse_table"})]


def test_table_numbers_are_not_invented() -> None:
    table = [user("4711\tOsterhaven\n88123\tWesthaven")]
    assert score_context([user("4711 and 88123, but not 9999")], find_needed(table, [])).invented == 1


def test_unknown_names_are_invented(needed: NeededItems) -> None:
    assert score("parse_tables in tides.py, see [12] and [1,204]", needed).invented == 1
    made = used("Read", "x", file_path="tides.py")
    quoted = user(f"what {made[0].calls[0].id} gave")
    assert score_context([*made, quoted], needed).invented == 0, "ids of calls and keys are no names"
    assert score_context([quoted], needed).invented == 1


def test_score_without_needs_is_none() -> None:
    empty = score_context([user("hello")], find_needed([user("hello there")], []))
    assert (empty.names, empty.edited_lines, empty.commands) == (None, None, None)


def test_kept_names_lists_names(needed: NeededItems) -> None:
    kept = kept_names([user("parse_table\n")], needed)
    assert (kept.present, kept.in_context) == (frozenset({"parse_table"}), frozenset())
