"""Like actions in a row: the newest is the form, the others show what differs (H3)."""

from __future__ import annotations

from ledger_helpers import Messages, assistant, tool_use, user

from holdfast.ledger import HistoryExtractor
from holdfast.messages import decode_all

FOLDER = "cd /srv/harbour/quays && go test -count=1 -timeout 300s -run TestMoorings"


def steps(*messages: Messages) -> list[str]:
    decoded, _ = decode_all([message for group in messages for message in group], "openai-chat")
    history = HistoryExtractor()
    history.read(decoded, range(1, len(decoded) + 1))
    return [line.text for line in history.steps]


def go_test(id: str, what: str) -> Messages:
    return tool_use(id, "Bash", "ok", command=f"{FOLDER}/{what} ./pkg/{what}/... 2>&1 | tail -20")


def test_of_like_calls_in_a_row_the_older_show_what_differs() -> None:
    first, second, last = steps([user("Test.")], go_test("1", "tides"), go_test("2", "berths"), go_test("3", "cranes"))
    assert first == "Bash\n[…] TestMoorings/tides ./pkg/tides/... 2>&1 | tail -20"
    assert second == "Bash\n[…] TestMoorings/berths ./pkg/berths/... 2>&1 | tail -20"
    assert last == f"Bash\n{FOLDER}/cranes ./pkg/cranes/... 2>&1 | tail -20"


def test_of_like_calls_in_a_row_the_newest_has_more_room() -> None:
    """It is the form of the next."""
    texts = [f"Berth {n} needs a new fender, which {'the old yard by the mill ' * 4}has" for n in range(4)]
    made = [
        tool_use(f"{n}", "TaskCreate", "ok", activeForm="", subject=f"Berth {n}", description=text)
        for n, text in enumerate(texts)
    ]
    *older, last = steps([user("Plan.")], *made)
    assert last == f"TaskCreate\nBerth 3\n{texts[3]}"
    assert all(len(one) < len(last) * 0.7 for one in older)


def test_a_single_call_has_no_more_room_than_before() -> None:
    other = tool_use("2", "Bash", "ok", command="ls " + "x" * 300, timeout=5)
    (first, second, third) = steps(
        [user("Test.")], go_test("1", "tides"), other, [assistant("So.")], go_test("3", "cranes")
    )
    assert max(map(len, (first, second, third))) <= 100
    assert first.startswith(f"Bash\n{FOLDER[:20]}")
