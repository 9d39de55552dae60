"""Token estimators (character rules, an offline tokenizer), calibration by usage, budgets and the model catalog."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import InvalidInput
from .estimators import (
    CallableEstimator,
    CharsPerConversation,
    CharsPerMessage,
    CharsPerPiece,
    Estimator,
    count_tokens,
    part_text,
)
from .tokenizer import ENCODINGS, Tokenizer
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
_BY_NAME: dict[str, Callable[[], Estimator]] = {
    CharsPerPiece.name: CharsPerPiece,
    CharsPerMessage.name: CharsPerMessage,
    CharsPerConversation.name: CharsPerConversation,
}


def estimator_for(given: Estimator | Callable[[str], int] | str | None) -> Estimator:
    """Returns an estimator, given one, its name, or a callable from text to tokens; the tokenizer by default."""
    if given is None:
        return Tokenizer()
    if isinstance(given, str):
        if given in _BY_NAME:
            return _BY_NAME[given]()
        if given in ENCODINGS:
            return Tokenizer(given)
        names = ", ".join([*_BY_NAME, *ENCODINGS])
        raise InvalidInput(f"{given!r} is not an estimator: use one of {names}, or a callable from text to tokens.")
    if isinstance(given, Estimator):
        return given() if isinstance(given, type) else given
    if callable(given):
        return CallableEstimator(given)
    raise InvalidInput(f"An estimator is a name, an object or a callable from text to tokens, not {given!r}.")
