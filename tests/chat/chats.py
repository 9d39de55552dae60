"""Conversations with a scripted model, in a folder of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from holdfast import Limits, MemoryStore, SessionService
from holdfast.agent.events import AgentEvent
from holdfast.agent.tools import Folder, always_yes
from holdfast.chat import Chat
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel
from holdfast.presets import preset_named

SUMMARY = "## Completed Work\n- The berths were read.\n## Pending Work\n- [ ] The rest of the berths."


def read_long(id: str = "") -> ToolCall:
    return ToolCall(id, "read_file", {"path": "long.txt"})


class Room:
    """A chat and all that was told in it."""

    def __init__(self, folder: Path, steps: Any, **options: Any) -> None:
        text = "".join(f"berth {number}: depth {number * 7} cm, moored since spring\n" for number in range(120))
        (folder / "long.txt").write_text(text)
        self.told: list[AgentEvent] = []
        self._heard: dict[str, anyio.Event] = {}
        alone = isinstance(steps, ScriptedAgentModel)
        self.model = steps if alone else ScriptedAgentModel(steps, answers=SUMMARY)
        self.sessions = options.pop("sessions", None) or SessionService(MemoryStore(), limits=Limits(backoff=0.01))
        self.on: Callable[[AgentEvent], object] = lambda event: None
        preset = preset_named(options.pop("preset", "holdfast"))
        known: dict[str, Any] = {"preset": preset, "approve": always_yes, "listener": self.tell, "window": 100_000}
        self.chat = Chat(self.sessions, self.model, folder=Folder(folder), **known | options)

    def tell(self, event: AgentEvent) -> None:
        self.told.append(event)
        if (waited := self._heard.pop(type(event).__name__, None)) is not None:
            waited.set()
        self.on(event)

    async def hears(self, name: str) -> None:
        """Until the next event of this name."""
        waited = self._heard.setdefault(name, anyio.Event())
        await waited.wait()

    @asynccontextmanager
    async def open(self, session: str | None = None) -> AsyncIterator[Chat]:
        async with self.chat.running(session) as chat:
            yield chat

    def kinds(self, *wanted: str) -> list[str]:
        """What was told of these kinds, in order."""
        return [name for event in self.told if (name := type(event).__name__) in wanted]

    async def texts(self) -> list[str]:
        return [str(message.get("content")) for message in await self.sessions.context(self.chat.record.id)]
