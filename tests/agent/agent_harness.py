"""Test harness: an agent with a scripted model and a folder to work in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from holdfast import MemoryStore, SessionService
from holdfast.agent import Agent, Keeper
from holdfast.agent.events import AgentEvent
from holdfast.agent.tools import AgentTool, Toolbox, WorkingFolder, approve_all, command_tool, file_tools
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel


def read(path: str = "tides.txt", id: str = "") -> ToolCall:
    return ToolCall(id, "read_file", {"path": path})


class Harbor:
    """An agent's folder, sessions, scripted model and recorded events."""

    def __init__(self, folder: Path, steps: Any, tools: tuple[AgentTool, ...] = (), **options: Any) -> None:
        self.folder = folder
        (folder / "tides.txt").write_text("low 3\nhigh 9\n")
        (folder / "long.txt").write_text(
            "".join(f"berth {n}: depth {n * 7} cm, moored since spring\n" for n in range(120))
        )
        self.events: list[AgentEvent] = []
        self._waited_for: dict[str, anyio.Event] = {}
        self.sessions = SessionService(options.pop("store", None) or MemoryStore())
        self.model = steps if isinstance(steps, ScriptedAgentModel) else ScriptedAgentModel(steps)
        self._tools = tools
        self._agent = {name: options.pop(name) for name in ("limits", "max_steps") if name in options}
        self._keeper = {"window": 100_000} | options

    async def agent(self) -> Agent:
        record = await self.sessions.create(model=self.model.name)
        keeper = Keeper(self.sessions, record.id, **self._keeper)
        folder = WorkingFolder(self.folder)
        box = Toolbox([*file_tools(folder), command_tool(folder), *self._tools], approve_all)
        return Agent(keeper, self.model, box, on_event=self.on_event, **self._agent)

    def on_event(self, event: AgentEvent) -> None:
        self.events.append(event)
        if (waited := self._waited_for.get(type(event).__name__)) is not None:
            waited.set()

    async def wait_for(self, name: str) -> None:
        """Waits until the next event of this name."""
        self._waited_for[name] = anyio.Event()
        await self._waited_for[name].wait()

    def event_names(self, *left_out: str) -> list[str]:
        """Names of the recorded events in order; consecutive duplicates once."""
        names = [type(event).__name__ for event in self.events]
        names = [name for name in names if name not in left_out]
        return [name for place, name in enumerate(names) if not place or names[place - 1] != name]
