"""What a conversation is held with: the sessions, a model, a folder to work in, and how to compact."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
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


@dataclass(eq=False, repr=False)
class Setting:
    """Begins sessions, and makes the agent for one."""

    sessions: SessionService
    model: Stepper
    _: KW_ONLY
    folder: Folder
    preset: Preset
    approve: Approve
    window: int | None = None
    summarizer: Any = None
    auto: bool = True
    system: str = ""
    settings: Settings | None = None
    """Where all this was settled, for who wants to know where a value came from."""
    _windows: dict[str, Window] = field(default_factory=dict, init=False)
    """By model: what its errors taught stays known in the next session."""

    def __post_init__(self) -> None:
        self.system = self.system or f"{SYSTEM}\n\nThe working folder is {self.folder.root}."

    async def _begin(self) -> SessionRecord:
        tools = tools_in(self.model.format, self._toolbox("").told)
        return await self.sessions.create(system=self.system, tools=tools, model=self.model.name)

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
        return Agent(keeper, self.model, self._toolbox(record.id), tell=tell, system=self.system)

    def _toolbox(self, session_id: str) -> Toolbox:
        tools = [*file_tools(self.folder), command_tool(self.folder)]
        return Toolbox(tools, self.approve, Recall(self.sessions, session_id))
