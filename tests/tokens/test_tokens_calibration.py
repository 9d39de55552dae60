"""P3: usage reported with the last successful reply, plus an estimate of later messages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context import View
from holdfast.context.events import Event, EventKind
from holdfast.tokens import Calibration, CharsPerPiece, Usage
from holdfast.tokens.usage import MAX_RATIO, MAX_TOKENS, MIN_RATIO

NEW = Calibration()


def learned(*replies: tuple[int, int], start: Calibration = NEW) -> Calibration:
    """Returns the calibration after replies, given as pairs of units and reported tokens."""
    for units, tokens in replies:
        start = start.learn(units, Usage(tokens))
    return start


def test_calibration_size_after_reply_is_reported_total() -> None:
    usage = Usage(input=100, output=20, cache_read=3_000, cache_write=400)
    assert usage.total == 3_520
    assert NEW.learn(2_000, usage).tokens(2_000) == 3_520


def test_calibration_before_first_reply_counts_units_as_tokens() -> None:
    assert NEW.tokens(1_234) == 1_234
    assert NEW.tokens(0) == 0


def test_calibration_estimates_units_after_reply() -> None:
    assert learned((1_000, 5_000)).tokens(1_300) == 5_300
    assert learned((1_000, 5_000)).tokens(900) == 4_900


def test_calibration_ratio_is_difference_of_two_usages() -> None:
    before = learned((1_000, 5_000))
    after = learned((11_000, 20_000), start=before)
    assert after.tokens(11_000) - before.tokens(1_000) == 15_000
    assert after.ratio == pytest.approx(1.46, abs=0.01)


def test_calibration_learns_ratio_and_overhead() -> None:
    """Tokens = 20,000 of hidden overhead + 1.4 per unit."""
    taught = learned(*((units, round(20_000 + 1.4 * units)) for units in range(500, 80_000, 1_500)))
    assert taught.ratio == pytest.approx(1.4, rel=0.02)
    assert taught.overhead == pytest.approx(20_000, rel=0.01)
    assert taught.reset_size().tokens(10_000) == pytest.approx(34_000, rel=0.02)


def test_calibration_reset_size_keeps_ratio_and_overhead() -> None:
    old = learned((1_000, 21_400), (50_000, 90_000))
    new = old.reset_size()
    assert new.known_tokens is None
    assert (new.ratio, new.overhead, new.replies) == (old.ratio, old.overhead, 2)
    assert new.tokens(1_000) == pytest.approx(21_400, rel=0.001)
    assert new.learn(3_000, Usage(24_000)).tokens(3_000) == 24_000


def test_calibration_ignores_difference_between_epochs() -> None:
    old = learned((1_000, 21_400), (50_000, 90_000))
    assert old.reset_size().learn(3_000, Usage(70_000)).ratio == old.ratio


def test_calibration_learns_overhead_from_small_context() -> None:
    """A prune starts an epoch too, but with a large context, from which the overhead cannot be estimated well."""
    old = learned((1_000, 21_400), (50_000, 90_000))
    pruned = old.reset_size().learn(40_000, Usage(90_000))
    assert (pruned.base_tokens, pruned.base_units) == (21_400, 1_000)
    compacted = old.reset_size().learn(4_000, Usage(26_000))
    assert (compacted.base_tokens, compacted.base_units) == (26_000, 4_000)


# -- replies that do not count, and invalid usage ------------------------------------------------------


@pytest.mark.parametrize(
    "usage", [Usage(), Usage(0, 0, 0, 0), Usage(-5), Usage(MAX_TOKENS + 1)], ids=["none", "zero", "negative", "absurd"]
)
def test_calibration_ignores_invalid_usage(usage: Usage) -> None:
    before = learned((1_000, 5_000))
    assert before.learn(2_000, usage) == before
    assert NEW.learn(2_000, usage) == NEW


def test_calibration_shrunk_context_updates_size_not_ratio() -> None:
    """The provider cleared tool results, or the session was resumed elsewhere."""
    before = learned((1_000, 5_000), (11_000, 15_000))
    after = before.learn(12_000, Usage(9_000))
    assert after.tokens(12_000) == 9_000
    assert after.ratio == before.ratio


def test_calibration_outlier_changes_ratio_little() -> None:
    taught = learned(*((units, 5_000 + units) for units in range(1_000, 60_000, 1_000)))
    wild = taught.learn(60_000, Usage(1_900_000))
    assert wild.ratio == pytest.approx(1.0, abs=0.1)
    assert learned((61_000, 66_000), start=wild).tokens(61_000) == 66_000


figures = st.integers(-1_000, 10**12)
usages = st.builds(Usage, figures, figures, figures, figures)
steps = st.lists(st.tuples(st.integers(0, 10**7), usages | st.none()), max_size=30)


@given(steps, st.integers(0, 10**7))
def test_calibration_size_is_never_negative_and_ratio_bounded(
    reported: list[tuple[int, Usage | None]], units: int
) -> None:
    calibration = NEW
    for size, usage in reported:
        calibration = calibration.reset_size() if usage is None else calibration.learn(size, usage)
        assert MIN_RATIO <= calibration.ratio <= MAX_RATIO
        assert calibration.overhead >= 0
        assert calibration.tokens(units) >= 0


@given(steps)
def test_calibration_round_trips_through_json(reported: list[tuple[int, Usage | None]]) -> None:
    calibration = NEW
    for size, usage in reported:
        calibration = calibration.reset_size() if usage is None else calibration.learn(size, usage)
    assert msgspec.json.decode(msgspec.json.encode(calibration), type=Calibration) == calibration


# -- in a view -----------------------------------------------------------------------------------------


def message_event(
    seq: int, role: str, text: str, usage: dict[str, Any] | None = None, epoch: str | None = None
) -> Event:
    body: dict[str, Any] = {"message": {"role": role, "content": text}}
    return Event(f"e{seq}", EventKind.MESSAGE, "", body | ({"usage": usage} if usage else {}), seq=seq, epoch=epoch)


def view_of(*events: Event) -> View:
    view = View(CharsPerPiece(), calibrated=True)
    for event in events:
        view.append(event)
    return view


ASKED, ANSWERED = (
    message_event(1, "user", "x" * 400),
    message_event(2, "assistant", "y" * 400, {"input": 5_000, "output": 120}),
)


def test_view_tokens_equal_reported_usage() -> None:
    assert view_of(ASKED).tokens == 102
    assert view_of(ASKED, ANSWERED).tokens == 5_120
    assert view_of(ASKED, ANSWERED, message_event(3, "user", "z" * 400)).tokens == 5_120 + 102


def test_view_ignores_replies_without_usage() -> None:
    """They have no usage: their text is estimated like any other message since the last successful reply."""
    aborted = message_event(4, "assistant", "y" * 200)
    assert view_of(ASKED, ANSWERED, message_event(3, "user", "z" * 400), aborted).tokens == 5_120 + 102 + 52


def test_view_ignores_usage_of_another_epoch() -> None:
    other = message_event(
        2, "assistant", "y" * 400, {"input": 5_000, "output": 120}, epoch="a compaction that was undone"
    )
    assert view_of(ASKED, other).tokens == 204


def test_view_without_calibration_only_estimates() -> None:
    view = View(CharsPerPiece())
    view.append(ASKED)
    view.append(ANSWERED)
    assert view.tokens == 204
