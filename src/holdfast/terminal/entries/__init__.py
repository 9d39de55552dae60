"""What a transcript is made of: each entry knows how it looks in a given width."""

from .divider import Divider, Progress
from .earlier import Earlier, Summary
from .entry import Entry
from .notes import Note, Page, Welcome
from .prompt import Prompt
from .reply import Reply, Thought
from .tool_line import ToolLine

__all__ = [
    "Divider",
    "Earlier",
    "Entry",
    "Note",
    "Page",
    "Progress",
    "Prompt",
    "Reply",
    "Summary",
    "Thought",
    "ToolLine",
    "Welcome",
]
