"""Stopping a compaction from outside: from another thread, another task, or a signal handler."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio.lowlevel import current_token


class Abort:
    """Hand it to a compaction, keep it, and call it to stop: the outcome is `aborted` and nothing has changed."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._aborted = False
        self._listeners: set[Callable[[], object]] = set()

    @property
    def aborted(self) -> bool:
        return self._aborted

    def __call__(self) -> None:
        """Stop now. Any thread may say so, any number of times."""
        with self._lock:
            self._aborted = True
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    @contextmanager
    def scope(self) -> Iterator[anyio.CancelScope]:
        """Work in here is cancelled when somebody says stop, whichever thread says it."""
        native: Any = current_token().native_token  # asyncio's loop, or trio's token
        soon = getattr(native, "call_soon_threadsafe", None) or native.run_sync_soon
        with anyio.CancelScope() as scope:

            def stop() -> None:
                soon(scope.cancel)

            with self._lock:
                self._listeners.add(stop)
                if self._aborted:
                    scope.cancel()
            try:
                yield scope
            finally:
                with self._lock:
                    self._listeners.discard(stop)
