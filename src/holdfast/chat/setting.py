"""What a conversation is held with: the sessions, a model, a folder to work in, and how to compact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..agent import SYSTEM, Agent, Keeper, Window
from ..agent.events import Tell
from ..agent.tools import Approve, Folder, Toolbox, command_tool, file_tools
from ..calls import Stepper
from ..events import SessionRecord
from ..messages import tools_in
from ..presets import Preset
from ..recall import Recall
from ..service import SessionService
from ..settings import Settings


class Setting:
    """Begins sessions, and makes the agent for one."""

    def __init__(
        self,
        sessions: SessionService,
        model: Stepper,
        *,
        folder: str | Path,
        preset: Preset,
        approve: Approve,
        window: int | None,
        summarizer: Any,
        auto: bool,
        system: str | None,
        settings: Settings | None,
    ) -> None:
        self.sessions = sessions
        self.model = model
        self.folder = Folder(folder)
        self.preset = preset
        self.window = window
        self.summarizer = summarizer
        self.auto = auto
        self.settings = settings
        """Where all this was settled, for who wants to know where a value came from."""
        self._approve = approve
        self._system = system or f"{SYSTEM}\n\nThe working folder is {self.folder.root}."
        self._windows: dict[str, Window] = {}
        """By model: what its errors taught stays known in the next session."""

    async def _begin(self) -> SessionRecord:
        tools = tools_in(self.model.format, self._toolbox("").told)
        return await self.sessions.create(system=self._system, tools=tools, model=self.model.name)

    def _agent(self, record: SessionRecord, tell: Tell) -> Agent:
        window = self._windows.setdefault(self.model.name, Window(self.window, self.model.name, self.preset.window))
        keeper = Keeper(
            self.sessions,
            record.id,
            window=window,
            preset=self.preset,
            summarizer=self.summarizer or self.model,
            auto=self.auto,
        )
        return Agent(keeper, self.model, self._toolbox(record.id), tell=tell, system=self._system)

    def _toolbox(self, session_id: str) -> Toolbox:
        tools = [*file_tools(self.folder), command_tool(self.folder)]
        return Toolbox(tools, self._approve, Recall(self.sessions, session_id))
