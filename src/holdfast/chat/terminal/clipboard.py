"""Copies a text: by the terminal's escape sequence (OSC 52), and by the programs of the desktop or of tmux.

Few terminals answer to OSC 52, and tmux ignores it by default, so a program sets the clipboard, too, where there is
one. Over ssh, a program would set the clipboard of the other machine.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

_SECONDS = 5.0
_DESKTOP = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("WSL_DISTRO_NAME", ("clip.exe",)),
)


def clipboard_commands(environ: Mapping[str, str] = os.environ) -> list[Sequence[str]]:
    """Returns the commands that take a text for the clipboard, as far as they are installed: the first of each kind."""
    commands: list[Sequence[str]] = []
    if environ.get("TMUX"):
        commands.append(("tmux", "load-buffer", "-w", "-"))
    if not (environ.get("SSH_CONNECTION") or environ.get("SSH_TTY")):
        desktop = [("pbcopy",)] if sys.platform == "darwin" else [one for name, one in _DESKTOP if environ.get(name)]
        commands += [one for one in desktop if shutil.which(one[0], path=environ.get("PATH"))][:1]
    return commands


async def copy_by_programs(text: str) -> None:
    """Gives the text to the clipboard's programs; one that fails or hangs is passed over."""
    for command in clipboard_commands():
        with suppress(OSError, TimeoutError):
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                async with asyncio.timeout(_SECONDS):
                    await process.communicate(text.encode(errors="replace"))
            finally:
                if process.returncode is None:
                    process.kill()
