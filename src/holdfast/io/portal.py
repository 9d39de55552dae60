"""The event loop of blocking callers: one per process, in a daemon thread that starts with the first call.

A program that forgets to close something ends all the same: the loop stops when the program's own threads have ended.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from ..errors import HoldfastError

_Result = TypeVar("_Result")
_WORKER_THREADS = "AnyIO worker thread"
"""Name of the worker threads of event loops; they end with their loop."""


class Portal:
    """An event loop in a daemon thread; a forked child starts its own."""

    _portal: BlockingPortal | None
    _thread: threading.Thread | None
    _starting: threading.Lock
    stopped: bool
    """The program is ending: no call is accepted."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets the thread, which does not exist in a forked child."""
        self._portal, self._thread, self.stopped = None, None, False
        self._starting = threading.Lock()

    def run(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Runs work on the loop and blocks until it is done; an interrupt of the caller cancels it."""
        if threading.current_thread() is self._thread:
            raise HoldfastError(
                "A blocking call inside a listener or a model function would wait for itself: "
                "use SessionService or acompact() there, or another thread."
            )
        future = self._submit(work)
        try:
            return future.result()
        finally:
            future.cancel()

    async def arun(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Runs work on the loop; the caller's own loop stays free."""
        if threading.current_thread() is self._thread:
            return await work()
        return await asyncio.wrap_future(self._submit(work))

    def _submit(self, work: Callable[[], Awaitable[_Result]]) -> Future[_Result]:
        with self._starting:
            if self.stopped:
                raise HoldfastError("The program is ending: call Holdfast before its last thread has ended.")
            if self._portal is None:
                self._start()
            assert self._portal is not None
            return self._portal.start_task_soon(work)

    def _start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: anyio.run(self._serve, ready), daemon=True, name="holdfast")
        self._thread.start()
        ready.wait()
        threading.Thread(target=self._stop_after_program, name="holdfast end", daemon=False).start()

    async def _serve(self, ready: threading.Event) -> None:
        async with BlockingPortal() as self._portal:
            ready.set()
            await self._portal.sleep_until_stopped()

    def _stop_after_program(self) -> None:
        """Waits for the threads of the program, then stops the loop: the interpreter waits for its worker threads."""
        while others := [thread for thread in threading.enumerate() if _is_of_program(thread)]:
            for thread in others:
                thread.join()
        with self._starting:
            self.stopped = True
            assert self._portal is not None
            self._portal.start_task_soon(self._portal.stop, True)


def _is_of_program(thread: threading.Thread) -> bool:
    if thread.daemon or not thread.is_alive():  # the main thread stays in the list when it has ended
        return False
    return thread is not threading.current_thread() and thread.name != _WORKER_THREADS


portal = Portal()
"""The one of this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=portal.reset)
