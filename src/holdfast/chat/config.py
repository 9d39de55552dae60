"""Configuration of a chat: sessions, model, folder, preset; creates sessions and builds their agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..agent import SYSTEM, Agent, Keeper
from ..agent.events import EventListener
from ..agent.mentions import file_attacher
from ..agent.project_instructions import InstructionFile, read_instructions, with_instructions
from ..agent.tools import (
    Approve,
    PermissionRequest,
    PermissionRules,
    Sandbox,
    Toolbox,
    WorkingFolder,
    approve_all,
    command_tool,
    file_tools,
)
from ..agent.tools.mcp_client import McpServers
from ..agent.tools.mcp_config import McpServerConfig
from ..compaction import Policy
from ..context.events import SessionRecord
from ..errors import InvalidInput
from ..messages import ToolCall, encode_tools
from ..models.calls import ChatModel, Limits
from ..recall import Recall
from ..sessions import SessionService
from ..sessions.history import FOLDER
from ..settings import Settings, user_file
from ..tokens.catalog import takes_images
from ..tokens.window import WindowFacts
from ..trust import Project

if TYPE_CHECKING:
    from ..models.calls import Model
    from ..types import SummarizerLike


MCP_SERVER = "mcp_server"
"""What the user is asked to agree to, in place of a tool's name."""


@dataclass(eq=False, repr=False)
class ChatConfig:
    """Configuration of a chat; creates sessions and builds the agent of a session."""

    sessions: SessionService
    model: ChatModel
    _: KW_ONLY
    folder: WorkingFolder
    preset: Policy
    approve: Approve
    window: int | None = None
    summarizer: SummarizerLike | None = None
    auto: bool = True
    system: str = ""
    """System prompt, without project instructions; the default one if empty."""
    project: Project | None = None
    """The trusted project whose files may be read; None where the user has not trusted the folder."""
    read_project_instructions: bool = False
    """Whether AGENTS.md and CLAUDE.md are read at the start and for each new session."""
    instructions: tuple[InstructionFile, ...] = field(default=(), init=False)
    """Project instructions that are part of the system prompt."""
    problems: tuple[str, ...] = ()
    """What is wrong with files that were read before the chat was opened."""
    notes: tuple[str, ...] = field(default=(), init=False)
    """What the user should know about files that were read at the start."""
    permissions: PermissionRules = field(default_factory=PermissionRules)
    """What the user always allows in this folder, and the mode."""
    sandbox: Sandbox | None = None
    """Where the agent's commands run; None for no sandbox."""
    limits: Limits | None = None
    """Time-outs and retries of the agent's steps."""
    settings: Settings | None = None
    """Settings the chat was opened from, with the origin of each value."""
    dropped_files: set[Path] = field(default_factory=set, init=False)
    """Images outside the folder that the user dropped onto the terminal, and may attach."""
    mcp_configs: Sequence[McpServerConfig] = ()
    mcp: McpServers = field(init=False)
    """MCP servers whose tools the agent may use."""

    def __post_init__(self) -> None:
        self.system = self.system or f"{SYSTEM}\n\nThe working folder is {self.folder.root}."
        self._use_preset(self.preset)
        self._load_instructions()

    def _use_preset(self, preset: Policy) -> None:
        """Makes this the policy of the chat's sessions, in the window that was given."""
        self.preset = preset.changed(window=self.window)
        self.sessions.use_preset(self.preset)

    def _load_instructions(self) -> None:
        """Reads the project instructions; they take at most a quarter of the window, at four characters a token."""
        self.notes = self.problems
        if self.read_project_instructions:
            window = self.preset.window_in(WindowFacts(model=self.model.name))
            self.instructions, notes = read_instructions(
                user_file().parent, self.project, window.tokens if window else 0
            )
            self.notes = (*self.problems, *notes)

    @property
    def full_system(self) -> str:
        """The system prompt with the project instructions."""
        return with_instructions(self.system, self.instructions)

    @property
    def summary_model(self) -> SummarizerLike:
        """The model that writes summaries: the summarizer, else the model that answers."""
        return self.summarizer or cast("Model", self.model)

    async def _create_session(self) -> SessionRecord:
        self._load_instructions()
        tools = encode_tools(self.model.format, self._build_toolbox("").definitions)
        about = {FOLDER: str(self.folder.root)}
        return await self.sessions.create(system=self.full_system, tools=tools, model=self.model.name, metadata=about)

    def _build_agent(self, record: SessionRecord, on_event: EventListener) -> Agent:
        keeper = Keeper(
            self.sessions,
            record.id,
            model=self.model.name,
            preset=self.preset,
            summarizer=self.summary_model,
            auto=self.auto,
        )
        return Agent(
            keeper,
            self.model,
            self._build_toolbox(record.id),
            on_event=on_event,
            system=self.full_system,
            limits=self.limits,
            attach=file_attacher(self.folder, self._why_no_images, self.dropped_files),
        )

    async def _agree_to_server(self, server: McpServerConfig) -> bool:
        """Asks once whether a project's server may be started; the answer holds until its definition changes.

        Approving everything is no agreement to what a folder brought.
        """
        if server.rule in self.permissions.rules:
            return True
        if self.approve is approve_all:
            raise InvalidInput("the project brought it, and --yes does not agree to that: agree once in a chat.")
        more = {name: value for name in ("env", "headers") if (value := server.written.get(name))}
        shown = {"server": server.name, "starts" if server.command else "connects to": server.target, **more}
        shown |= {"defined in": server.file, "yes": "starts it in this folder from now on; /permissions revokes it"}
        call = ToolCall(f"mcp:{server.name}", MCP_SERVER, shown)
        agreed = await self.approve(PermissionRequest(MCP_SERVER, f"{server.name}: {server.target}", call)) != "no"
        if agreed:
            self.permissions.add(server.rule)
        return agreed

    def _why_no_images(self) -> str:
        return "" if takes_images(self.model.name) else f"the model catalog does not list images for {self.model.name}."

    def _build_toolbox(self, session_id: str) -> Toolbox:
        tools = [*file_tools(self.folder), command_tool(self.folder, self.sandbox), *self.mcp.tools]
        return Toolbox(tools, self.approve, Recall(self.sessions, session_id), self.permissions)
