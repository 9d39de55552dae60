"""What a person types, held back while the conversation is compacted (P14)."""

from __future__ import annotations


class Intake:
    """Open, what is typed goes straight on; shut, it waits in its order."""

    def __init__(self) -> None:
        self.open = True
        self._held: list[str] = []

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, text: str) -> int:
        """Keep it for later; how many wait now."""
        self._held.append(text)
        return len(self._held)

    def reopen(self) -> list[str]:
        """What was typed meanwhile, in its order."""
        self.open = True
        held, self._held = self._held, []
        return held
