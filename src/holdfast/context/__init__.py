"""Events, checkpoints, the view (the fold from events to context), requests and plans."""

from ..messages.tool_pairs import INTERRUPTED_TEXT, interrupted_result
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
from .compose import PlannedContext, apply_plan, merge_plans, request_after
from .plan import Plan, Request, Skip
from .token_sums import TokenSums
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
    "PlannedContext",
    "Request",
    "Skip",
    "TokenSums",
    "View",
    "apply_edits",
    "apply_plan",
    "event_id_ranges",
    "interrupted_result",
    "merge_edits",
    "merge_plans",
    "request_after",
]
