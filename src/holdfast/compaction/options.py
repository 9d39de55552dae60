"""The options of one compaction: resolved once, from the keywords of the public function that was called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from ..errors import InvalidLimit
from ..models import resolve_model
from ..models.calls import Limits
from ..strategies import KeepLedger, StructuredSummary, as_strategy
from ..strategies.names import parse_strategy
from ..tokens.budget import require_positive
from ..triggers.combine import require_trigger
from .driver import Abort, Notify

if TYPE_CHECKING:
    from ..models.calls import Model
    from ..types import Strategy, StrategyLike, SummarizerLike, Trigger


class CompactionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """When to compact, how far, by which strategy, and which model writes the summary."""

    strategy: Strategy
    budget: int | None = None
    """Tokens that the context must not exceed."""
    target: int | None = None
    """Tokens to compact down to."""
    trigger: Trigger | None = None
    """None fires when the context exceeds the budget."""
    instructions: str | None = None
    """Steer the summary."""
    min_saving: float = 0.0
    """The smallest saving worth committing, as a fraction of the context."""
    summarizer: Model | None = None
    limits: Limits = Limits()
    notify: Notify | None = None
    abort: Abort = msgspec.field(default_factory=Abort)

    @classmethod
    def resolve(
        cls,
        *,
        budget: int | None = None,
        target: int | None = None,
        trigger: Trigger | None = None,
        strategy: StrategyLike | None = None,
        summarizer: SummarizerLike | None = None,
        instructions: str | None = None,
        min_saving: float | None = None,
        limits: Limits | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> Self:
        """Validates the keywords and fills in defaults.

        The target defaults to half the budget. The strategy defaults to a structured summary if there is a model,
        else to the ledger, which exceeds a target that was not asked for where notes would not fit otherwise.
        """
        for name, limit in (("budget", budget), ("target", target)):
            if limit is not None:
                require_positive(name, limit)
        if budget is not None and target is not None and target > budget:
            raise InvalidLimit(f"target={target} is above budget={budget}: choose a target below the budget.")
        resolved = max(1, budget // 2) if target is None and budget is not None else target
        model = resolve_model(summarizer)
        if isinstance(strategy, str):
            strategy = parse_strategy(strategy)
        if strategy is not None:
            chosen = as_strategy(strategy)
        elif model is not None:
            chosen = StructuredSummary(max_tokens=resolved)
        else:
            chosen = KeepLedger(max_tokens=target)
        return cls(
            strategy=chosen,
            budget=budget,
            target=resolved,
            trigger=trigger and require_trigger(trigger),
            instructions=instructions,
            min_saving=chosen.min_saving if min_saving is None else min_saving,
            summarizer=model,
            limits=limits or Limits(),
            notify=notify,
            abort=abort or Abort(),
        )
