"""What makes a line likely to be edited as it stands (H3)."""

from __future__ import annotations

from ledger_story import Messages, said, used, user

from holdfast.ledger import Notebook
from holdfast.ledger.line_worth import OWN, SHARED, line_features, line_worth
from holdfast.ledger.name_worth import name_worth
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


def noted(*messages: Messages) -> Notebook:
    decoded, _ = decode_all([message for group in messages for message in group], "openai-chat")
    notebook = Notebook()
    notebook.read(decoded, range(1, len(decoded) + 1))
    return notebook


def features(notebook: Notebook) -> dict[str, dict[str, float]]:
    found = line_features(notebook, name_worth(notebook), ROOM)
    return {line.text: dict(zip((*SHARED, *OWN), shared + own, strict=True)) for line, shared, own in found}


ROOM = 4_000
READ = used("1", "Read", FILE, file_path="/srv/harbour.go")


def test_all_of_a_function_that_was_spoken_of_is_more_likely_to_be_edited() -> None:
    notebook = noted([user("Mend it.")], READ, [said("The fault must be in castOff.")])
    seen = features(notebook)
    assert seen["\tropes := countRopes(berth)"]["below_said"] > 0
    assert seen["\tboats := countBoats(berth)"]["below_said"] == 0
    worth = line_worth(notebook, name_worth(notebook), ROOM)
    assert worth["\treturn ropes"] > worth["\treturn boats"]


def test_a_line_that_was_met_often_is_more_likely_to_be_among_what_is_edited() -> None:
    again = used("2", "Read", "\treturn ropes\n\treturn ropes", file_path="/srv/quay.go")
    notebook = noted([user("Mend it.")], READ, again)
    assert notebook.lines["\treturn ropes"].times == 3
    assert notebook.lines["\treturn boats"].times == 1
    assert features(notebook)["\treturn ropes"]["times"] > features(notebook)["\treturn boats"]["times"]


def test_what_was_changed_begins_anew() -> None:
    edit = used("2", "Edit", "ok", file_path="/srv/harbour.go", old_string="\treturn ropes", new_string="\treturn 0")
    assert "\treturn ropes" not in noted([user("Mend it.")], READ, edit).lines


def test_with_more_room_lines_from_further_back_may_be_edited() -> None:
    since = used("2", "Bash", "\n".join(f"tide {n} is {n * 7} feet" for n in range(5_000)), command="tides")
    notebook = noted([user("Mend it.")], READ, since)
    worth = name_worth(notebook)
    assert "\treturn ropes" not in line_worth(notebook, worth, 2_000)
    assert "\treturn ropes" in line_worth(notebook, worth, 16_000)
