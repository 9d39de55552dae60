"""L13: token counts are cached; an unchanged message is never counted twice."""

from __future__ import annotations

from collections import Counter

from holdfast.events import Event, Kind
from holdfast.messages import Message, user
from holdfast.tokens import CharsPerPiece
from holdfast.view import View


class Counting(CharsPerPiece):
    """Remembers what it was asked to measure."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def measure(self, message: Message) -> int:
        self.asked[message.text] += 1
        return super().measure(message)


def event(seq: int, counter: str | None = None) -> Event:
    body = {"message": {"role": "user", "content": f"message {seq}"}}
    return Event(f"e{seq}", Kind.MESSAGE, "", body | ({"units": 7, "counter": counter} if counter else {}), seq=seq)


def test_each_message_is_measured_once_however_often_the_size_is_asked_for() -> None:
    counting = Counting()
    view = View(counting)
    for seq in range(50):
        view.append(event(seq))
        assert view.tokens > 0
    assert set(counting.asked.values()) == {1}
    assert view.tokens == sum(map(CharsPerPiece().measure, map(user, counting.asked)))


def test_what_the_log_already_counted_is_not_measured_at_all() -> None:
    counting = Counting()
    view = View(counting)
    for seq in range(50):
        view.append(event(seq, "counting"))
    assert view.tokens == 50 * 7
    assert not counting.asked


def test_what_another_estimator_counted_is_measured_again() -> None:
    counting = Counting()
    view = View(counting)
    view.append(event(1, "chars/3"))
    assert view.tokens == 5
    assert counting.asked == {"message 1": 1}


def test_a_second_estimator_measures_each_message_once_too() -> None:
    view, second = View(CharsPerPiece()), Counting()
    for seq in range(20):
        view.append(event(seq))
        assert view.gauge_for(second).units == view.tokens
    assert set(second.asked.values()) == {1}
