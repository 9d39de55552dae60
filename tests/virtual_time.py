"""An event loop whose clock jumps to the next timer: waits take no time, and none is too short for a busy machine."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

R = TypeVar("R")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Its time passes only while nothing can run; threads are waited for as long as no timer is set."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self.now


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self._loop.now += timeout
        return ready


def run_in_virtual_time(work: Callable[..., Awaitable[R]], *args: Any) -> R:
    """Runs an async function like `anyio.run`."""
    return anyio.run(work, *args, backend_options={"loop_factory": VirtualTimeLoop})
