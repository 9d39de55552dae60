"""Recall: what was archived can be found again, read back and restored (H1)."""

from .blocking import BlockingRecall
from .finding import Found
from .history import recall_messages, remember
from .moments import moment
from .passage import Passage
from .recall import Recall
from .referring import Referenced
from .tools import TOOL_NAMES, tool_definitions

__all__ = [
    "TOOL_NAMES",
    "BlockingRecall",
    "Found",
    "Passage",
    "Recall",
    "Referenced",
    "moment",
    "recall_messages",
    "remember",
    "tool_definitions",
]
