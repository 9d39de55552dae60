"""How much a model can read, as far as anybody knows: by setting, by the catalog, or learned from its errors."""

from __future__ import annotations

from ..budget import positive
from ..catalog import CATALOG


class Window:
    """One model's window. What a refusal teaches is never larger than what was refused."""

    def __init__(self, given: int | None, model: str | None, otherwise: int) -> None:
        if given is not None:
            positive("window", given)
        known = CATALOG.find((model or "").rpartition(":")[2])
        self.size = given or (known.window if known else otherwise)
        self.reply = known.output if known else 0
        """Its longest reply, where the catalog knows."""

    def learn(self, told: int | None, sent: int) -> None:
        """A prompt of about this many tokens was refused, perhaps with the window's real size."""
        if told:
            self.size = told
        elif 0 < sent < self.size:
            self.size = sent
