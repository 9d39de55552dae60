"""The view: the fold from a log to the context that is sent, and what decides about it."""

from .checkpoint import Carry, Checkpoint, HeadItem, HeadKind, Run, runs_of
from .compose import Composition, compose, follow, merge
from .edits import Edit, combined, edited
from .fold import UNWRITTEN, Shown, View
from .gauge import Gauge
from .pairs import INTERRUPTED, interrupted
from .request import Plan, Request, Skip

__all__ = [
    "INTERRUPTED",
    "UNWRITTEN",
    "Carry",
    "Checkpoint",
    "Composition",
    "Edit",
    "Gauge",
    "HeadItem",
    "HeadKind",
    "Plan",
    "Request",
    "Run",
    "Shown",
    "Skip",
    "View",
    "combined",
    "compose",
    "edited",
    "follow",
    "interrupted",
    "merge",
    "runs_of",
]
