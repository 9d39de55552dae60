"""A compaction that a person asked for, perhaps in the middle of an agent's work (P14)."""

from __future__ import annotations

import msgspec

from ..agent.events import RunFinished
from ..compaction import CompactionResult


class Compacted(msgspec.Struct, frozen=True):
    """What came of it."""

    outcome: str
    why: str
    tokens_before: int
    tokens_after: int
    continued: bool = False
    """Was work interrupted for it, and does it go on?"""
    kept: int = 0
    archived: int = 0
    fallback: str = ""
    """What stood in for a model that did not answer; else empty."""


def compacted(result: CompactionResult, *, continued: bool) -> Compacted:
    return Compacted(
        outcome=result.outcome.value,
        why=result.why,
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        continued=continued,
        kept=len(result.kept),
        archived=result.removed,
        fallback=result.fallback,
    )


class Interruption(msgspec.Struct):
    """From the wish to compact until it is done. That a run ends meanwhile is told afterwards, if it does not go on."""

    run: RunFinished | None = None
    """How the run ended that was going on, if there was one."""

    @property
    def goes_on(self) -> bool:
        """Was it stopped for this, before it was done?"""
        return self.run is not None and self.run.status == "aborted"
