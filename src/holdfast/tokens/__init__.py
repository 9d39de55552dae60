"""Token estimators (character rules, an offline tokenizer), calibration by usage, budgets and the model catalog."""

from .estimators import (
    ENCODINGS,
    CallableEstimator,
    CharsPerConversation,
    CharsPerMessage,
    CharsPerPiece,
    Estimator,
    Tokenizer,
    count_tokens,
    estimator_for,
    part_text,
)
from .usage import Calibration, ReportedUsage, Usage, read_usage

__all__ = [
    "ENCODINGS",
    "Calibration",
    "CallableEstimator",
    "CharsPerConversation",
    "CharsPerMessage",
    "CharsPerPiece",
    "Estimator",
    "ReportedUsage",
    "Tokenizer",
    "Usage",
    "count_tokens",
    "estimator_for",
    "part_text",
    "read_usage",
]
