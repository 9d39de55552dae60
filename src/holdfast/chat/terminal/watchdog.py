"""Ends a stall of the screen: a timer of the system interrupts what the event loop does not return from."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import holdfast

STALL_SECONDS = 5.0
"""Seconds without a turn of the event loop after which what it is doing is interrupted."""
_RETRY_SECONDS, _MAX_RETRIES = 1.0, 5
"""Where the loop was not computing but waiting, or the process was stopped, it gets this many seconds more."""
_MAX_INTERRUPTS = 3
"""After that many without a turn of the loop, the program ends at once."""
_PACKAGE = Path(holdfast.__file__).parent.parent


class ScreenStalled(Exception):
    """Raised in the thread of the screen, at the place where it hung."""


class Watchdog:
    """Interrupts the event loop when `beat` is not called for some seconds, and handles the signals that end it.

    A thread could not stop a loop in the screen's thread; the system's timer raises an exception there, also inside a
    regular expression or a system call. A signal handler of the event loop would never run.
    """

    def __init__(self, on_exit_signal: Callable[[], object], restore_terminal: Callable[[], object]) -> None:
        self._on_exit_signal, self._restore_terminal = on_exit_signal, restore_terminal
        self._loop = asyncio.get_running_loop()
        self._retries = self._interrupts = 0
        self._computed = 0.0

    def beat(self) -> None:
        """Starts the time anew: the event loop is alive."""
        self._retries = self._interrupts = 0
        self._computed = time.thread_time()
        signal.setitimer(signal.ITIMER_REAL, STALL_SECONDS)

    @contextmanager
    def running(self) -> Iterator[None]:
        handlers = {signal.SIGALRM: self._on_alarm, signal.SIGHUP: self._on_exit, signal.SIGTERM: self._on_exit}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_exit(self, _number: int, _frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._on_exit_signal)
        self._retries = _MAX_RETRIES
        signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)  # a loop that is alive beats before

    def _on_alarm(self, _number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
        computing = time.thread_time() - self._computed > STALL_SECONDS / 2
        if not computing and self._retries < _MAX_RETRIES:
            self._retries += 1
            return
        self._interrupts += 1
        problem = ScreenStalled(f"the screen did not respond for {STALL_SECONDS:.0f} s: it hung in {_place(frame)}")
        if self._interrupts <= _MAX_INTERRUPTS:
            raise problem
        with suppress(Exception):
            self._restore_terminal()
        with suppress(OSError, ValueError):
            print(f"holdfast: {problem}", file=sys.__stderr__, flush=True)
        os._exit(1)


def _place(frame: FrameType | None) -> str:
    """Names the innermost function, and the innermost of this package."""
    names: list[str] = []
    while frame is not None and len(names) < 2:
        path = Path(frame.f_code.co_filename)
        own = path.is_relative_to(_PACKAGE)
        if not names or own:
            names.append(f"{frame.f_code.co_name} ({path.name}, line {frame.f_lineno})")
        if own:
            break
        frame = frame.f_back
    return ", called by ".join(names)
