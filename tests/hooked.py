"""A session that is long enough to be compacted, models that are slow or stop, and somebody who listens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from holdfast import (
    AsUser,
    BlockingSessionService,
    FreeText,
    KeepLast,
    MemoryStore,
    ScriptedModel,
    SessionService,
    Summary,
)
from holdfast.calls import Answer, ModelCall
from holdfast.hooks import CompactionEvent
from holdfast.stores import Log

SUMMARY = Summary(KeepLast(4), FreeText(), AsUser(prefix=""), verify=False, last_resort="unchanged")
WORDS = "goes on about the harbour and its ships and whatever else comes to mind " * 3
SAID = "They talked of the harbour."
LOOKS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}


class Heard(list[CompactionEvent]):
    """A listener that remembers."""

    def __call__(self, event: CompactionEvent) -> None:
        self.append(event)

    @property
    def names(self) -> list[str]:
        """What was told, without the progress in between."""
        return [
            name for name in (type(event).__name__.removeprefix("Compaction") for event in self) if name != "Progress"
        ]

    def one(self, kind: type) -> Any:
        (found,) = [event for event in self if isinstance(event, kind)]
        return found


class Slow(ScriptedModel):
    """Begins, and says nothing until it is told to."""

    def __init__(self, says: Any = SAID) -> None:
        super().__init__(says, repeat=True)
        self.begun, self.goes_on = anyio.Event(), anyio.Event()

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        self.begun.set()
        await self.goes_on.wait()
        return await super().__call__(call, on_delta)


def stopping(stop: Callable[[], object]) -> Callable[[Any], Awaitable[Any]]:
    """Stops the compaction that asks it, and never answers; as a model, or as a hook."""

    async def never(asked: Any) -> Any:
        stop()
        await anyio.sleep_forever()

    return never


def message(name: str) -> dict[str, str]:
    return {"role": "user" if name[0] == "u" else "assistant", "content": f"{name} {WORDS}"}


def found(text: str = "nothing there") -> dict[str, str]:
    """The result of the call in `LOOKS`."""
    return {"role": "tool", "tool_call_id": "c1", "content": text}


def turns(first: int = 1, count: int = 6) -> list[dict[str, str]]:
    return [message(f"{who}{number}") for number in range(first, first + count) for who in "ua"]


async def go_on(service: SessionService, first: int = 1, turns: int = 6, session: str = "s") -> None:
    for number in range(first, first + turns):
        for who in "ua":
            await service.append(session, message(f"{who}{number}"), id=f"{who}{number}")


async def talk(hooks: Any = None, *, store: Log | None = None, says: Any = SAID, **options: Any) -> SessionService:
    """A service with a session of six turns, and a model that always says the same."""
    model = ScriptedModel(says, repeat=True)
    service = SessionService(store or MemoryStore(), summarizer=model, hooks=hooks, **options)
    await service.create(id="s", format="openai-chat")
    await go_on(service)
    return service


@contextmanager
def blocking_talk(hooks: Any = None, **options: Any) -> Iterator[BlockingSessionService]:
    """The same for a caller that blocks."""
    with BlockingSessionService(MemoryStore(), hooks=hooks, **options) as service:
        service.create(id="s", format="openai-chat")
        service.append("s", turns())
        yield service


async def remember_much(service: SessionService) -> None:
    """More notes than the memory holds side by side."""
    for number in range(15):
        await service.remember("s", f"note {number}: Ada signs off every release, whatever the weather says")


def calls(service: SessionService) -> list[Any]:
    """What the model was asked."""
    assert isinstance(service.model, ScriptedModel)
    return service.model.calls


async def seen(service: SessionService) -> list[str]:
    """The first word of each message of the context."""
    return [str(shown["content"]).split()[0] for shown in await service.context("s")]
