"""`compact(messages, budget=…)` and `acompact`: compaction of a plain list of messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from anyio import to_thread

from ..io.portal import portal
from ..messages import require_message_list
from .driver import Abort, Notify
from .options import CompactionOptions
from .result import CompactionResult
from .stateless import StatelessCompaction

if TYPE_CHECKING:
    from ..models.calls import Limits
    from ..tokens import ReportedUsage
    from ..types import (
        CheckpointLike,
        EstimatorLike,
        MessageLike,
        StrategyLike,
        SummarizerLike,
        SystemLike,
        ToolsLike,
        Trigger,
        UsageLike,
    )


def compact(
    messages: Iterable[MessageLike],
    *,
    budget: int,
    target: int | None = None,
    system: SystemLike | None = None,
    tools: ToolsLike | None = None,
    usage: UsageLike | ReportedUsage | None = None,
    strategy: StrategyLike | None = None,
    summarizer: SummarizerLike | None = None,
    instructions: str | None = None,
    estimator: EstimatorLike | None = None,
    format: str | None = None,
    previous: CheckpointLike | None = None,
    numbers: Sequence[int] | None = None,
    trigger: Trigger | None = None,
    min_saving: float | None = None,
    limits: Limits | None = None,
    notify: Notify | None = None,
    abort: Abort | None = None,
) -> CompactionResult:
    """Compacts a list of messages that must not exceed `budget` tokens.

    Under the budget nothing changes. Over it, the context is compacted down to `target` (half the budget by default),
    or to the limit of the given strategy. `usage` is what the provider reported with the last reply among the
    messages, in its own form: the size is then that figure plus an estimate of what came after it. No model, key or
    network is needed. With a `summarizer` (`"anthropic:claude-…"`, a model object, a function from text to text) that
    model writes a summary, steered by `instructions`. `result.messages` is always what to send, in the format of the
    input. Notes cite a message by its position (`[12]` is the twelfth) unless `numbers` gives each message another.
    """
    require_message_list(messages)
    options = CompactionOptions.resolve(
        budget=budget,
        target=target,
        trigger=trigger,
        strategy=strategy,
        summarizer=summarizer,
        instructions=instructions,
        min_saving=min_saving,
        limits=limits,
        notify=notify,
        abort=abort,
    )
    work = StatelessCompaction(messages, options, system, tools, usage, estimator, format, previous, numbers)
    if options.summarizer is None:
        return work.result(work.run.decide())
    if (decision := work.run.not_triggered()) is None:
        decision = portal.run(work.run.decide_with_model)
    return work.result(decision)


async def acompact(
    messages: Iterable[MessageLike],
    *,
    budget: int,
    target: int | None = None,
    system: SystemLike | None = None,
    tools: ToolsLike | None = None,
    usage: UsageLike | ReportedUsage | None = None,
    strategy: StrategyLike | None = None,
    summarizer: SummarizerLike | None = None,
    instructions: str | None = None,
    estimator: EstimatorLike | None = None,
    format: str | None = None,
    previous: CheckpointLike | None = None,
    numbers: Sequence[int] | None = None,
    trigger: Trigger | None = None,
    min_saving: float | None = None,
    limits: Limits | None = None,
    notify: Notify | None = None,
    abort: Abort | None = None,
) -> CompactionResult:
    """`compact` for async code: the work runs in threads, so the event loop stays free.

    Cancelling the task stops it at once and changes nothing.
    """
    require_message_list(messages)
    given = list(messages)
    options = CompactionOptions.resolve(
        budget=budget,
        target=target,
        trigger=trigger,
        strategy=strategy,
        summarizer=summarizer,
        instructions=instructions,
        min_saving=min_saving,
        limits=limits,
        notify=notify,
        abort=abort,
    )
    work = await to_thread.run_sync(
        lambda: StatelessCompaction(given, options, system, tools, usage, estimator, format, previous, numbers)
    )
    decision = work.run.not_triggered() or await work.run.decide_with_model()
    return await to_thread.run_sync(work.result, decision)
