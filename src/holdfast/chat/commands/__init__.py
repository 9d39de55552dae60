"""The slash commands of a chat, whatever its face: a line goes in, a page comes out."""

from .catalogue import COMMANDS
from .command import Command, Page
from .completing import completions
from .running import run_command

__all__ = ["COMMANDS", "Command", "Page", "completions", "run_command"]
