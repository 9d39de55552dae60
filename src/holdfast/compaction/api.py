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
from .result import CompactionResult, MessageT
from .stateless import ListedMessages, StatelessCompaction

if TYPE_CHECKING:
    from ..hooks import Hooks
    from ..models.calls import Limits
    from ..tokens import ReportedUsage
    from ..types import (
        CheckpointLike,
        EstimatorLike,
        StrategyLike,
        SummarizerLike,
        SystemLike,
        ToolsLike,
        Trigger,
        UsageLike,
    )


def compact(
    messages: Iterable[MessageT],
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
) -> CompactionResult[MessageT]:
    """Compacts a list of messages that must not exceed `budget` tokens, or by a `preset` for a model's `window`.

    Under the budget nothing changes. No model, key or network is needed. `result.messages` is always what to send, in
    the format of the input: a list of the same type of messages, or dicts of another `format` if one is given.

        result = compact(messages, budget=100_000)
        result.messages, result.outcome, result.tokens_before, result.tokens_after

    Args:
        messages: The conversation, oldest first: dicts of OpenAI, Anthropic, Gemini or the AI SDK, or objects of their
            SDKs or of an agent framework.
        budget: Tokens that must not be exceeded; over it, the context is compacted.
        target: Tokens to compact down to; half of the budget by default, or the limit of the given strategy.
        preset: A name (`holdfast presets` lists them) or a `Policy`: brings trigger, strategy, target, estimator and
            limits. Other arguments take precedence.
        window: The model's context window in tokens, for the threshold of a preset.
        system: The system prompt, if it is not one of the messages: counts, and is not in the result.
        tools: Tool definitions as the provider takes them: count, and are not in the result.
        usage: What the provider reported with the last reply among the messages, in its own form: the size is that
            figure plus an estimate of what came after it.
        strategy: What to keep: a strategy, a function, or a name as on the command line (`"sliding:20"`).
        summarizer: A model that writes a summary: `"anthropic:claude-…"`, an address, a model object, or a function
            from text to text. Without one, notes are taken from the messages.
        instructions: What the summary should keep.
        estimator: Counts tokens: a name (`"o200k_base"`, `"chars/4"`), or a function from text to a number.
        format: The wire format of the messages, detected by default; for objects of a framework, the format to return.
        alternating: For models whose chat template refuses two messages of one role in a row.
        previous: The `checkpoint` of an earlier result whose messages these continue.
        numbers: Numbers by which notes cite the messages; by default their position (`[12]` is the twelfth).
        trigger: Decides whether to compact, in place of the budget: a function from a `Request` to a bool.
        min_saving: The smallest saving worth a compaction, as a fraction.
        limits: Time-outs, attempts and number of the model's calls.
        notify: Called with each event of the model's calls.
        abort: Stops the compaction from any thread.
        hooks: Run before and after the compaction; they may veto or change it.
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
    messages: Iterable[MessageT],
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
) -> CompactionResult[MessageT]:
    """`compact` for async code, with the same arguments: the work runs in threads, so the event loop stays free.

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
