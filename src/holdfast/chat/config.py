"""Configuration of a chat: sessions, model, folder, preset; creates sessions and builds their agents."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, cast

from ..agent import SYSTEM, Agent, Keeper
from ..agent.events import EventListener
from ..agent.tools import Approve, PermissionRules, Toolbox, WorkingFolder, command_tool, file_tools
from ..agent.window import ContextWindow
from ..compaction.presets import Preset
from ..context.events import SessionRecord
from ..messages import encode_tools
from ..models.calls import ChatModel
from ..recall import Recall
from ..sessions import SessionService
from ..sessions.history import FOLDER
from ..settings import Settings

if TYPE_CHECKING:
    from ..models.calls import Model
    from ..types import SummarizerLike


@dataclass(eq=False, repr=False)
class ChatConfig:
    """Configuration of a chat; creates sessions and builds the agent of a session."""

    sessions: SessionService
    model: ChatModel
    _: KW_ONLY
    folder: WorkingFolder
    preset: Preset
    approve: Approve
    window: int | None = None
    summarizer: SummarizerLike | None = None
    auto: bool = True
    system: str = ""
    permissions: PermissionRules = field(default_factory=PermissionRules)
    """What the user always allows in this folder."""
    settings: Settings | None = None
    """Settings the chat was opened from, with the origin of each value."""
    _windows: dict[str, ContextWindow] = field(default_factory=dict, init=False)
    """By model name, so that a window learned from errors is kept in the next session."""

    def __post_init__(self) -> None:
        self.system = self.system or f"{SYSTEM}\n\nThe working folder is {self.folder.root}."

    @property
    def summary_model(self) -> SummarizerLike:
        """The model that writes summaries: the summarizer, else the model that answers."""
        return self.summarizer or cast("Model", self.model)

    async def _create_session(self) -> SessionRecord:
        tools = encode_tools(self.model.format, self._build_toolbox("").definitions)
        about = {FOLDER: str(self.folder.root)}
        return await self.sessions.create(system=self.system, tools=tools, model=self.model.name, metadata=about)

    def _build_agent(self, record: SessionRecord, on_event: EventListener) -> Agent:
        window = self._windows.setdefault(
            self.model.name, ContextWindow(self.window, self.model.name, self.preset.window)
        )
        keeper = Keeper(
            self.sessions,
            record.id,
            window=window,
            preset=self.preset,
            summarizer=self.summary_model,
            auto=self.auto,
        )
        return Agent(keeper, self.model, self._build_toolbox(record.id), on_event=on_event, system=self.system)

    def _build_toolbox(self, session_id: str) -> Toolbox:
        tools = [*file_tools(self.folder), command_tool(self.folder)]
        return Toolbox(tools, self.approve, Recall(self.sessions, session_id), self.permissions)
