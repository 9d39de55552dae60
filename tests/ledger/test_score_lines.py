"""Features that make a line likely to be edited verbatim (H3)."""

from __future__ import annotations

from ledger_helpers import Messages, assistant, tool_use, user

from holdfast.ledger import HistoryExtractor
from holdfast.ledger.scoring import OWN_FEATURES, SHARED_FEATURES, line_features, score_lines, score_names
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


def features(history: HistoryExtractor) -> dict[str, dict[str, float]]:
    found = line_features(history, score_names(history), ROOM)
    return {
        line.text: dict(zip((*SHARED_FEATURES, *OWN_FEATURES), shared + own, strict=True))
        for line, shared, own in found
    }


ROOM = 4_000
READ = tool_use("1", "Read", FILE, file_path="/srv/harbour.go")


def test_line_in_function_mentioned_by_assistant_scores_higher() -> None:
    history = noted([user("Mend it.")], READ, [assistant("The fault must be in castOff.")])
    seen = features(history)
    assert seen["\tropes := countRopes(berth)"]["below_said"] > 0
    assert seen["\tboats := countBoats(berth)"]["below_said"] == 0
    worth = score_lines(history, score_names(history), ROOM)
    assert worth["\treturn ropes"] > worth["\treturn boats"]


def test_line_read_often_has_higher_occurrence_feature() -> None:
    again = tool_use("2", "Read", "\treturn ropes\n\treturn ropes", file_path="/srv/quay.go")
    history = noted([user("Mend it.")], READ, again)
    assert history.lines["\treturn ropes"].occurrences == 3
    assert history.lines["\treturn boats"].occurrences == 1
    assert features(history)["\treturn ropes"]["times"] > features(history)["\treturn boats"]["times"]


def test_line_changed_starts_without_occurrences() -> None:
    edit = tool_use(
        "2", "Edit", "ok", file_path="/srv/harbour.go", old_string="\treturn ropes", new_string="\treturn 0"
    )
    assert "\treturn ropes" not in noted([user("Mend it.")], READ, edit).lines


def test_score_lines_reaches_further_back_with_more_room() -> None:
    since = tool_use("2", "Bash", "\n".join(f"tide {n} is {n * 7} feet" for n in range(5_000)), command="tides")
    history = noted([user("Mend it.")], READ, since)
    worth = score_names(history)
    assert "\treturn ropes" not in score_lines(history, worth, 2_000)
    assert "\treturn ropes" in score_lines(history, worth, 16_000)
