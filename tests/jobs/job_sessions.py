"""Sessions long enough to be compacted, a preset for them, and models that wait for an event."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import anyio

from compaction_session import SUMMARY, SUMMARY_TEXT, append_turns
from holdfast import MemoryStore, SessionService
from holdfast.compaction import Policy
from holdfast.models import ScriptedModel
from holdfast.models.calls import Answer, ModelCall
from holdfast.stores import Log
from holdfast.triggers import EventCount

LIMIT = 8
PRESET = Policy(
    name="harbour",
    about="Compacts more than eight messages; the newest four stay.",
    figures={},
    trigger=EventCount(LIMIT),
    strategy=SUMMARY,
)


class Slow(ScriptedModel):
    """Answers only after `goes_on` is set."""

    def __init__(self, says: Any = SUMMARY_TEXT) -> None:
        super().__init__(says, repeat=True)
        self.goes_on = anyio.Event()
        self.asked = 0
        self.most_at_once = self.at_once = 0

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.goes_on.wait()
            return await super().__call__(call, on_delta)
        finally:
            self.at_once -= 1


def service_with(model: Any = None, store: Log | None = None, **options: Any) -> SessionService:
    model = ScriptedModel(SUMMARY_TEXT, repeat=True) if model is None else model
    return SessionService(store or MemoryStore(), preset=options.pop("preset", PRESET), summarizer=model, **options)


async def talk(service: SessionService, *names: str, turns: int = 6) -> None:
    for name in names or ("s",):
        await service.create(id=name, format="openai-chat")
        await append_turns(service, turns=turns, session=name)


async def rounds(service: SessionService, name: str = "s") -> int:
    """Number of compactions."""
    return len(await service.events(name, kind="compaction"))


async def until(condition: Callable[[], Any]) -> None:
    """Polls until the condition is true; the test's timeout ends it otherwise."""
    while True:
        found = condition()
        if await found if isawaitable(found) else found:
            return
        await anyio.sleep(0.01)
