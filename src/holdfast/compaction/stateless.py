"""The front door: `compact(messages, budget=…)`, and the same from async code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from anyio.from_thread import start_blocking_portal

from ..calls import Limits
from ..messages import must_be_messages
from ..models import model_for
from ..strategies import KeepLedger, StructuredSummary
from ..tokens import Estimator
from .abort import Abort
from .asking import Asking, decide_asking
from .decide import decide
from .driver import Notify
from .result import CompactionResult
from .work import Work

if TYPE_CHECKING:
    from ..types import Strategy, Trigger


def compact(
    messages: Iterable[Any],
    *,
    budget: int,
    target: int | None = None,
    system: Any = None,
    tools: Any = None,
    strategy: Strategy | None = None,
    summarizer: Any = None,
    instructions: str | None = None,
    estimator: Estimator | Callable[[str], int] | str | None = None,
    format: str | None = None,
    previous: Any = None,
    numbers: Sequence[int] | None = None,
    trigger: Trigger | None = None,
    min_saving: float | None = None,
    limits: Limits | None = None,
    notify: Notify | None = None,
    abort: Abort | None = None,
) -> CompactionResult:
    """Compact a list of messages that must not exceed `budget` tokens.

    Under the budget nothing happens. Over it, the context is brought down to `target` (half the budget
    by default), or to the limit of the strategy that is given. No model, no key and no network are
    needed; with a `summarizer` (`"anthropic:claude-…"`, a model object, a function from text to text) that
    model writes a summary, minding your `instructions`. `result.messages` is always what to send, in the
    format that came in. Notes cite a message by its place, `[12]` is the twelfth, unless `numbers` gives each
    another.
    """
    asking = Asking(model_for(summarizer), limits, notify, abort)
    work = Work(messages, budget, target, system, tools, instructions, estimator, format, previous, numbers, asking)
    chosen = strategy or default_strategy(target, work.target, asking.model is not None)
    saving = least_saving(chosen, min_saving)
    if asking.model is None:
        return work.result(decide(work.request, chosen, trigger, min_saving=saving))
    with start_blocking_portal() as portal:
        ask = partial(decide_asking, work.request, chosen, trigger, asking, min_saving=saving)
        return work.result(portal.call(ask))


async def acompact(
    messages: Iterable[Any],
    *,
    budget: int,
    target: int | None = None,
    system: Any = None,
    tools: Any = None,
    strategy: Strategy | None = None,
    summarizer: Any = None,
    instructions: str | None = None,
    estimator: Estimator | Callable[[str], int] | str | None = None,
    format: str | None = None,
    previous: Any = None,
    numbers: Sequence[int] | None = None,
    trigger: Trigger | None = None,
    min_saving: float | None = None,
    limits: Limits | None = None,
    notify: Notify | None = None,
    abort: Abort | None = None,
) -> CompactionResult:
    """`compact` for async code: the work is done in threads, so that the event loop stays free.

    Cancelling the task stops it at once, and nothing has changed.
    """
    must_be_messages(messages)
    taken, asking = list(messages), Asking(model_for(summarizer), limits, notify, abort)
    work = await to_thread.run_sync(
        lambda: Work(taken, budget, target, system, tools, instructions, estimator, format, previous, numbers, asking)
    )
    chosen = strategy or default_strategy(target, work.target, asking.model is not None)
    saving = least_saving(chosen, min_saving)
    decision = await decide_asking(work.request, chosen, trigger, asking, min_saving=saving)
    return await to_thread.run_sync(work.result, decision)


def default_strategy(asked: int | None, aim: int | None, has_model: bool) -> Strategy:
    """A summary where a model can write one, else the ledger: which keeps to a target that was asked for, and goes
    over one that was not where what must stay leaves too little for notes."""
    return StructuredSummary(max_tokens=aim) if has_model else KeepLedger(max_tokens=asked)


def least_saving(strategy: Strategy, given: float | None) -> float:
    """The smallest gain worth committing: any for a window, a tenth for a summary, unless it is said."""
    usual: float = getattr(strategy, "min_saving", 0.0)
    return usual if given is None else given
