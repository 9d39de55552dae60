"""Patience with a model: attempts, waits and time limits, the same for a question and for a step of an agent."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeVar

import anyio

from ..calls import Delta, Failure, Limits, NoticeKind, Reply, StepCall, Stepper, StepReply
from .secrets import scrub

log = logging.getLogger("holdfast")
A = TypeVar("A", Reply, StepReply)
Heard = Callable[[str], None]
"""Takes the newest piece of a reply; an empty one is a sign of life and no more."""


class Tell(Protocol):
    def __call__(
        self, kind: NoticeKind, attempt: int, *, text: str = "", characters: int = 0, seconds: float = 0.0
    ) -> None: ...


class Waiting(NamedTuple):
    """The model did not answer, and is asked again after so many seconds."""

    why: str
    seconds: float
    attempt: int


async def persistently(
    model: Stepper,
    call: StepCall,
    limits: Limits,
    on_delta: Callable[[Delta], object],
    on_wait: Callable[[Waiting], object] | None = None,
) -> StepReply | Failure:
    """A step of an agent, asked again where that may help and nothing was shown yet: nobody wants to read it twice."""

    async def ask(heard: Heard) -> StepReply | Failure:
        def hear(delta: Delta) -> None:
            heard(delta.text)
            if delta.text:
                on_delta(delta)

        return await model.step(call, hear)

    def tell(kind: NoticeKind, attempt: int, *, text: str = "", characters: int = 0, seconds: float = 0.0) -> None:
        if kind == "waiting" and on_wait is not None:
            on_wait(Waiting(text, seconds, attempt))

    until = anyio.current_time() + limits.deadline
    return await keep_trying(ask, model.name, limits, until, tell, again_once_heard=False)


async def keep_trying(
    ask: Callable[[Heard], Awaitable[A | Failure]],
    name: str,
    limits: Limits,
    deadline: float,
    tell: Tell,
    *,
    again_once_heard: bool = True,
) -> A | Failure:
    """What a model answers at last, before a moment of anyio's clock."""
    wait = limits.backoff
    for attempt in range(1, limits.attempts + 1):
        started = time.perf_counter()
        tell("calling", attempt)
        answer, heard = await _attempt(ask, name, limits, deadline, tell, attempt)
        seconds = time.perf_counter() - started
        if not isinstance(answer, Failure):
            tell("answered", attempt, characters=len(answer.text), seconds=seconds)
            return answer
        tell("failed", attempt, text=f"{answer.kind}: {answer.why}", seconds=seconds)
        usual = min(wait * random.uniform(0.75, 1.25), limits.longest_wait)  # noqa: S311
        pause = usual if answer.retry_after is None else answer.retry_after
        in_time = pause <= limits.longest_wait and anyio.current_time() + pause < deadline
        unsaid = again_once_heard or not heard
        if not (answer.may_pass and in_time and unsaid) or attempt == limits.attempts:
            return answer
        tell("waiting", attempt, text=answer.why, seconds=pause)
        await anyio.sleep(pause)
        wait *= 2
    raise AssertionError("the last attempt returns")


async def _attempt(
    ask: Callable[[Heard], Awaitable[A | Failure]],
    name: str,
    limits: Limits,
    deadline: float,
    tell: Tell,
    attempt: int,
) -> tuple[A | Failure, int]:
    """One try, and how many characters were heard of it; every sign of life from the model renews its time."""
    so_far = 0

    def until() -> float:
        return min(anyio.current_time() + limits.timeout, deadline)

    with anyio.CancelScope(deadline=until()) as scope:

        def heard(text: str) -> None:
            nonlocal so_far
            so_far += len(text)
            scope.deadline = until()
            tell("delta", attempt, text=text, characters=so_far)

        try:
            return await ask(heard), so_far
        except Exception as problem:
            log.warning("the model %s raised %s", name, type(problem).__name__)
            return Failure("request", scrub(f"{type(problem).__name__}: {problem}")), so_far
    late = anyio.current_time() >= deadline
    limit = f"all of it took over {limits.deadline:g} s" if late else f"no sign of life for {limits.timeout:g} s"
    return Failure("timeout", limit), so_far
