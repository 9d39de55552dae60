"""Any function from text to text is a model."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import anyio.to_thread

from ..calls import Answer, Failure, ModelCall, Reply
from .failures import failure_of

Summarize = Callable[[str], str] | Callable[[str], Awaitable[str]]


class FunctionModel:
    """Hands system and prompt, joined, to a function; a blocking one runs in a thread of its own.

    A thread cannot be stopped: when the call is cancelled, it is left behind and its answer is dropped.
    """

    def __init__(self, function: Summarize) -> None:
        self._function: Callable[[str], Any] = function

    @property
    def name(self) -> str:
        return f"function:{getattr(self._function, '__name__', type(self._function).__name__)}"

    def __repr__(self) -> str:
        return f"FunctionModel({self.name.partition(':')[2]})"

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        asked = f"{call.system}\n\n{call.prompt}" if call.system else call.prompt
        try:
            said = await self._run(asked)
        except (ValueError, TypeError) as problem:
            return Failure("request", failure_of(problem).why)
        except Exception as problem:
            return failure_of(problem)
        if not isinstance(said, str):
            return Failure("request", f"{self.name} returned {type(said).__name__}, not a string.")
        on_delta(said)
        return Reply(said, model=self.name)

    async def _run(self, asked: str) -> Any:
        called = getattr(self._function, "__call__", None)  # noqa: B004 - an object may have an async one
        if inspect.iscoroutinefunction(self._function) or inspect.iscoroutinefunction(called):
            return await self._function(asked)
        said = await anyio.to_thread.run_sync(self._guarded, asked, abandon_on_cancel=True)
        if isinstance(said, _Raised):
            raise said.problem
        return await said if inspect.isawaitable(said) else said

    def _guarded(self, asked: str) -> Any:
        """Errors come back as values: a thread cannot hand on StopIteration."""
        try:
            return self._function(asked)
        except Exception as problem:
            return _Raised(problem)


class _Raised:
    def __init__(self, problem: Exception) -> None:
        self.problem = RuntimeError(str(problem)) if isinstance(problem, StopIteration) else problem
