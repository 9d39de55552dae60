"""What the agent may do: read, search, edit and write files in one folder, run commands there, and recall."""

from .commands import command_tool
from .files import file_tools
from .folder import Folder
from .tool import AgentTool, Arguments
from .toolbox import Approve, Permission, Question, Toolbox, always_yes

__all__ = [
    "AgentTool",
    "Approve",
    "Arguments",
    "Folder",
    "Permission",
    "Question",
    "Toolbox",
    "always_yes",
    "command_tool",
    "file_tools",
]
