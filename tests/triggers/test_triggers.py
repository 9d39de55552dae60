"""Triggers, exact to the token (S4-S7, P2, L4, W1, G2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import OverBudget, TokenCount, TurnCount, any_of
from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.messages import framed_message
from holdfast.tokens.budget import Fraction, LayerBudget, Tokens, WorkstreamBudget
from holdfast.triggers import (
    ByteCount,
    EventCount,
    ImageCount,
    LayerTrigger,
    OverUtilization,
    WorkstreamTrigger,
    all_of,
    always,
    never,
    not_,
    pi_trigger,
)
from sized import Json, Messages, assistant, calls, letters, request_for, result, user

PIXEL = "iVBORw0KGgo="


def of_size(tokens: int) -> Messages:
    """Two messages of `tokens` tokens in total."""
    return [user(tokens - 1_000), assistant(1_000)]


EDGES: dict[str, tuple[Any, int, bool]] = {
    "S6: one token below the count": (TokenCount(4_000), 3_999, False),
    "S6: at the count": (TokenCount(4_000), 4_000, True),
    "P2: at the window less 16,384": (pi_trigger(200_000), 183_616, False),
    "P2: one token above it": (pi_trigger(200_000), 183_617, True),
    "P2: at another reserve": (pi_trigger(100_000, reserve_tokens=20_000), 80_000, False),
    "P2: above another reserve": (pi_trigger(100_000, reserve_tokens=20_000), 80_001, True),
    "P21: at an absolute limit": (OverBudget(Tokens(180_000), 200_000), 180_000, False),
    "P21: above an absolute limit": (OverBudget(Tokens(180_000), 200_000), 180_001, True),
    "P24: at 85 % of 183,616": (OverBudget(Fraction(0.85, 16_384), 200_000), 156_073, False),
    "P24: above 85 % of 183,616": (OverBudget(Fraction(0.85, 16_384), 200_000), 156_074, True),
    "W1: one token below 140,000": (WorkstreamTrigger(), 139_999, False),
    "W1: at 140,000": (WorkstreamTrigger(), 140_000, True),
    "W1: at a smaller size": (WorkstreamTrigger(WorkstreamBudget(size=90_000)), 50_000, True),
    "W1: one token below half of a small one": (WorkstreamTrigger(WorkstreamBudget(size=32_000)), 15_999, False),
    "W1: at half of a small one": (WorkstreamTrigger(WorkstreamBudget(size=32_000)), 16_000, True),
    "G2: at four fifths of 183,616": (OverUtilization(), 146_892, False),
    "G2: above four fifths of 183,616": (OverUtilization(), 146_893, True),
    "G2: with a million": (OverUtilization(limit=1_000_000), 786_892, False),
    "G2: above four fifths of a million": (OverUtilization(limit=1_000_000), 786_893, True),
}


@pytest.mark.parametrize(("trigger", "tokens", "fires"), EDGES.values(), ids=EDGES)
def test_trigger_fires_exactly_at_its_threshold(trigger: Callable[..., bool], tokens: int, fires: bool) -> None:
    request = request_for(of_size(tokens))
    assert request.tokens == tokens
    assert trigger(request) is fires


def test_over_budget_fires_only_above_the_budget() -> None:
    assert not OverBudget()(request_for(of_size(2_000), budget=2_000))
    assert OverBudget()(request_for(of_size(2_001), budget=2_000))
    assert not OverBudget()(request_for(of_size(2_001)))


def test_s6_token_count_uses_its_own_estimator() -> None:
    request = request_for(of_size(4_000))
    assert TokenCount(2, estimator=lambda text: 1)(request)
    assert not TokenCount(3, estimator=lambda text: 1)(request)
    assert TokenCount(4_004, estimator="chars/4+4")(request)
    assert not TokenCount(4_005, estimator="chars/4+4")(request)


def test_token_count_includes_system_prompt() -> None:
    request = request_for(of_size(3_000), system=letters(1_000))
    assert TokenCount(4_000)(request)
    assert not TokenCount(4_001)(request)


def test_g2_system_prompt_reduces_the_window_and_is_no_message() -> None:
    """1,000 tokens of system leave 182,616; four fifths of it are 146,092.8."""
    for tokens, fires in ((146_092, False), (146_093, True)):
        messages = [{"role": "user", "content": letters(tokens - 4)}]
        request = request_for(messages, estimator="chars/4+4", system=letters(1_000))
        assert OverUtilization()(request) is fires


def test_w2_workstream_counts_characters_by_three_and_rounds_once() -> None:
    for characters, fires in ((419_997, False), (419_998, True)):
        messages = [{"role": "user", "content": "x" * 19_997}, {"role": "user", "content": "x" * (characters - 19_997)}]
        assert WorkstreamTrigger()(request_for(messages, estimator="chars/3")) is fires


def test_l4_layer_trigger_never_fires_at_keep_plus_one_messages() -> None:
    eleven = [user(50_000)] * 11
    assert not LayerTrigger()(request_for(eleven))
    assert LayerTrigger()(request_for([*eleven, user(2)]))


@pytest.mark.parametrize(("tokens", "fires"), [(93_599, False), (93_600, True)])
def test_l4_layer_trigger_fires_at_threshold_from_twelve_messages(tokens: int, fires: bool) -> None:
    messages = [user(1_000)] * 11 + [user(tokens - 11_000)]
    assert LayerTrigger()(request_for(messages)) is fires


def test_l4_keep_and_limit_are_configurable() -> None:
    budget = LayerBudget(limit=12_000, keep_last=2)
    assert budget.threshold == 6_000
    assert not LayerTrigger(budget)(request_for([user(9_000)] * 3))
    assert LayerTrigger(budget)(request_for([user(1_500)] * 4))


def test_l4_summary_counts_as_a_message() -> None:
    """As in the document, where it is at index 1 of the list."""
    request = request_for([user(50_000)] * 13)
    assert not LayerTrigger()(request.at(request.plan.archive(3).show([framed_message("so far")])))
    assert LayerTrigger()(request.at(request.plan.archive(2).show([framed_message("so far")])))


def test_s5_turn_count_fires_above_n_turns() -> None:
    two = request_for([user(5), assistant(5), user(5)])
    assert (two.turn_count, TurnCount(2)(two), TurnCount(1)(two)) == (2, False, True)


def test_s5_tool_result_is_not_a_turn() -> None:
    request = request_for([user(5), calls("a"), result("a", 9), assistant(5)])
    assert (request.turn_count, request.event_count) == (1, 4)


def test_event_count_fires_above_n_events() -> None:
    three = request_for([user(5), assistant(5), user(5)])
    assert not EventCount(3)(three)
    assert EventCount(2)(three)


def test_event_count_ignores_system_messages_and_notes() -> None:
    note = {"role": "user", "content": framed_message("so far").text}
    request = request_for([{"role": "system", "content": "be brief"}, note, user(5), assistant(5)])
    assert (request.event_count, request.turn_count) == (2, 1)


def image(data: str = PIXEL) -> Json:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def test_byte_count_fires_above_n_bytes_of_text_and_media() -> None:
    plain = request_for([{"role": "user", "content": "é" * 10}])
    assert ByteCount(19)(plain)
    assert not ByteCount(20)(plain)
    pictured = request_for([{"role": "user", "content": [{"type": "text", "text": "look"}, image("A" * 96)]}])
    assert ByteCount(99)(pictured)
    assert not ByteCount(100)(pictured)


def test_image_count_fires_above_n_images() -> None:
    request = request_for([{"role": "user", "content": [image(), image()]}, assistant(5)])
    assert ImageCount(1)(request)
    assert not ImageCount(2)(request)


def test_image_count_includes_images_in_tool_results() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    shot = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image", "source": source}]}
    use = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    messages = [user(5), {"role": "assistant", "content": [use]}, {"role": "user", "content": [shot]}]
    request = request_for(messages, format="anthropic")
    assert ImageCount(1)(request) is False
    assert ByteCount(len(PIXEL))(request)


REQUEST = request_for([user(5)])
EXPLODES: Any = lambda request: 1 // 0  # noqa: E731


@pytest.mark.parametrize(
    ("trigger", "fires"),
    [
        pytest.param(any_of(never, never, always), True, id="S7: any of"),
        pytest.param(any_of(never, never), False, id="S7: none of"),
        pytest.param(all_of(always, always), True, id="all of"),
        pytest.param(all_of(always, never), False, id="not all of"),
        pytest.param(not_(never), True, id="not"),
        pytest.param(any_of(all_of(always, not_(never)), never), True, id="nested"),
        pytest.param(any_of(always, EXPLODES), True, id="the first that fires is enough"),
        pytest.param(all_of(never, EXPLODES), False, id="the first that does not is enough"),
        pytest.param(any_of(lambda request: request.turn_count == 1), True, id="S4: any callable"),
    ],
)
def test_triggers_compose(trigger: Callable[..., bool], fires: bool) -> None:
    assert trigger(REQUEST) is fires


WRONG: dict[str, Callable[[], object]] = {
    "no turns": lambda: TurnCount(0),
    "no events": lambda: EventCount(0),
    "no tokens": lambda: TokenCount(0),
    "no bytes": lambda: ByteCount(0),
    "no images": lambda: ImageCount(-1),
    "P2: no window": lambda: pi_trigger(0),
    "P2: a negative reserve": lambda: pi_trigger(1_000, -1),
    "G2: more than all of it": lambda: OverUtilization(part=80),
    "G2: no limit": lambda: OverUtilization(limit=0),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_invalid_trigger_arguments_raise_on_construction(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidLimit, match=r"must be a (whole )?number"):
        make()


@pytest.mark.parametrize("combine", [any_of, all_of])
def test_composites_require_one_or_more_callables(combine: Callable[..., Any]) -> None:
    for triggers in ((), (5,), (always, None)):
        with pytest.raises(InvalidInput, match="trigger"):
            combine(*triggers)
