"""P3: what the provider said of the last good reply, plus an estimate of what came after it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events import Event, Kind
from holdfast.tokens import Calibration, CharsPerPiece, Usage
from holdfast.tokens.calibration import HIGHEST, LARGEST, LOWEST
from holdfast.view import View

NEW = Calibration()


def learned(*replies: tuple[int, int], start: Calibration = NEW) -> Calibration:
    """After replies that left so many units, and that the provider said were so many tokens."""
    for units, tokens in replies:
        start = start.learn(units, Usage(tokens))
    return start


def test_the_size_after_a_reply_is_all_that_was_reported() -> None:
    usage = Usage(input=100, output=20, cache_read=3_000, cache_write=400)
    assert usage.total == 3_520
    assert NEW.learn(2_000, usage).tokens(2_000) == 3_520


def test_before_the_first_reply_a_unit_is_a_token() -> None:
    assert NEW.tokens(1_234) == 1_234
    assert NEW.tokens(0) == 0


def test_what_came_after_the_reply_is_estimated() -> None:
    assert learned((1_000, 5_000)).tokens(1_300) == 5_300
    assert learned((1_000, 5_000)).tokens(900) == 4_900


def test_a_turns_tokens_are_the_difference_of_two_good_usages() -> None:
    before = learned((1_000, 5_000))
    after = learned((11_000, 20_000), start=before)
    assert after.tokens(11_000) - before.tokens(1_000) == 15_000
    assert after.ratio == pytest.approx(1.46, abs=0.01)


def test_the_ratio_and_the_overhead_are_found() -> None:
    """Tokens = 20,000 that nobody showed us + 1.4 for each unit."""
    taught = learned(*((units, round(20_000 + 1.4 * units)) for units in range(500, 80_000, 1_500)))
    assert taught.ratio == pytest.approx(1.4, rel=0.02)
    assert taught.overhead == pytest.approx(20_000, rel=0.01)
    assert taught.forget_size().tokens(10_000) == pytest.approx(34_000, rel=0.02)


def test_a_new_epoch_forgets_the_size_and_keeps_what_was_learned() -> None:
    old = learned((1_000, 21_400), (50_000, 90_000))
    new = old.forget_size()
    assert new.known_tokens is None
    assert (new.ratio, new.overhead, new.replies) == (old.ratio, old.overhead, 2)
    assert new.tokens(1_000) == pytest.approx(21_400, rel=0.001)
    assert new.learn(3_000, Usage(24_000)).tokens(3_000) == 24_000


def test_a_jump_between_two_epochs_teaches_no_ratio() -> None:
    old = learned((1_000, 21_400), (50_000, 90_000))
    assert old.forget_size().learn(3_000, Usage(70_000)).ratio == old.ratio


def test_the_overhead_is_read_where_a_context_is_small() -> None:
    """A prune starts an epoch too, but one whose context is still large: a bad place to tell an overhead from."""
    old = learned((1_000, 21_400), (50_000, 90_000))
    pruned = old.forget_size().learn(40_000, Usage(90_000))
    assert (pruned.base_tokens, pruned.base_units) == (21_400, 1_000)
    compacted = old.forget_size().learn(4_000, Usage(26_000))
    assert (compacted.base_tokens, compacted.base_units) == (26_000, 4_000)


# -- replies that do not count, and usage that makes no sense ------------------------------------------


@pytest.mark.parametrize(
    "usage", [Usage(), Usage(0, 0, 0, 0), Usage(-5), Usage(LARGEST + 1)], ids=["none", "zero", "negative", "absurd"]
)
def test_nonsense_teaches_nothing(usage: Usage) -> None:
    before = learned((1_000, 5_000))
    assert before.learn(2_000, usage) == before
    assert NEW.learn(2_000, usage) == NEW


def test_a_context_that_shrank_has_its_new_size_and_teaches_no_ratio() -> None:
    """The provider cleared tool results by itself, or a session was resumed elsewhere."""
    before = learned((1_000, 5_000), (11_000, 15_000))
    after = before.learn(12_000, Usage(9_000))
    assert after.tokens(12_000) == 9_000
    assert after.ratio == before.ratio


def test_one_wild_figure_moves_the_ratio_little() -> None:
    taught = learned(*((units, 5_000 + units) for units in range(1_000, 60_000, 1_000)))
    wild = taught.learn(60_000, Usage(1_900_000))
    assert wild.ratio == pytest.approx(1.0, abs=0.1)
    assert learned((61_000, 66_000), start=wild).tokens(61_000) == 66_000


figures = st.integers(-1_000, 10**12)
usages = st.builds(Usage, figures, figures, figures, figures)
steps = st.lists(st.tuples(st.integers(0, 10**7), usages | st.none()), max_size=30)


@given(steps, st.integers(0, 10**7))
def test_whatever_is_reported_the_size_is_never_negative_and_the_ratio_bounded(
    reported: list[tuple[int, Usage | None]], units: int
) -> None:
    calibration = NEW
    for size, usage in reported:
        calibration = calibration.forget_size() if usage is None else calibration.learn(size, usage)
        assert LOWEST <= calibration.ratio <= HIGHEST
        assert calibration.overhead >= 0
        assert calibration.tokens(units) >= 0


@given(steps)
def test_it_can_be_carried(reported: list[tuple[int, Usage | None]]) -> None:
    calibration = NEW
    for size, usage in reported:
        calibration = calibration.forget_size() if usage is None else calibration.learn(size, usage)
    assert msgspec.json.decode(msgspec.json.encode(calibration), type=Calibration) == calibration


# -- in a view -----------------------------------------------------------------------------------------


def said(seq: int, role: str, text: str, usage: dict[str, Any] | None = None, epoch: str | None = None) -> Event:
    body: dict[str, Any] = {"message": {"role": role, "content": text}}
    return Event(f"e{seq}", Kind.MESSAGE, "", body | ({"usage": usage} if usage else {}), seq=seq, epoch=epoch)


def view_of(*events: Event) -> View:
    view = View(CharsPerPiece(), calibrated=True)
    for event in events:
        view.append(event)
    return view


ASKED, ANSWERED = said(1, "user", "x" * 400), said(2, "assistant", "y" * 400, {"input": 5_000, "output": 120})


def test_a_view_knows_the_size_that_was_reported() -> None:
    assert view_of(ASKED).tokens == 102
    assert view_of(ASKED, ANSWERED).tokens == 5_120
    assert view_of(ASKED, ANSWERED, said(3, "user", "z" * 400)).tokens == 5_120 + 102


def test_aborted_and_failed_replies_do_not_count() -> None:
    """They come without usage: what they said is estimated like anything else since the last good reply."""
    aborted = said(4, "assistant", "y" * 200)
    assert view_of(ASKED, ANSWERED, said(3, "user", "z" * 400), aborted).tokens == 5_120 + 102 + 52


def test_usage_from_another_epoch_says_nothing_of_this_context() -> None:
    other = said(2, "assistant", "y" * 400, {"input": 5_000, "output": 120}, epoch="a compaction that was undone")
    assert view_of(ASKED, other).tokens == 204


def test_a_view_that_is_not_calibrated_only_estimates() -> None:
    view = View(CharsPerPiece())
    view.append(ASKED)
    view.append(ANSWERED)
    assert view.tokens == 204
