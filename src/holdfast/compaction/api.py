"""`compact(messages, budget=…)` and `acompact`: compaction of a plain list of messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from ..errors import InvalidLimit
from ..io.portal import portal
from ..messages import require_message_list
from .driver import Abort, Notify
from .policy import Policy, PolicyLike, resolve
from .result import CompactionResult
from .stateless import ListedMessages, StatelessCompaction

if TYPE_CHECKING:
    from ..hooks import Hooks
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
    budget: int | None = None,
    target: int | None = None,
    preset: PolicyLike | None = None,
    window: int | None = None,
    system: SystemLike | None = None,
    tools: ToolsLike | None = None,
    usage: UsageLike | ReportedUsage | None = None,
    strategy: StrategyLike | None = None,
    summarizer: SummarizerLike | None = None,
    instructions: str | None = None,
    estimator: EstimatorLike | None = None,
    format: str | None = None,
    alternating: bool = False,
    previous: CheckpointLike | None = None,
    numbers: Sequence[int] | None = None,
    trigger: Trigger | None = None,
    min_saving: float | None = None,
    limits: Limits | None = None,
    notify: Notify | None = None,
    abort: Abort | None = None,
    hooks: Hooks | None = None,
) -> CompactionResult:
    """Compacts a list of messages that must not exceed `budget` tokens, or by a `preset` for a model's `window`.

    Under the budget nothing changes. Over it, the context is compacted down to `target` (half the budget by
    default), or to the limit of the given strategy. A preset (a name, or a `Policy`) brings trigger, strategy,
    target, estimator and limits; other keywords take precedence. `usage` is what the provider reported with the
    last reply among the messages, in its own form: the size is then that figure plus an estimate of what came after
    it. No model, key or network is needed. With a `summarizer` (`"anthropic:claude-…"`, a model object, a function
    from text to text) that model writes a summary, steered by `instructions`. `hooks` run before and after it.
    `result.messages` is always what to send, in the format of the input; `alternating=True` is for models whose chat
    template refuses two messages of one role in a row. Notes cite a message by its position
    (`[12]` is the twelfth) unless `numbers` gives each message another.
    """
    require_message_list(messages)
    policy = _resolve(
        preset,
        budget=budget,
        target=target,
        window=window,
        trigger=trigger,
        strategy=strategy,
        summarizer=summarizer,
        instructions=instructions,
        estimator=estimator,
        min_saving=min_saving,
        limits=limits,
    )
    given = ListedMessages(messages, format, system, tools, usage if policy.calibrated else None, numbers, alternating)
    work = StatelessCompaction(given, policy, previous, notify, abort)
    if policy.summarizer is None and hooks is None:
        return work.result(work.run.decide())
    if (decision := work.run.not_triggered()) is not None:
        return work.result(decision)
    return portal.run(lambda: _decide(work, hooks))


async def acompact(
    messages: Iterable[MessageLike],
    *,
    budget: int | None = None,
    target: int | None = None,
    preset: PolicyLike | None = None,
    window: int | None = None,
    system: SystemLike | None = None,
    tools: ToolsLike | None = None,
    usage: UsageLike | ReportedUsage | None = None,
    strategy: StrategyLike | None = None,
    summarizer: SummarizerLike | None = None,
    instructions: str | None = None,
    estimator: EstimatorLike | None = None,
    format: str | None = None,
    alternating: bool = False,
    previous: CheckpointLike | None = None,
    numbers: Sequence[int] | None = None,
    trigger: Trigger | None = None,
    min_saving: float | None = None,
    limits: Limits | None = None,
    notify: Notify | None = None,
    abort: Abort | None = None,
    hooks: Hooks | None = None,
) -> CompactionResult:
    """`compact` for async code: the work runs in threads, so the event loop stays free.

    Cancelling the task stops it at once and changes nothing.
    """
    require_message_list(messages)
    messages = list(messages)
    policy = _resolve(
        preset,
        budget=budget,
        target=target,
        window=window,
        trigger=trigger,
        strategy=strategy,
        summarizer=summarizer,
        instructions=instructions,
        estimator=estimator,
        min_saving=min_saving,
        limits=limits,
    )
    given = ListedMessages(messages, format, system, tools, usage if policy.calibrated else None, numbers, alternating)
    work = await to_thread.run_sync(lambda: StatelessCompaction(given, policy, previous, notify, abort))
    if (decision := work.run.not_triggered()) is not None:
        return await to_thread.run_sync(work.result, decision)
    return await _decide(work, hooks)


async def _decide(work: StatelessCompaction, hooks: Hooks | None) -> CompactionResult:
    """Plans the compaction with its model, between the hooks. A list has no session that a hook's text could start."""
    if hooks is None:
        return await to_thread.run_sync(work.result, await work.run.decide_with_model())
    with hooks.around("", origin="auto" if work.run.policy.is_automatic else "manual") as around:
        decision = await around.decide(work.run)
        result = await to_thread.run_sync(work.result, decision)
        if decision.plan is None:
            return around.finish_unchanged(result)
        return await around.run_after(around.finish_committed(result, "", work.run), result, work.run)


def _resolve(preset: PolicyLike | None, **keywords: Any) -> Policy:
    policy = resolve(preset, **keywords)
    if policy.budget is None and not policy.name:
        raise InvalidLimit("budget must be a whole number of at least 1: pass budget=, or preset= and window=.")
    return policy
