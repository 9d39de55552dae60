"""What a checkpoint carries into the next rounds: the round, the ledger, pins, and its head as it was rendered."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import KeepLedger, MemoryStore, Outcome, PruneToolResults, SessionService, SlidingWindow, compact
from holdfast.strategies.pruning import CLEARED
from holdfast.triggers import always
from sized import Json, calls, result, user

PRUNE = PruneToolResults(protect=0, minimum=0)
BUDGET = 100_000
TASK = "Build the tide service of Osterhaven in /srv/tides.py."


def rounds(first: int, count: int) -> list[Json]:
    turns = (
        [user(40, f"Go on with part {number}."), calls(f"c{number}"), result(f"c{number}", 200), assistant(number)]
        for number in range(first, first + count)
    )
    return [message for turn in turns for message in turn]


def assistant(number: int) -> Json:
    return {"role": "assistant", "content": f"Part {number} is done. " + "The water of the harbour is deep. " * 9}


def test_pruning_is_no_round() -> None:
    pruned = compact([*rounds(0, 3), user(10)], budget=BUDGET, trigger=always, strategy=PRUNE)
    assert (pruned.outcome, pruned.round) == (Outcome.COMPACTED, 0)
    assert pruned.checkpoint is not None and pruned.checkpoint.carry.round == 0
    more = compact(
        [*pruned.messages, *rounds(3, 3)],
        budget=BUDGET,
        trigger=always,
        strategy=SlidingWindow(4),
        previous=pruned.checkpoint,
    )
    assert more.checkpoint is not None and more.round == more.checkpoint.carry.round == 1


def test_ledger_is_carried_through_compactions_that_write_no_page() -> None:
    """A window drops the page; the notes on the first messages come back with the next one."""
    history = [user(60, TASK), *rounds(0, 20)]
    made: Any = compact(history, budget=BUDGET, trigger=always, strategy=KeepLedger(1_200), estimator="chars/4")
    for strategy in (PRUNE, SlidingWindow(6), KeepLedger(900)):
        history += rounds(len(history), 6)
        made = compact(
            history, budget=BUDGET, trigger=always, strategy=strategy, previous=made.checkpoint, estimator="chars/4"
        )
        assert made.outcome is Outcome.COMPACTED
    assert TASK in str(made.messages[0]["content"])


@pytest.mark.anyio
async def test_pin_is_carried_after_its_event_is_archived() -> None:
    store = MemoryStore()
    await (service := SessionService(store)).create(id="s", format="openai-chat")
    await service.append("s", user(40, "Never touch the lighthouse."), id="pinned")
    await service.pin("s", "pinned")
    for number in range(4):
        await service.append("s", rounds(4 * number, 4))
        assert (await service.compact("s", always, SlidingWindow(4))).outcome is Outcome.COMPACTED
        for reader in (service, SessionService(store)):
            assert "lighthouse" in str((await reader.context("s")).messages[0])
    assert await service.verify("s") == []


@pytest.mark.anyio
async def test_pinned_result_that_was_cleared_is_shown_cleared_from_the_head() -> None:
    """The checkpoint refers to an event only where the head shows it as the log has it."""
    store = MemoryStore()
    await (service := SessionService(store)).create(id="s", format="openai-chat")
    await service.append("s", rounds(0, 3))
    await service.compact("s", always, PRUNE)
    [cleared] = [
        event
        for event in await service.events("s", kind="message")
        if "c1" in str(event.body.get("message", {}).get("tool_call_id"))
    ]
    await service.pin("s", cleared.id)
    await service.append("s", rounds(3, 3))
    await service.compact("s", always, SlidingWindow(4))
    for reader in (service, SessionService(store)):
        first = (await reader.context("s")).messages[0]
        assert CLEARED in str(first) and "xxxx" not in str(first)
    assert await service.verify("s") == []
