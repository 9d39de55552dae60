"""Where text goes: consoles that are plain in a pipe, and a sign of life when something takes long."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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
def working(what: str | Callable[[], str]) -> Iterator[None]:
    """Show a spinner on stderr while the block runs, if that is a terminal and the block takes its time.

    A function is asked again for every picture. A spinner moves the cursor; where no colours are wanted, a plain
    line says the same.
    """
    if not sys.stderr.isatty():
        yield
        return
    shown = console(stderr=True)
    line = _Line(what if callable(what) else lambda: what)
    status = shown.status(line)
    start = status.start if shown.color_system else lambda: shown.print(line)
    timer = threading.Timer(PATIENCE, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


class _Line:
    """What is being done now, in one line; never markup, since servers are quoted in it."""

    def __init__(self, says: Callable[[], str]) -> None:
        self._says = says

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(f"{self._says()} …", no_wrap=True, overflow="ellipsis")
