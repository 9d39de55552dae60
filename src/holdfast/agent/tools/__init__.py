"""Tools of the agent: read, search, edit and write files in one folder, run commands there, and recall."""

from ...io.working_folder import WorkingFolder
from .command import command_tool
from .files import AgentTool, PlannedChange, ToolArguments, file_tools
from .permissions import MODES, Mode, PermissionRules
from .sandbox import Sandbox
from .toolbox import INVALID_JSON, Approve, Permission, PermissionRequest, Toolbox, approve_all, refusal

__all__ = [
    "INVALID_JSON",
    "MODES",
    "AgentTool",
    "Approve",
    "Mode",
    "Permission",
    "PermissionRequest",
    "PermissionRules",
    "PlannedChange",
    "Sandbox",
    "ToolArguments",
    "Toolbox",
    "WorkingFolder",
    "approve_all",
    "command_tool",
    "file_tools",
    "refusal",
]
