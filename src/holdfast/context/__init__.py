"""Events, checkpoints, the view (the fold from events to context), requests and plans."""

from ..messages.tool_calls import INTERRUPTED_TEXT, interrupted_result
from ..tokens.estimators import TokenSums
from .checkpoint import (
    Carry,
    Checkpoint,
    CompactionParameters,
    Edit,
    EventIdRange,
    HeadItem,
    HeadKind,
    apply_edits,
    event_id_ranges,
    merge_edits,
)
from .plan import Plan, Skip
from .request import Request
from .view import SYNTHETIC_ID_SUFFIX, HeadMessage, View

__all__ = [
    "INTERRUPTED_TEXT",
    "SYNTHETIC_ID_SUFFIX",
    "Carry",
    "Checkpoint",
    "CompactionParameters",
    "Edit",
    "EventIdRange",
    "HeadItem",
    "HeadKind",
    "HeadMessage",
    "Plan",
    "Request",
    "Skip",
    "TokenSums",
    "View",
    "apply_edits",
    "event_id_ranges",
    "interrupted_result",
    "merge_edits",
]
