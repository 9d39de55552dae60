"""Triggers decide when to compact: any callable from a request to a bool."""

from .cost import CostTrigger
from .limits import (
    ByteCount,
    EventCount,
    ImageCount,
    LayerTrigger,
    OverBudget,
    OverThreshold,
    OverUtilization,
    TokenCount,
    TurnCount,
    WorkstreamTrigger,
    all_of,
    always,
    any_of,
    never,
    not_,
    pi_trigger,
)

__all__ = [
    "ByteCount",
    "CostTrigger",
    "EventCount",
    "ImageCount",
    "LayerTrigger",
    "OverBudget",
    "OverThreshold",
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
