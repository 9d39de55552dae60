"""The cost trigger: fires at the cheapest size (H4), with constant work at any length (H5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from math import inf, sqrt
from typing import Any

import pytest

from holdfast import MemoryStore, SessionService, preset
from holdfast.compaction.policy import resolve
from holdfast.compaction.presets import PRESETS
from holdfast.context import Checkpoint, HeadMessage, Request
from holdfast.errors import InvalidInput, InvalidLimit, Outcome
from holdfast.messages import Message, Text
from holdfast.tokens import Usage
from holdfast.tokens.catalog import Prices, Ratios
from holdfast.triggers import CostTrigger
from holdfast.triggers.cost import KEPT_TOKENS, SUMMARY_TOKENS, cheapest_size, growth_per_call
from sized import Messages, assistant, letters, request_for, round_of, user

USUAL = Ratios()


def averages(grows: int, after: int, stays: int, summary: int, ratios: Ratios) -> Iterator[tuple[int, float]]:
    """Average cost of a call when compacting at this size, simulated call by call."""
    paid, size = ratios.read * stays + ratios.write * (after - stays), after
    for calls in range(1, 3_000):
        summary_cost = ratios.read * size + ratios.output * summary if summary else 0.0
        yield size, (paid + summary_cost) / calls
        paid += ratios.read * size + ratios.write * grows
        size += grows


SITUATIONS = list(
    product(
        (200, 600, 1_500, 4_000),
        ((8_000, 500), (30_000, 10_000), (55_000, 18_000), (90_000, 5_000)),
        (0, 800, 4_000, 13_000),
        (USUAL, Ratios(0.1, 1.0, 8.0), Ratios(0.25, 1.0, 4.0), Ratios(0.05, 1.25, 5.0), Ratios(0.5, 1.0, 4.0)),
    )
)


def test_h4_cheapest_size_is_near_the_simulated_optimum() -> None:
    """Tries every size: unless the context doubles within ten calls, none is 6 % cheaper, and hardly one 1 %."""
    gaps = []
    for grows, (after, stays), summary, ratios in SITUATIONS:
        if 10 * grows > after:
            continue
        costs = dict(averages(grows, after, stays, summary, ratios))
        chosen = cheapest_size(grows, after, stays, summary, ratios)
        gaps.append(costs[next(size for size in costs if size > chosen)] / min(costs.values()) - 1)
    assert len(gaps) > 200
    assert max(gaps) < 0.06
    assert sorted(gaps)[len(gaps) * 9 // 10] < 0.01


def test_h4_cheapest_size_matches_the_formula() -> None:
    """55,000 tokens stay, 18,000 of them cached, and 1,200 are added a call: the optimum is 96,000, not 155,000."""
    compaction = 0.1 * 55_000 + 5 * 4_000 + 1.25 * 37_000
    assert cheapest_size(1_200, 55_000, 18_000, 4_000, USUAL) == pytest.approx(
        55_000 + sqrt(2 * 1_200 * compaction / 0.1)
    )
    assert 96_000 < cheapest_size(1_200, 55_000, 18_000, 4_000, USUAL) < 97_000


def test_h4_expensive_compaction_is_done_less_often() -> None:
    base = {"growth": 1_000, "after": 40_000, "stays": 10_000, "summary_tokens": 4_000, "ratios": USUAL}

    def size(**changed: Any) -> float:
        return cheapest_size(**{**base, **changed})

    assert size(summary_tokens=13_000) > size()
    assert size(summary_tokens=0) < size(summary_tokens=1)
    assert size(stays=30_000) < size()
    assert size(growth=2_000) > size()
    assert size(ratios=Ratios(read=0.5)) < size() < size(ratios=Ratios(read=0.05))
    assert size(ratios=Ratios(read=0.0)) == inf


def rounds(count: int, tokens: int) -> Messages:
    """A user request and `count` model calls with results, each round of the given number of tokens."""
    return [user(10), *(message for n in range(count) for message in round_of(f"c{n}", tokens - 4))]


def test_h4_fires_above_the_cheapest_size() -> None:
    trigger = CostTrigger(window=500_000, target=30_000)
    fired = [trigger(request_for(rounds(count, 1_000))) for count in range(120)]
    first = int(cheapest_size(1_000, 30_000, 0, SUMMARY_TOKENS, USUAL) // 1_000) + 1
    assert fired == [False] * first + [True] * (120 - first)


@pytest.mark.parametrize("calls", [1, 7, 90, 300])
def test_growth_per_call_counts_tokens_added_by_a_call(calls: int) -> None:
    """300 calls exceed the measured range; the first request is part of the growth."""
    request = request_for(rounds(calls, 1_000), system=letters(5_000))
    assert growth_per_call(request.view) == pytest.approx(1_000 + (10 / calls if calls < 100 else 0))


def test_growth_per_call_counts_reply_of_many_items_once() -> None:
    """In OpenAI's Responses format a reply has reasoning, text and several calls, each a separate item."""
    items: list[Any] = [{"role": "user", "content": "go"}]
    for n in range(20):
        names = [f"c{n}a", f"c{n}b"]
        items.append({"type": "reasoning", "id": f"r{n}", "summary": [], "encrypted_content": letters(10)})
        items.append({"role": "assistant", "content": [{"type": "output_text", "text": "so"}]})
        items += [{"type": "function_call", "call_id": name, "name": "read", "arguments": "{}"} for name in names]
        items += [{"type": "function_call_output", "call_id": name, "output": letters(400)} for name in names]
    request = request_for(items, format="openai-responses")
    assert growth_per_call(request.view) == pytest.approx(request.tokens / 20)


