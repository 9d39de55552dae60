"""Test harness: a chat with a scripted model in its own folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from holdfast import MemoryStore, SessionService
from holdfast.agent.events import AgentEvent
from holdfast.agent.tools import WorkingFolder, approve_all
from holdfast.chat import Chat
from holdfast.compaction.presets import preset as preset_named
from holdfast.messages import ToolCall
from holdfast.models import Limits, ScriptedAgentModel
from holdfast.trust import Project, TrustedFolders

SUMMARY = "## Completed Work\n- The berths were read.\n## Pending Work\n- [ ] The rest of the berths."


def read_long(id: str = "") -> ToolCall:
    return ToolCall(id, "read_file", {"path": "long.txt"})


def trusted_project(folder: Path) -> Project | None:
    """The project of a folder that the user trusts this time."""
    return TrustedFolders(folder / "nothing.json", Path.home()).project(folder, trust=True)


class ChatHarness:
    """A chat and all events it emitted."""

    def __init__(self, folder: Path, steps: Any, **options: Any) -> None:
        text = "".join(f"berth {number}: depth {number * 7} cm, moored since spring\n" for number in range(120))
        (folder / "long.txt").write_text(text)
        self.events: list[AgentEvent] = []
        self._awaited: dict[str, anyio.Event] = {}
        alone = isinstance(steps, ScriptedAgentModel)
        self.model = steps if alone else ScriptedAgentModel(steps, answers=SUMMARY)
        self.sessions = options.pop("sessions", None) or SessionService(MemoryStore(), limits=Limits(backoff=0.01))
        self.on_event: Callable[[AgentEvent], object] = lambda event: None
        preset = preset_named(options.pop("preset", "holdfast"))
        known: dict[str, Any] = {
            "preset": preset,
            "approve": approve_all,
            "listener": self.record_event,
            "window": 100_000,
            "project": trusted_project(folder),
        }
        self.chat = Chat(self.sessions, self.model, folder=WorkingFolder(folder), **known | options)

    def record_event(self, event: AgentEvent) -> None:
        self.events.append(event)
        if (waited := self._awaited.pop(type(event).__name__, None)) is not None:
            waited.set()
        self.on_event(event)

    async def wait_for_event(self, name: str) -> None:
        """Waits for the next event of this class name."""
        waited = self._awaited.setdefault(name, anyio.Event())
        await waited.wait()

    @asynccontextmanager
    async def open(self, session: str | None = None) -> AsyncIterator[Chat]:
        async with self.chat.running(session) as chat:
            yield chat

    def event_names(self, *wanted: str) -> list[str]:
        """Returns the class names of emitted events, filtered, in order."""
        return [name for event in self.events if (name := type(event).__name__) in wanted]

    async def texts(self) -> list[str]:
        return [str(message.get("content")) for message in await self.sessions.context(self.chat.record.id)]
