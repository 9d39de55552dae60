"""Retry of model calls and agent steps: attempts, backoff, timeouts and a deadline."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeVar

import anyio

from ..errors import plain_reason
from ..io.secrets import scrub
from .calls import ChatModel, Failure, Limits, NoticeKind, Reply, ReplyDelta, StepCall, StepReply

log = logging.getLogger("holdfast")
_MAX_BACKOFF = 30.0
"""Seconds; the provider may ask for a longer wait."""
A = TypeVar("A", Reply, StepReply)
OnText = Callable[[str], None]
"""Receives the newest text of a reply; an empty one only signals activity."""


class RetryObserver(Protocol):
    """Receives progress: calling, delta, waiting, answered, failed."""

    def __call__(
        self, kind: NoticeKind, attempt: int, *, text: str = "", characters: int = 0, seconds: float = 0.0
    ) -> None: ...


class RetryWait(NamedTuple):
    """A call failed and is retried after so many seconds."""

    why: str
    seconds: float
    attempt: int
    streamed: int = 0
    """Characters received of the reply that broke off."""


async def step_with_retry(
    model: ChatModel,
    call: StepCall,
    limits: Limits,
    on_delta: Callable[[ReplyDelta], object],
    on_wait: Callable[[RetryWait], object] | None = None,
) -> StepReply | Failure:
    """Takes an agent's step with retry. After a reply that broke off, the model is asked again for all of it.

    The deadline begins with the first failure: then the provider may be out for that long, and a reply takes its time.
    """

    async def ask(on_text: OnText) -> StepReply | Failure:
        def forward(delta: ReplyDelta) -> None:
            on_text(delta.text)
            if delta.text:
                on_delta(delta)

        return await model.step(call, forward)

    def observe(kind: NoticeKind, attempt: int, *, text: str = "", characters: int = 0, seconds: float = 0.0) -> None:
        if kind == "waiting" and on_wait is not None:
            on_wait(RetryWait(text, seconds, attempt, characters))

    return await call_with_retry(ask, model.name, limits, None, observe)


async def call_with_retry(
    ask: Callable[[OnText], Awaitable[A | Failure]],
    name: str,
    limits: Limits,
    deadline: float | None,
    observe: RetryObserver,
) -> A | Failure:
    """Calls `ask` until it succeeds, fails for good, or the deadline (on anyio's clock) would pass.

    Without a deadline, that of the limits begins with the first failure, and cuts off no attempt.
    """
    wait, cut_off = limits.backoff, math.inf if deadline is None else deadline
    for attempt in range(1, limits.attempts + 1):
        started = time.perf_counter()
        observe("calling", attempt)
        answer, received = await _attempt_once(ask, name, limits, cut_off, observe, attempt)
        seconds = time.perf_counter() - started
        if not isinstance(answer, Failure):
            observe("answered", attempt, characters=len(answer.text), seconds=seconds)
            return answer
        observe("failed", attempt, text=answer.reason, seconds=seconds)
        deadline = anyio.current_time() + limits.deadline if deadline is None else deadline
        backoff = min(wait * random.uniform(0.75, 1.25), limits.longest_wait, _MAX_BACKOFF)  # noqa: S311
        pause = backoff if answer.retry_after is None else answer.retry_after
        in_time = pause <= limits.longest_wait and anyio.current_time() + pause < deadline
        if not (answer.is_retryable and in_time) or attempt == limits.attempts:
            return answer
        observe("waiting", attempt, text=answer.why, characters=received, seconds=pause)
        await anyio.sleep(pause)
        wait *= 2
    raise AssertionError("unreachable: the last attempt returns")


async def _attempt_once(
    ask: Callable[[OnText], Awaitable[A | Failure]],
    name: str,
    limits: Limits,
    deadline: float,
    observe: RetryObserver,
    attempt: int,
) -> tuple[A | Failure, int]:
    """Makes one attempt and returns the number of characters received; every delta restarts the timeout."""
    received = 0

    def until() -> float:
        return min(anyio.current_time() + limits.timeout, deadline)

    with anyio.CancelScope(deadline=until()) as scope:

        def on_text(text: str) -> None:
            nonlocal received
            received += len(text)
            scope.deadline = until()
            observe("delta", attempt, text=text, characters=received)

        try:
            return await ask(on_text), received
        except Exception as error:
            log.warning("the model %s raised %s", name, type(error).__name__)
            return Failure("request", scrub(plain_reason(error))), received
    past_deadline = anyio.current_time() >= deadline
    reason = f"the deadline of {limits.deadline:g} s passed" if past_deadline else f"no data for {limits.timeout:g} s"
    return Failure("timeout", reason), received