def test_growth_per_call_before_first_reply_is_none() -> None:
    request = request_for([user(50_000)])
    assert growth_per_call(request.view) is None
    assert CostTrigger(window=100_000).threshold(request) == 100_000 - 16_384
    assert growth_per_call(request_for([]).view) is None


def test_p2_fires_at_the_window_limit_at_the_latest() -> None:
    trigger = CostTrigger(window=60_000, reserve=10_000, target=40_000)
    assert trigger.limit == 50_000
    assert not trigger(request_for([user(50_000)]))
    assert trigger(request_for([user(50_001)]))
    assert trigger(request_for([user(100), assistant(49_901)]))


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("claude-sonnet-4-5-20250929", 200_000 - 16_384),
        ("anthropic:claude-sonnet-4-5", 200_000 - 16_384),
        ("gpt-5", 272_000),
        ("a-model-that-nobody-knows", 128_000 - 16_384),
        (None, 128_000 - 16_384),
    ],
)
def test_limit_uses_window_and_longest_prompt_of_the_model(model: str | None, limit: int) -> None:
    assert CostTrigger(model).limit == limit


def test_ratios_use_prices_of_the_model_unless_given() -> None:
    assert CostTrigger("openai:gpt-4.1").ratios == Ratios(0.25, 1.0, 4.0)
    assert CostTrigger("a-model-that-nobody-knows").ratios == CostTrigger().ratios == USUAL
    assert CostTrigger("gpt-4.1", prices=Prices(10.0, 50.0, 0.5, 12.5)).ratios == Ratios(0.05, 1.25, 5.0)


def expected(request: Request, after: int, stays: int) -> int:
    grows = growth_per_call(request.view)
    assert grows is not None
    return int(cheapest_size(grows, after, stays, SUMMARY_TOKENS, USUAL))


def test_threshold_before_first_compaction_expects_typical_size() -> None:
    """System prompt, summary and the newest 20,000 tokens; less where the request has a smaller target."""
    messages, system = rounds(50, 1_000), letters(6_000)
    request = request_for(messages, system=system)
    assert CostTrigger(window=900_000).threshold(request) == expected(
        request, 6_000 + SUMMARY_TOKENS + KEPT_TOKENS, 6_000
    )
    small = request_for(messages, system=system, target=12_000)
    assert CostTrigger(window=900_000).threshold(small) == expected(small, 12_000, 6_000)
    large = request_for(messages, system=system, target=100_000)
    assert CostTrigger(window=900_000).threshold(large) == expected(large, 6_000 + SUMMARY_TOKENS + KEPT_TOKENS, 6_000)
    assert CostTrigger(window=900_000, target=70_000).threshold(small) == expected(small, 70_000, 6_000)


