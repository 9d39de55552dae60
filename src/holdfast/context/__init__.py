"""Events, checkpoints, the view (the fold from events to context), requests and plans."""

from ..messages.links import interrupted_result
from ..messages.payload import INTERRUPTED_TEXT
from ..tokens.estimators import TokenSums
from .checkpoint import (
    Carry,
    Checkpoint,
    CompactionParameters,
    EventIdRange,
    HeadItem,
    HeadKind,
    event_id_ranges,
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
    "EventIdRange",
    "HeadItem",
    "HeadKind",
    "HeadMessage",
    "Plan",
    "Request",
    "Skip",
    "TokenSums",
    "View",
    "event_id_ranges",
    "interrupted_result",
]
