"""Recall: search, read and restore events of a session, archived ones included."""

from ..context.references import reference
from .passage import Passage
from .question import ReferenceAnswer
from .recall import BlockingRecall, Recall, recall_messages
from .search import SearchResults, parse_time
from .tools import TOOL_NAMES, tool_definitions

__all__ = [
    "TOOL_NAMES",
    "BlockingRecall",
    "Passage",
    "Recall",
    "ReferenceAnswer",
    "SearchResults",
    "parse_time",
    "recall_messages",
    "reference",
    "tool_definitions",
]
