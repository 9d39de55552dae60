"""Terminal driver that survives a closed terminal: output is dropped and a callback is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.driver import Driver


class TerminalStream:
    """Output stream that reports write errors to a callback instead of raising.

    Textual writes from a thread that reads a bounded queue. If an error ended that thread, the queue would fill up and
    the program would hang.
    """

    def __init__(self, file: IO[str], on_lost: Callable[[], object]) -> None:
        self._file, self._on_lost = file, on_lost

    def write(self, text: str) -> None:
        self._attempt(self._file.write, text)

    def flush(self) -> None:
        self._attempt(self._file.flush)

    def fileno(self) -> int:
        return self._file.fileno()

    def _attempt(self, act: Callable[..., object], *given: str) -> None:
        try:
            act(*given)
        except (OSError, ValueError):
            self._on_lost()


def terminal_exists(fileno: int) -> bool:
    """Returns whether the descriptor still belongs to a terminal."""
    try:
        os.get_terminal_size(fileno)
    except OSError:
        return False
    return True


def make_driver_class(on_lost: Callable[[], object]) -> type[Driver] | None:
    """Returns textual's Linux driver with a `TerminalStream`; None on Windows."""
    if sys.platform == "win32":
        return None
    from textual.drivers.linux_driver import LinuxDriver

    class ResilientDriver(LinuxDriver):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._file = TerminalStream(sys.__stderr__, on_lost)  # type: ignore[assignment, arg-type]
            self._is_suspended = False

        def suspend_application_mode(self) -> None:
            super().suspend_application_mode()
            self._is_suspended = True

        def resume_application_mode(self) -> None:
            self._is_suspended = False
            super().resume_application_mode()

        def write(self, data: str) -> None:
            """Writes data; while another program has the terminal, drops it: no thread reads the queue."""
            if not self._is_suspended:
                super().write(data)

    return ResilientDriver
