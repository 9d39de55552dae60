"""What a compaction kept counts as kept by it, and what came later does not: in a list and in a session (P7)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import KeepLedger, MemoryStore, Outcome, SessionService, compact
from holdfast.hooks import BeforeCompaction, Hooks
from holdfast.triggers import always

NEW: dict[str, Any] = {"role": "user", "content": "And the berths of the north pier?"}
LEDGER, LATER = KeepLedger(2_000), KeepLedger(4_000)
NOTHING_NEW = "no messages since the last compaction"


def talk(turns: int) -> list[dict[str, Any]]:
    text = "about the work in the harbour " * 6
    return [
        {"role": role, "content": f"{role[0]}{number} {text}"}
        for number in range(turns)
        for role in ("user", "assistant")
    ]


@pytest.mark.parametrize("given", ["history", "result"])
def test_list_without_a_new_message_has_nothing_new_to_compact(given: str) -> None:
    history = talk(60)
    first = compact(history, budget=100_000, trigger=always, strategy=LEDGER)
    assert first.outcome is Outcome.COMPACTED
    known = history if given == "history" else list(first.messages)
    again = compact(known, budget=100_000, trigger=always, strategy=LATER, previous=first.checkpoint)
    assert (again.outcome, again.why) == (Outcome.NOTHING_TO_COMPACT, NOTHING_NEW)
    more = compact([*known, NEW], budget=100_000, trigger=always, strategy=LATER, previous=first.checkpoint)
    assert more.why != NOTHING_NEW


@pytest.fixture(params=["the same service", "another one"])
async def services(request: pytest.FixtureRequest) -> tuple[SessionService, SessionService]:
    """A service with a session, and the one that compacts it again: another one reads the log."""
    service = SessionService(MemoryStore())
    await service.create(id="s", format="openai-chat")
    await service.append("s", talk(60))
    return service, SessionService(service.store) if request.param == "another one" else service


@pytest.mark.anyio
async def test_session_without_a_new_message_has_nothing_new_to_compact(
    services: tuple[SessionService, SessionService],
) -> None:
    service, reader = services
    assert (await service.compact("s", always, LEDGER)).outcome is Outcome.COMPACTED
    again = await reader.compact("s", always, LATER)
    assert (again.outcome, again.why) == (Outcome.NOTHING_TO_COMPACT, NOTHING_NEW)
    await service.append("s", NEW)
    assert (await reader.compact("s", always, LATER)).why != NOTHING_NEW


@pytest.mark.anyio
async def test_message_appended_while_a_session_is_compacted_is_new(
    services: tuple[SessionService, SessionService],
) -> None:
    service, reader = services

    async def append(_before: BeforeCompaction) -> None:
        await service.append("s", NEW)

    done = await service.compact("s", always, LEDGER, "rebase", hooks=Hooks(before=append))
    assert done.outcome is Outcome.COMPACTED
    assert (await reader.compact("s", always, LATER)).why != NOTHING_NEW
