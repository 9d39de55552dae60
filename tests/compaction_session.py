"""A session that is long enough to be compacted, blocked and stopping models, and a recording listener."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from holdfast import BlockingSessionService, MemoryStore, SessionService, Summary
from holdfast.hooks import CompactionEvent
from holdfast.models import ScriptedModel
from holdfast.models.calls import Answer, ModelCall
from holdfast.stores import Log
from holdfast.strategies import KeepLast
from holdfast.summaries import AsUser, FreeText

SUMMARY = Summary(KeepLast(4), FreeText(), AsUser(prefix=""), verify=False, last_resort="unchanged")
FILLER = "goes on about the harbour and its ships and whatever else comes to mind " * 3
SUMMARY_TEXT = "They talked of the harbour."
TOOL_CALL_MESSAGE = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}


class EventRecorder(list[CompactionEvent]):
    """A listener that records events."""

    def __call__(self, event: CompactionEvent) -> None:
        self.append(event)

    @property
    def names(self) -> list[str]:
        """Names of the events, without progress."""
        return [
            name for name in (type(event).__name__.removeprefix("Compaction") for event in self) if name != "Progress"
        ]

    def one(self, kind: type) -> Any:
        (found,) = [event for event in self if isinstance(event, kind)]
        return found


class BlockedModel(ScriptedModel):
    """A model that answers only after `release` is set."""

    def __init__(self, says: Any = SUMMARY_TEXT) -> None:
        super().__init__(says, repeat=True)
        self.started, self.release = anyio.Event(), anyio.Event()

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        self.started.set()
        await self.release.wait()
        return await super().__call__(call, on_delta)


def never_answering(stop: Callable[[], object]) -> Callable[[Any], Awaitable[Any]]:
    """Returns a model or hook that calls `stop` and never answers."""

    async def never(asked: Any) -> Any:
        stop()
        await anyio.sleep_forever()

    return never


def make_message(name: str) -> dict[str, str]:
    return {"role": "user" if name[0] == "u" else "assistant", "content": f"{name} {FILLER}"}


def tool_result(text: str = "nothing there") -> dict[str, str]:
    """The result of the call in `TOOL_CALL_MESSAGE`."""
    return {"role": "tool", "tool_call_id": "c1", "content": text}


def make_turns(first: int = 1, count: int = 6) -> list[dict[str, str]]:
    return [make_message(f"{who}{number}") for number in range(first, first + count) for who in "ua"]


async def append_turns(service: SessionService, first: int = 1, turns: int = 6, session: str = "s") -> None:
    for number in range(first, first + turns):
        for who in "ua":
            await service.append(session, make_message(f"{who}{number}"), id=f"{who}{number}")


async def open_session(
    hooks: Any = None, *, store: Log | None = None, says: Any = SUMMARY_TEXT, **options: Any
) -> SessionService:
    """A service with a session of six turns, and a model that always gives the same answer."""
    model = ScriptedModel(says, repeat=True)
    service = SessionService(store or MemoryStore(), summarizer=model, hooks=hooks, **options)
    await service.create(id="s", format="openai-chat")
    await append_turns(service)
    return service


@contextmanager
def open_blocking_session(hooks: Any = None, **options: Any) -> Iterator[BlockingSessionService]:
    """The same with the blocking service."""
    with BlockingSessionService(MemoryStore(), hooks=hooks, **options) as service:
        service.create(id="s", format="openai-chat")
        service.append("s", make_turns())
        yield service


async def fill_memory(service: SessionService) -> None:
    """Adds enough notes for a blend."""
    for number in range(15):
        await service.remember("s", f"note {number}: Ada signs off every release, whatever the weather says")


def model_calls(service: SessionService) -> list[Any]:
    """The recorded calls of the model."""
    assert isinstance(service.model, ScriptedModel)
    return service.model.calls


async def visible_names(service: SessionService) -> list[str]:
    """The first word of each visible message."""
    return [str(shown["content"]).split()[0] for shown in await service.context("s")]
