"""The incrementally updated view equals the one rebuilt from the log, for any sequence of operations (H1, H6)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast import (
    MemoryStore,
    Outcome,
    PruneToolResults,
    SessionService,
    SlidingWindow,
    TokenWindow,
    Truncate,
    TurnWindow,
    check,
)
from holdfast.errors import InvalidInput
from holdfast.strategies import KeepLast
from holdfast.triggers import always
from judge import bound_thinking, judge

PROFILES = ("openai-chat", "openai-responses", "anthropic", "gemini")
PLANS = [
    SlidingWindow(3),
    SlidingWindow(8),
    TurnWindow(1),
    TurnWindow(3),
    TokenWindow(200),
    KeepLast(5),
    PruneToolResults(protect=50, minimum=0),
    Truncate(max_tokens=300),
]
STEPS = st.lists(
    st.sampled_from(["append"] * 6 + ["compact"] * 3 + ["undo", "pin", "fork", "lane", "other"]), max_size=25
)


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data(), steps=STEPS)
@settings(max_examples=min(80, settings().max_examples))
def test_view_incremental_equals_rebuilt(profile: str, data: st.DataObject, steps: list[str]) -> None:
    asyncio.run(live_through(profile, data, steps))


async def live_through(profile: str, data: st.DataObject, steps: list[str]) -> None:
    messages: list[dict[str, Any]] = data.draw(histories.wire(profile, broken=True))
    service = SessionService(MemoryStore(), estimator="chars/4")
    other = SessionService(service.store, estimator="chars/4")
    session = (await service.create(format=profile)).id
    waiting = list(messages)
    for step in steps:
        writer = other if step == "other" else service
        if step in ("append", "lane", "other") and waiting:
            size = data.draw(st.integers(1, 4))
            await writer.append(session, waiting[:size], "helper" if step == "lane" else None)
            del waiting[:size]
        elif step == "compact":
            before = await service.context(session)
            result = await service.compact(session, always, data.draw(st.sampled_from(PLANS)))
            assert result.tokens_after <= result.tokens_before
            if result.outcome is not Outcome.COMPACTED and result.outcome is not Outcome.CANNOT_FIT:
                assert result.messages == before.messages
            if profile == "anthropic" and not judge(before.messages, profile):
                assert bound_thinking(before.messages, list(result.messages)) == []
        elif step == "undo":
            try:
                await service.undo(session)
            except InvalidInput:
                root = (await service.get(session)).lanes.get("")
                assert root is None or root.epoch is None
        elif step == "pin" and (events := await service.events(session, kind="message", lane="")):
            await service.pin(session, data.draw(st.sampled_from(events)).id, pinned=data.draw(st.booleans()))
        elif step == "fork" and (events := await service.events(session, lane="")):
            session = (await service.fork(session, data.draw(st.sampled_from(events)).id)).id
        assert await service.verify(session) == []
        context = await service.context(session)
        fresh = SessionService(service.store, estimator="chars/4")
        rebuilt = await fresh.context(session)
        assert (rebuilt.messages, rebuilt.tokens) == (context.messages, context.tokens)
        if context.messages:
            assert check(context, profile) == []
            assert judge(context.messages, profile) == []
