"""One run of `holdfast compact`: what was asked for, what came of it, and how that is told to a program."""

from __future__ import annotations

from typing import Any

import msgspec

from ..anatomy import printable
from ..compaction import CompactionResult, Cost
from ..outcome import Outcome
from ..tokens import Estimator
from .sources import Source
from .way import Way
from .window import Window

FITS, CANNOT_FIT, NO_SUMMARY = 0, 1, 3
_GOOD = (Outcome.COMPACTED, Outcome.NOT_NEEDED, Outcome.NOTHING_TO_COMPACT)
REPEATED = (
    "A model's summary leaves things out, and each further one is made from the last: repeated compaction costs "
    "accuracy. Start a new session for new work."
)
"""P15."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction as it was asked for, and what came of it."""

    source: Source
    way: Way
    result: CompactionResult
    window: Window
    estimator: Estimator
    budget: int
    target: int | None
    """The one that was asked for."""
    out: str | None
    problems: tuple[str, ...]

    @property
    def aim(self) -> int:
        """What to compact down to, where something goes by that."""
        if self.target is None and self.way.preset is not None:
            return self.way.preset.target_in(self.budget)
        return self.target or max(1, self.budget // 2)

    @property
    def summary(self) -> str | None:
        """What a model wrote, if that is in the new context."""
        return None if self.way.model is None or self.result.fallback else self.result.summary

    @property
    def notice(self) -> str | None:
        return None if self.summary is None else REPEATED

    @property
    def error(self) -> str | None:
        """What a person has to decide about, where no summary was written and nothing stood in for it (P9)."""
        if self.result.outcome is not Outcome.SUMMARY_FAILED:
            return None
        if self.way.model is None:
            named = f"the preset {self.way.preset.name}" if self.way.preset else "the strategy"
            return (
                f"No summary was written, and nothing has changed: no summarizer was named, and {named} does nothing "
                "without one. Name one with --summarizer, or do without a model: --strategy ledger."
            )
        why = printable(" ".join(self.result.why.split())).rstrip(".")
        return (
            f"No summary was written, and nothing has changed: {why}. Try again, name another --summarizer, or do "
            "without a model: --strategy ledger."
        )

    @property
    def exit_code(self) -> int:
        match self.result.outcome:
            case Outcome.SUMMARY_FAILED:
                return NO_SUMMARY
            case Outcome.NO_PROGRESS:
                return FITS if self.result.tokens_after <= self.budget else CANNOT_FIT
            case outcome:
                return FITS if outcome in _GOOD else CANNOT_FIT

    def facts(self) -> dict[str, Any]:
        """For programs; the messages are in it where they went nowhere else."""
        result = self.result
        facts = {
            "type": "compaction" if self.error is None else "error",
            "error": self.error,
            "outcome": result.outcome.value,
            "why": result.why,
            "tokens_before": result.tokens_before,
            "tokens_after": result.tokens_after,
            "tokens_saved": result.tokens_saved,
            "kept": len(result.kept),
            "archived": result.removed,
            "edited": len(result.edited),
            "strategy": result.strategy,
            "preset": self.way.preset.name if self.way.preset else None,
            "summarizer": self.way.summarizer,
            "summary": self.summary,
            "fallback": result.fallback or None,
            "remarks": result.remarks,
            "cost": _whole(result.cost),
            "round": result.round,
            "notice": self.notice,
            "format": result.format,
            "valid": not self.problems,
            "budget": self.budget,
            "target": self.aim,
            "model": self.window.model,
            "window": self.window.tokens,
            "estimator": self.estimator.name,
        }
        return facts if self.out is not None else facts | {"messages": result.messages}


def _whole(cost: Cost | None) -> dict[str, Any] | None:
    """With its zeros: a program should not have to know what is left out."""
    if cost is None:
        return None
    return msgspec.structs.asdict(cost) | {"usage": msgspec.structs.asdict(cost.usage)}
