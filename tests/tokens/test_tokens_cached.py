"""L13: token counts are cached; an unchanged message is never counted twice."""

from __future__ import annotations

from collections import Counter

from holdfast.context import View
from holdfast.context.events import Event, EventKind
from holdfast.messages import Message, user
from holdfast.tokens import CharsPerPiece


class Counting(CharsPerPiece):
    """Estimator that records what it measured."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def measure(self, message: Message) -> int:
        self.asked[message.text] += 1
        return super().measure(message)


def event(seq: int, counter: str | None = None) -> Event:
    body = {"message": {"role": "user", "content": f"message {seq}"}}
    return Event(
        f"e{seq}", EventKind.MESSAGE, "", body | ({"units": 7, "counter": counter} if counter else {}), seq=seq
    )


def test_view_tokens_measures_each_message_once() -> None:
    counting = Counting()
    view = View(counting)
    for seq in range(50):
        view.append(event(seq))
        assert view.tokens > 0
    assert set(counting.asked.values()) == {1}
    assert view.tokens == sum(map(CharsPerPiece().measure, map(user, counting.asked)))


def test_view_uses_stored_units_of_same_estimator() -> None:
    counting = Counting()
    view = View(counting)
    for seq in range(50):
        view.append(event(seq, "counting"))
    assert view.tokens == 50 * 7
    assert not counting.asked


def test_view_remeasures_units_of_another_estimator() -> None:
    counting = Counting()
    view = View(counting)
    view.append(event(1, "chars/3"))
    assert view.tokens == 5
    assert counting.asked == {"message 1": 1}


def test_token_sums_for_second_estimator_measures_each_message_once() -> None:
    view, second = View(CharsPerPiece()), Counting()
    for seq in range(20):
        view.append(event(seq))
        assert view.token_sums_for(second).units == view.tokens
    assert set(second.asked.values()) == {1}
