"""Ctrl-C and a polite end from outside: what runs is stopped in order, so that what was said of it is kept."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskStatus


class Stopped:
    """Did somebody say so?"""

    code: int | None = None
    """What a process exits with that was ended so."""


@asynccontextmanager
async def stopped_by_signals(stop: Callable[[], object]) -> AsyncIterator[Stopped]:
    """The first signal calls `stop`; a second one ends what is inside, whatever it is at."""
    stopped = Stopped()

    async def listen(*, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                if stopped.code is not None:
                    group.cancel_scope.cancel()
                stopped.code = 128 + number
                stop()

    async with anyio.create_task_group() as group:
        if sys.platform != "win32":  # there, Ctrl-C cancels all
            await group.start(listen)
        yield stopped
        group.cancel_scope.cancel()
