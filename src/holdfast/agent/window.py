"""How much a model can read, as far as anybody knows: by setting, by the catalog, or learned from its errors."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..budget import Utilization, positive
from ..catalog import CATALOG
from ..service import Context
from ..tokens import Estimator, tokens_in

_OF_TOKENS = re.compile(r"token|context|prompt|too long|(?<!content.)length", re.IGNORECASE)
"""Words for too many tokens. A request of too many bytes is called too large, or nothing is said of it."""
_OUTPUT = 16_384
"""Tokens of a reply for which room is left, where the catalog does not know better."""


class Window:
    """One model's window. What a refusal teaches is never larger than what was refused."""

    def __init__(self, given: int | None, model: str | None, otherwise: int) -> None:
        if given is not None:
            positive("window", given)
        known = CATALOG.find((model or "").rpartition(":")[2])
        self.size = given or (known.window if known else otherwise)
        self.reply = known.output if known else 0
        """Its longest reply, where the catalog knows."""

    def learn(self, told: int | None, sent: int, why: str = "") -> None:
        """A prompt of about this many tokens was refused, in these words, perhaps with the window's real size.

        Images are many bytes and few tokens: a refusal that speaks of no tokens says nothing about the window.
        """
        if told:
            self.size = told
        elif 0 < sent < self.size and _OF_TOKENS.search(why):
            self.size = sent

    def utilization(self, context: Context, estimator: Estimator) -> float:
        """G1: how full it is with this, above 1 where no reply would fit."""
        fixed = sum(tokens_in(estimator, text) for text in map(_text, (context.system, context.tools)) if text)
        output = min(self.reply or _OUTPUT, self.size // 4)
        return Utilization(fixed, max(0, context.tokens - fixed), self.size, output).value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