def test_policy_says_how_far_where_neither_trigger_nor_request_does() -> None:
    """In a small window the typical size does not fit: the policy's half of the limit is what the trigger expects."""
    trigger = CostTrigger(window=40_000)
    bounds, request = resolve(trigger=trigger).request(request_for(rounds(50, 100)).view)
    assert bounds.target == request.target == trigger.limit // 2
    assert trigger.threshold(request) == expected(request, trigger.limit // 2, 0)


def compacted(request: Request, after: int) -> Request:
    request.view.start_from(
        "c1", Checkpoint(tokens_after=after), [HeadMessage("note", Message("user", (Text("so far"),)))]
    )
    return request


def test_threshold_after_compaction_expects_its_size() -> None:
    request = compacted(request_for(rounds(50, 1_000)), 33_000)
    for trigger in (CostTrigger(window=900_000), CostTrigger(window=900_000, target=5_000)):
        assert trigger.threshold(request) == expected(request, 33_000, 0)


def test_trigger_never_fires_right_after_a_compaction() -> None:
    """For any size it left: otherwise it would fire repeatedly."""
    for kept in (2, 20, 80):
        request = request_for(rounds(kept, 1_000), system=letters(1_000))
        compacted(request, request.tokens)
        assert not CostTrigger(window=900_000)(request)


def test_system_prompt_among_messages_counts_as_cached() -> None:
    messages = rounds(50, 1_000)
    separate = request_for(messages, system=letters(6_000))
    among = request_for([{"role": "system", "content": letters(5_998)}, *messages])
    assert CostTrigger(window=900_000).threshold(separate) == CostTrigger(window=900_000).threshold(among)


def test_compacting_at_threshold_costs_less_than_at_85_percent() -> None:
    """H4, simulated with messages: 240 calls in a window of 200,000, each compaction down to 40,000."""
    paid = {}
    for name, fires in {"cost": CostTrigger(window=200_000, target=40_000), "85 %": _over(156_073)}.items():
        paid[name], last = 0.0, 10_000
        messages = rounds(15, 2_000)
        for n in range(240):
            messages += round_of(f"n{n}", 1_996)
            request = request_for(messages, system=letters(10_000))
            size = request.tokens
            if fires(request):
                paid[name] += 0.1 * size + 5 * SUMMARY_TOKENS
                messages, last, size = rounds(15, 2_000), 10_000, 40_000
            paid[name] += 0.1 * last + 1.25 * (size - last)
            last = size
    assert paid["cost"] < 0.95 * paid["85 %"]


class Looked(list[Message]):
    """A list that counts accesses to its messages."""

    count = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.count += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self) -> Iterator[Message]:
        self.count += len(self)
        return super().__iter__()


def _over(tokens: int) -> Callable[[Request], bool]:
    return lambda request: request.tokens > tokens


def test_h5_threshold_of_long_history_takes_constant_work() -> None:
    """Counts accesses instead of time: the same number of messages is read among 20,000 as among 500."""
    looks = []
    for count in (250, 10_000):
        view = request_for(rounds(count, 50)).view
        view.messages = looked = Looked(view.messages)
        CostTrigger(window=10**9).threshold(Request(view))
        looks.append(looked.count)
    assert looks[0] == looks[1] > 0


def test_h5_trigger_of_every_preset_decides_without_reading_messages() -> None:
    """The sums that a trigger compares are kept as messages are appended."""
    for count in (5, 10_000):
        view = request_for(rounds(count, 50)).view
        view.messages = looked = Looked(view.messages)
        for name in PRESETS:
            policy = preset(name)
            policy.trigger(policy.request(view)[1])
        assert looked.count == 0


@pytest.mark.anyio
async def test_session_is_compacted_at_threshold_and_not_soon_again() -> None:
    """The provider counts a token per three characters, and 5,000 tokens of a system prompt unknown to the session."""
    trigger, made = CostTrigger(window=200_000, summary_tokens=0), []
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s")
        for n in range(80):
            words = " ".join(f"{n}w{place}" for place in range(400))
            await service.append("s", {"role": "user", "content": words})
            sent = sum(len(message["content"]) for message in await service.context("s"))
            reply = {"role": "assistant", "content": f"done {n}"}
            await service.append("s", reply, usage=Usage(input=5_000 + sent // 3, output=3))
            result = await service.compact("s", trigger, target=20_000)
            if result.outcome is Outcome.COMPACTED:
                made.append(n)
                assert result.tokens_after < result.tokens_before < trigger.limit
    assert len(made) > 1
    assert all(b - a > 5 for a, b in pairwise(made))


WRONG: dict[str, Callable[[], object]] = {
    "no window": lambda: CostTrigger(window=0),
    "a negative reserve": lambda: CostTrigger(reserve=-1),
    "a reserve as large as the window": lambda: CostTrigger(window=10_000, reserve=10_000),
    "no target": lambda: CostTrigger(target=0),
    "a target above the window": lambda: CostTrigger(window=100_000, target=90_000),
    "a negative summary": lambda: CostTrigger(summary_tokens=-1),
    "half a token": lambda: CostTrigger(target=0.5),  # type: ignore[arg-type]
    "a negative price": lambda: CostTrigger(prices=Prices(-1.0)),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_invalid_arguments_raise_on_construction(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidLimit):
        make()


def test_window_passed_as_model_raises_with_hint() -> None:
    with pytest.raises(InvalidInput, match="window="):
        CostTrigger(200_000)  # type: ignore[arg-type]
