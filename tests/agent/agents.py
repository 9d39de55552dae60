"""Agents with a scripted model and a harbor to work in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from holdfast import MemoryStore, SessionService
from holdfast.agent import Agent, Keeper
from holdfast.agent.events import AgentEvent
from holdfast.agent.tools import AgentTool, Folder, Toolbox, always_yes, command_tool, file_tools
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel


def read(path: str = "tides.txt", id: str = "") -> ToolCall:
    return ToolCall(id, "read_file", {"path": path})


class Harbor:
    """An agent, what it told, and the session it works in."""

    def __init__(self, folder: Path, steps: Any, tools: tuple[AgentTool, ...] = (), **options: Any) -> None:
        self.folder = folder
        (folder / "tides.txt").write_text("low 3\nhigh 9\n")
        (folder / "long.txt").write_text(
            "".join(f"berth {n}: depth {n * 7} cm, moored since spring\n" for n in range(120))
        )
        self.told: list[AgentEvent] = []
        self._heard: dict[str, anyio.Event] = {}
        self.sessions = SessionService(options.pop("store", None) or MemoryStore())
        self.model = steps if isinstance(steps, ScriptedAgentModel) else ScriptedAgentModel(steps)
        self._tools = tools
        self._agent = {name: options.pop(name) for name in ("limits", "max_steps") if name in options}
        self._keeper = {"window": 100_000} | options

    async def agent(self) -> Agent:
        record = await self.sessions.create(model=self.model.name)
        keeper = Keeper(self.sessions, record.id, **self._keeper)
        folder = Folder(self.folder)
        box = Toolbox([*file_tools(folder), command_tool(folder), *self._tools], always_yes)
        return Agent(keeper, self.model, box, tell=self.tell, **self._agent)

    def tell(self, event: AgentEvent) -> None:
        self.told.append(event)
        if (waited := self._heard.get(type(event).__name__)) is not None:
            waited.set()

    async def hears(self, name: str) -> None:
        """Until the next event of this name."""
        self._heard[name] = anyio.Event()
        await self._heard[name].wait()

    def kinds(self, *left_out: str) -> list[str]:
        """What was told, in order, by the names of the events; repeated ones once."""
        names = [type(event).__name__ for event in self.told]
        names = [name for name in names if name not in left_out]
        return [name for place, name in enumerate(names) if not place or names[place - 1] != name]
