"""Hands the terminal over for a while: to an editor, or to the terminal's own buffer with its selection and search.

The agent goes on working meanwhile; what it does is drawn afterwards.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from textual.app import App

from ...errors import InvalidInput

_EDITORS = ("nano", "vi", "notepad")
RETURN_HINT = "Enter returns to the chat."


def editor_command(environ: Mapping[str, str] = os.environ) -> Sequence[str]:
    """Returns the command of the user's editor; raises `InvalidInput` if there is none."""
    if chosen := (environ.get("VISUAL") or environ.get("EDITOR") or "").strip():
        return shlex.split(chosen)
    if (found := next(filter(None, map(shutil.which, _EDITORS)), None)) is None:
        raise InvalidInput("There is no editor: set EDITOR to one.")
    return [found]


class Handover:
    """Gives the terminal of an app to others, one at a time."""

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._files: tempfile.TemporaryDirectory[str] | None = None
        """Kept until the program ends: some editors return before they have read their file."""

    async def open_in_editor(self, text: str) -> None:
        """Shows a copy of the text in the user's editor and waits until it ends."""
        command = editor_command()
        self._files = self._files or tempfile.TemporaryDirectory(prefix="holdfast-")
        file = Path(self._files.name) / "holdfast.md"
        file.write_text(f"{text}\n", encoding="utf-8", errors="replace")
        with self._suspended():
            try:
                await (await asyncio.create_subprocess_exec(*command, str(file))).wait()
            except OSError as problem:
                reason = problem.strerror or problem
                raise InvalidInput(f"{command[0]} did not start ({reason}): set EDITOR to your editor.") from None

    async def print_text(self, text: str) -> None:
        """Prints the text into the terminal's own buffer and waits for Enter."""
        with self._suspended():
            out = sys.__stderr__
            if out is None or sys.__stdin__ is None:
                return
            with suppress(OSError):
                out.write(f"{text}\n\n{RETURN_HINT}\n")
                out.flush()
                await _wait_for_enter(sys.__stdin__.fileno())

    @contextmanager
    def _suspended(self) -> Iterator[None]:
        if self._app.is_headless or not getattr(self._app._driver, "can_suspend", False):
            raise InvalidInput("This terminal cannot be handed over to another program.")
        before = signal.signal(signal.SIGINT, lambda *_: None)  # a Ctrl-C meant for the other program
        try:
            with self._app.suspend():
                yield
        finally:
            signal.signal(signal.SIGINT, before)


async def _wait_for_enter(fileno: int) -> None:
    """Waits for a line without a thread, which could not be cancelled."""
    loop = asyncio.get_running_loop()
    typed = asyncio.Event()
    loop.add_reader(fileno, typed.set)
    try:
        await typed.wait()
        os.read(fileno, 1_024)
    finally:
        loop.remove_reader(fileno)
