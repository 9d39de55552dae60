"""When to compact: a trigger is anything that answers yes or no to a request (S4)."""

from .composed import all_of, always, any_of, never, not_
from .cost import CostTrigger
from .counts import ByteCount, EventCount, ImageCount, TokenCount, TurnCount
from .windows import LayerTrigger, OverBudget, OverUtilization, WorkstreamTrigger, pi_trigger

__all__ = [
    "ByteCount",
    "CostTrigger",
    "EventCount",
    "ImageCount",
    "LayerTrigger",
    "OverBudget",
    "OverUtilization",
    "TokenCount",
    "TurnCount",
    "WorkstreamTrigger",
    "all_of",
    "always",
    "any_of",
    "never",
    "not_",
    "pi_trigger",
]
