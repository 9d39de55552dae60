"""Where text goes: consoles that are plain in a pipe, and a sign of life when something takes long."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDEST = 100
"""Bars and lines that run across a whole wide screen are hard to read."""
PATIENCE = 1.0
"""Seconds without a sign of life."""


def console(*, stderr: bool = False) -> Console:
    """Colours on a terminal alone, and none where NO_COLOR is set; 80 columns in a pipe."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    made = Console(stderr=stderr, highlight=False, color_system=None if plain else "auto")
    made.width = min(made.width, WIDEST)
    return made


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on stderr while the block runs, if that is a terminal and the block takes its time.

    A spinner moves the cursor; where no colours are wanted, a plain line says the same.
    """
    if not sys.stderr.isatty():
        yield
        return
    shown = console(stderr=True)
    status = shown.status(f"{what} …")
    start = status.start if shown.color_system else lambda: shown.print(f"{what} …")
    timer = threading.Timer(PATIENCE, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
