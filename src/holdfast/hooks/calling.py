"""Calling a function that somebody gave as a hook, async or not, and never for longer than it may take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import anyio.to_thread

from .patience import at_most

Function = Callable[..., Any]


async def call(function: Function, *given: Any, seconds: float) -> Any:
    """What it answers. A blocking one runs in a thread: when its time is over it is left behind, and not heard."""
    with at_most(seconds):
        called = getattr(function, "__call__", None)  # noqa: B004 - an object may have an async one
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
            return await function(*given)
        answer, problem = await anyio.to_thread.run_sync(_guarded, function, given, abandon_on_cancel=True)
        if problem is not None:
            raise problem
        return await answer if inspect.isawaitable(answer) else answer


def _guarded(function: Function, given: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Errors come back as values: a thread cannot hand on StopIteration."""
    try:
        return function(*given), None
    except StopIteration as problem:
        return None, RuntimeError(f"StopIteration: {problem}")
    except Exception as problem:
        return None, problem
