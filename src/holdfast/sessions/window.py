"""The context window of one model: given, from the catalog, or learned from overflow errors."""

import re
from typing import Any

import msgspec

from ..tokens import Estimator, count_tokens
from ..tokens.budget import Utilization, require_positive
from ..tokens.catalog import CATALOG
from .live import Context

_MENTIONS_TOKENS = re.compile(r"token|context|prompt|too long|(?<!content.)length", re.IGNORECASE)
"""Matches errors about too many tokens; errors about too many bytes use other words."""
_DEFAULT_OUTPUT_TOKENS = 16_384
"""Tokens reserved for a reply if the catalog does not list the model's limit."""


class ContextWindow:
    """Context window of one model: given, from the catalog, or learned from overflow errors."""

    def __init__(self, given: int | None, model: str | None, default: int) -> None:
        if given is not None:
            require_positive("window", given)
        name = (model or "").rpartition(":")[2]
        known = CATALOG.find(name)
        self.size = given or (CATALOG.window(name) if known else default)
        self.max_output = known.output if known else 0
        """Longest reply in tokens; 0 if the catalog does not list it."""

    def learn(self, reported: int | None, sent: int, why: str = "") -> None:
        """Updates the size after a prompt of about `sent` tokens was rejected with error `why`.

        Without a reported size, the size becomes `sent` if the error mentions tokens: images have many bytes and few
        tokens, so a limit on bytes says nothing about the window.
        """
        if reported:
            self.size = reported
        elif 0 < sent < self.size and _MENTIONS_TOKENS.search(why):
            self.size = sent

    def utilization(self, context: Context, estimator: Estimator) -> float:
        """Returns the used fraction of the window; above 1 if no reply would fit."""
        fixed = sum(count_tokens(estimator, text) for text in map(_as_text, (context.system, context.tools)) if text)
        output = min(self.max_output or _DEFAULT_OUTPUT_TOKENS, self.size // 4)
        return Utilization(fixed, max(0, context.tokens - fixed), self.size, output).value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
