"""Tools of the agent: read, search, edit and write files in one folder, run commands there, and recall."""

from ...io.working_folder import WorkingFolder
from .command import command_tool
from .files import AgentTool, PlannedChange, ToolArguments, file_tools
from .permissions import PermissionRules
from .toolbox import INVALID_JSON, Approve, Permission, PermissionRequest, Toolbox, approve_all

__all__ = [
    "INVALID_JSON",
    "AgentTool",
    "Approve",
    "Permission",
    "PermissionRequest",
    "PermissionRules",
    "PlannedChange",
    "ToolArguments",
    "Toolbox",
    "WorkingFolder",
    "approve_all",
    "command_tool",
    "file_tools",
]
