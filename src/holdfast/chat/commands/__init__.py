"""The slash commands of a chat: a typed line in, a `CommandResult` out."""

from .base import ChatCommand, Choice, Choices, CommandResult
from .registry import COMMANDS, complete_line, run_command

__all__ = ["COMMANDS", "ChatCommand", "Choice", "Choices", "CommandResult", "complete_line", "run_command"]
