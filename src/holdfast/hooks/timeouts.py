"""Time limits for hooks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.to_thread

from ..errors import InvalidLimit

DEFAULT_HOOK_TIMEOUT = 60.0
"""Seconds."""


class HookTimeout(Exception):
    """A hook exceeded its time limit."""


@contextmanager
def hook_time_limit(seconds: float) -> Iterator[None]:
    """Cancels the block after so many seconds and raises `HookTimeout`."""
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise HookTimeout(f"it timed out after {seconds:g} s")


def require_seconds(timeout: float, name: str = "timeout") -> None:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise InvalidLimit(f"{name} must be a number of seconds above 0, not {timeout!r}.")


HookFunction = Callable[..., Any]


async def call_hook_function(function: HookFunction, *arguments: Any, seconds: float) -> Any:
    """Calls a function, async or not. A blocking one runs in a thread, which is abandoned on timeout."""
    with hook_time_limit(seconds):
        called = getattr(function, "__call__", None)  # noqa: B004 - an object may have an async one
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
            return await function(*arguments)
        answer, error = await anyio.to_thread.run_sync(_catch_errors, function, arguments, abandon_on_cancel=True)
        if error is not None:
            raise error
        return await answer if inspect.isawaitable(answer) else answer


def _catch_errors(function: HookFunction, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Returns errors as values, since StopIteration cannot be raised across the thread boundary."""
    try:
        return function(*arguments), None
    except StopIteration as error:
        return None, RuntimeError(f"StopIteration: {error}")
    except Exception as error:
        return None, error
