"""Locks between processes, on files of their own: the logs themselves are replaced by a redaction."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform == "win32":
    import msvcrt
    import time

    def _lock(handle: int, shared: bool) -> None:
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return
            except OSError:
                time.sleep(0.005)
else:
    import fcntl

    def _lock(handle: int, shared: bool) -> None:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


@contextmanager
def hold(path: str, shared: bool = False) -> Iterator[None]:
    """Hold the lock until the block ends; the system lets go of it if the process dies."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(handle, shared)
        yield
    finally:
        os.close(handle)
