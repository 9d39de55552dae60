"""Token estimators: the documents' character rules, a real offline tokenizer, and calibration by usage."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import InvalidInput
from .calibration import Calibration
from .characters import CharsPerConversation, CharsPerMessage, CharsPerPiece
from .estimator import Estimator, PerPart, part_text, tokens_in
from .tokenizer import ENCODINGS, Tokenizer
from .usage import Usage, read_usage

__all__ = [
    "ENCODINGS",
    "Calibration",
    "CharsPerConversation",
    "CharsPerMessage",
    "CharsPerPiece",
    "Estimator",
    "PerPart",
    "Tokenizer",
    "Usage",
    "estimator_for",
    "part_text",
    "read_usage",
    "tokens_in",
]

_BY_NAME: dict[str, Callable[[], Estimator]] = {
    CharsPerPiece.name: CharsPerPiece,
    CharsPerMessage.name: CharsPerMessage,
    CharsPerConversation.name: CharsPerConversation,
}


def estimator_for(given: Estimator | Callable[[str], int] | str | None) -> Estimator:
    """One of ours by object or name, or any callable from text to a number of tokens (S15)."""
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
        return PerPart(given)
    raise InvalidInput(f"An estimator is a name, an object or a callable from text to tokens, not {given!r}.")
