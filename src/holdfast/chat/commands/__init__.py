"""The slash commands of a chat: a typed line in, a `CommandResult` out."""

from .base import ChatCommand, Choice, Choices, CommandResult
from .registry import COMMANDS, all_commands, complete_line, hidden_command_notes, run_command

__all__ = [
    "COMMANDS",
    "ChatCommand",
    "Choice",
    "Choices",
    "CommandResult",
    "all_commands",
    "complete_line",
    "hidden_command_notes",
    "run_command",
]
