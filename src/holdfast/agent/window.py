"""How much a model can read, as far as anybody knows: by setting, by the catalog, or learned from its errors."""

from __future__ import annotations

import re

from ..budget import positive
from ..catalog import CATALOG

_OF_TOKENS = re.compile(r"token|context|prompt|too long|(?<!content.)length", re.IGNORECASE)
"""Words for too many tokens. A request of too many bytes is called too large, or nothing is said of it."""


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
