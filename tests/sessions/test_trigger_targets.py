"""A trigger that counts tokens also says how far to compact (S6, S7, L2)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import MemoryStore, Outcome, SessionService, StructuredSummary, TokenCount, TurnCount
from holdfast.tokens.budget import LayerBudget, Tokens
from holdfast.triggers import (
    LayerTrigger,
    OverBudget,
    OverUtilization,
    WorkstreamTrigger,
    all_of,
    always,
    any_of,
    not_,
)
from holdfast.triggers.limits import token_limit
from sized import assistant, request_for, user

LIMIT = 2_000


async def compacted_session(*arguments: Any) -> tuple[SessionService, Any]:
    service = SessionService(MemoryStore(), estimator="chars/4")
    await service.create(id="s")
    await service.append("s", [message for _ in range(30) for message in (user(500, "Mend the pier"), assistant(500))])
    return service, await service.compact("s", *arguments)


@pytest.mark.anyio
@pytest.mark.parametrize("trigger", [TokenCount(LIMIT), any_of(TurnCount(20), TokenCount(LIMIT))])
async def test_s6_one_compaction_goes_to_its_target(trigger: Any) -> None:
    """Far over the threshold, not by half of the context at a time."""
    service, result = await compacted_session(trigger)
    assert (result.outcome, result.tokens_before) == (Outcome.COMPACTED, 30_000)
    assert result.tokens_after <= LIMIT // 2
    await service.append("s", [user(50), assistant(50)])
    assert (await service.compact("s", trigger)).outcome is Outcome.NOT_NEEDED


@pytest.mark.anyio
async def test_s6_strategy_without_a_limit_of_its_own_leaves_the_trigger_satisfied() -> None:
    service, result = await compacted_session(TokenCount(LIMIT), StructuredSummary())
    assert result.fallback == "ledger"
    assert (await service.context("s")).tokens < LIMIT


@pytest.mark.parametrize(
    ("trigger", "limit"),
    [
        (TokenCount(500), 500),
        (TokenCount(500, "chars/3"), 375),
        (OverBudget(), 900),
        (OverBudget(Tokens(700)), 700),
        (LayerTrigger(LayerBudget(limit=128_000)), 93_600),
        (WorkstreamTrigger(), 140_000),
        (OverUtilization(0.5, 1_000, 200), 400),
        (any_of(TurnCount(3), TokenCount(500), TokenCount(400)), 400),
        (all_of(TokenCount(500), TokenCount(400)), 500),
        (any_of(TurnCount(3), always), None),
        (not_(TokenCount(500)), None),
        (TurnCount(3), None),
        (always, None),
    ],
)
def test_token_limit_of_each_trigger(trigger: Any, limit: int | None) -> None:
    conversation = [{"role": "user", "content": "x" * 4_000}, {"role": "assistant", "content": "x" * 4_000}]
    found = token_limit(trigger, request_for(conversation, budget=900))
    assert found == limit or (limit == 375 and found is not None and abs(found - limit) <= 1)
