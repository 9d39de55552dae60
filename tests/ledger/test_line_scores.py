"""Scores of lines that may be edited or written again (H3)."""

from __future__ import annotations

import pytest
from ledger_helpers import Messages, assistant, tool_use, user

from holdfast.ledger import HistoryExtractor, scoring
from holdfast.ledger.entries import decay
from holdfast.ledger.scoring import EDITED_WEIGHT, REUSED_WEIGHT, LineScores, score_lines, score_names
from holdfast.messages import decode_all

FILE = """\
func moorBoat(berth int) {
\tboats := countBoats(berth)
\treturn boats
}
func castOff(berth int) {
\tropes := countRopes(berth)
\treturn ropes
}"""


def noted(*messages: Messages) -> HistoryExtractor:
    decoded, _ = decode_all([message for group in messages for message in group], "openai-chat")
    history = HistoryExtractor()
    history.read(decoded, range(1, len(decoded) + 1))
    return history


ROOM = 4_000


def total(scores: LineScores, *texts: str) -> float:
    return sum(scores.edited[text] + scores.reused[text] for text in texts or scores.edited)


READ = tool_use("1", "Read", FILE, file_path="/srv/harbour.go")


def test_line_in_function_mentioned_by_assistant_scores_higher() -> None:
    history = noted([user("Mend it.")], READ, [assistant("The fault must be in castOff.")])
    scores = score_lines(history, score_names(history), ROOM)
    assert total(scores, "\treturn ropes") > total(scores, "\treturn boats")


def test_line_read_often_is_likelier_to_be_edited() -> None:
    again = tool_use("2", "Read", "\treturn ropes\n\treturn ropes", file_path="/srv/quay.go")
    history = noted([user("Mend it.")], READ, again)
    assert history.lines["\treturn ropes"].occurrences == 3
    assert history.lines["\treturn boats"].occurrences == 1
    edited = score_lines(noted([user("Mend it.")], READ, again), {"x": 1.0}, ROOM).edited
    once = score_lines(noted([user("Mend it.")], READ), {"x": 1.0}, ROOM).edited
    assert (
        edited["\treturn ropes"] / edited["\tropes := countRopes(berth)"]
        > once["\treturn ropes"] / once["\tropes := countRopes(berth)"]
    )


def test_line_changed_starts_without_occurrences() -> None:
    edit = tool_use(
        "2", "Edit", "ok", file_path="/srv/harbour.go", old_string="\treturn ropes", new_string="\treturn 0"
    )
    assert "\treturn ropes" not in noted([user("Mend it.")], READ, edit).lines


def test_score_lines_reaches_further_back_with_more_room() -> None:
    since = tool_use("2", "Bash", "\n".join(f"tide {n} is {n * 7} feet" for n in range(5_000)), command="tides")
    history = noted([user("Mend it.")], READ, since)
    worth = score_names(history)
    assert "\treturn ropes" not in score_lines(history, worth, 2_000).edited
    assert "\treturn ropes" in score_lines(history, worth, 16_000).edited


@pytest.fixture
def even_odds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line has the probability 1/2."""
    monkeypatch.setattr(scoring, "_line_chances", lambda *line: (0.5, 0.5))


WORTH = {"countRopes": 0.75, "castOff": 0.25}


def test_weight_of_lines_is_shared_by_all_that_may_be_needed(even_odds: None) -> None:
    """The names' total score, weighted, is what all lines are worth together, however many they are."""
    more = tool_use("2", "Read", "\n".join(f"rope_{n} is taut" for n in range(100)), file_path="/srv/ropes.txt")
    few, many = (score_lines(noted(READ, *rest), WORTH, ROOM) for rest in ((), (more,)))
    for scores in (few, many):
        assert sum(scores.edited.values()) == pytest.approx(EDITED_WEIGHT)
        assert sum(scores.reused.values()) == pytest.approx(REUSED_WEIGHT)
    assert len(many.edited) == len(few.edited) + 100
    assert 0 < total(many, "\treturn ropes") < total(few, "\treturn ropes") / 5
    assert 0 < many.per_character < few.per_character / 5


def test_lines_have_more_weight_where_most_names_have_room(even_odds: None) -> None:
    little, enough, twice = (score_lines(noted(READ), WORTH, room) for room in (1_000, ROOM, 2 * ROOM))
    assert little == enough
    assert sum(twice.edited.values()) == pytest.approx(2 * EDITED_WEIGHT)
    assert sum(twice.reused.values()) == pytest.approx(2 * REUSED_WEIGHT)
    assert twice.per_character == pytest.approx(2 * enough.per_character)


def test_lines_have_no_more_weight_in_a_small_part_of_a_long_history(even_odds: None) -> None:
    """In a tenth of it most names do not have room, however large that is."""
    long = tool_use("2", "Bash", "\n".join(f"tide {n} is {n * 7} feet high" for n in range(27_000)), command="tides")
    few = [score_lines(noted(READ, long), WORTH, room) for room in (ROOM, 4 * ROOM)]
    assert sum(few[1].reused.values()) == pytest.approx(sum(few[0].reused.values()))
    assert sum(few[1].edited.values()) == pytest.approx(EDITED_WEIGHT)


def test_few_lines_are_not_worth_more_than_a_certain_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hardly anything is likely to be needed, scores are not scaled up."""
    monkeypatch.setattr(scoring, "_line_chances", lambda *line: (1e-9, 1e-9))
    scores = score_lines(noted(READ), WORTH, ROOM)
    assert total(scores) < 1e-6
    assert scores.per_character == pytest.approx(REUSED_WEIGHT)


def test_reuse_is_scored_by_length_and_edits_by_line(even_odds: None) -> None:
    scores = score_lines(noted(READ), WORTH, ROOM)
    long, short = "func castOff(berth int) {", "\treturn ropes"
    assert scores.edited[long] == scores.edited[short]
    difference = scores.reused[long] - scores.reused[short]
    assert difference == pytest.approx(scores.per_character * (len(long) - len(short)) / 2)


def test_without_files_nothing_is_to_be_edited_or_written_again(even_odds: None) -> None:
    history = noted(
        [user("Tell me of ropes."), assistant("A rope of hemp holds 12 tons.\nA rope of steel holds more.")]
    )
    scores = score_lines(history, WORTH, ROOM)
    assert not total(scores)
    assert scores.per_character > 0


def test_words_of_the_user_are_not_expected_to_be_written_again(even_odds: None) -> None:
    asked = "Mend countRopes before the tide turns."
    history = noted([user(asked)], READ, [assistant("The fault must be in castOff.")])
    scores = score_lines(history, WORTH, ROOM)
    assert not scores.reused[asked]
    assert scores.reused["The fault must be in castOff."]


@pytest.mark.parametrize("age", [-30, -5, -1, 0])
def test_what_is_newer_than_the_clock_is_as_young_as_can_be(age: int) -> None:
    """At -5 of 5 it was a division by zero: a note that is read back may be newer than the messages read so far."""
    assert decay(age, 5) == 1.0
