"""A terminal that may vanish: what can no longer be written is dropped, and the program hears of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.driver import Driver


class Wire:
    """A stream to the terminal that never breaks.

    Whoever draws puts pieces into a queue that a thread writes out. A thread that dies of a closed terminal would
    leave the queue to fill up, and the program to wait for ever.
    """

    def __init__(self, file: IO[str], gone: Callable[[], object]) -> None:
        self._file, self._gone = file, gone

    def write(self, text: str) -> None:
        self._try(self._file.write, text)

    def flush(self) -> None:
        self._try(self._file.flush)

    def fileno(self) -> int:
        return self._file.fileno()

    def _try(self, act: Callable[..., object], *given: str) -> None:
        try:
            act(*given)
        except (OSError, ValueError):
            self._gone()


def is_there(fileno: int) -> bool:
    """Is there still a terminal at the other end?"""
    try:
        os.get_terminal_size(fileno)
    except OSError:
        return False
    return True


def driver_class(gone: Callable[[], object]) -> type[Driver] | None:
    """The usual driver with such a wire; None where another platform has its own."""
    if sys.platform == "win32":
        return None
    from textual.drivers.linux_driver import LinuxDriver

    class Steady(LinuxDriver):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._file = Wire(sys.__stderr__, gone)  # type: ignore[assignment, arg-type]

    return Steady
