"""Sessions long enough to be compacted, a preset for them, and models that wait to be told."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import anyio

from holdfast import EventCount, MemoryStore, Preset, ScriptedModel, SessionService
from holdfast.calls import Answer, ModelCall
from holdfast.stores import Log
from hooked import SAID, SUMMARY, go_on

LIMIT = 8
PRESET = Preset(
    name="harbour",
    about="More than eight messages are too many; the newest four stay.",
    figures={},
    trigger_in=lambda window: EventCount(LIMIT),
    strategy=SUMMARY,
)


class Slow(ScriptedModel):
    """Begins, and says nothing until it is told to."""

    def __init__(self, says: Any = SAID) -> None:
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
    model = ScriptedModel(SAID, repeat=True) if model is None else model
    return SessionService(store or MemoryStore(), preset=options.pop("preset", PRESET), summarizer=model, **options)


async def talk(service: SessionService, *names: str, turns: int = 6) -> None:
    for name in names or ("s",):
        await service.create(id=name, format="openai-chat")
        await go_on(service, turns=turns, session=name)


async def rounds(service: SessionService, name: str = "s") -> int:
    """How often it was compacted."""
    return len(await service.events(name, kind="compaction"))


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that will be so; a test that waits in vain is ended by its time limit."""
    while True:
        found = condition()
        if await found if isawaitable(found) else found:
            return
        await anyio.sleep(0.01)
