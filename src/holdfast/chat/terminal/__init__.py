"""`holdfast chat` on a terminal. Needs textual, of the extra `chat`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InvalidInput
from ...io.installation import install_command

if TYPE_CHECKING:
    from ...agent.tools import Mode, Sandbox
    from ...settings import Settings


__all__ = [
    "run_terminal",
]


def run_terminal(
    settings: Settings,
    *,
    folder: str | Path,
    session: str | None = None,
    yes: bool = False,
    prompt: str | None = None,
    choose: bool = False,
    mode: Mode = "ask",
    sandbox: Sandbox | None = None,
) -> int:
    """Runs the chat in a terminal, in a new or existing session; returns the exit code.

    With `yes`, tools run without asking for approval. `prompt` is sent as the first message. With `choose`, the user
    first chooses a session from a list.
    """
    if find_spec("textual") is None:
        raise InvalidInput(f"The chat on a terminal needs textual: {install_command('chat')}")
    from .run import run_app

    return run_app(settings, folder, session, yes, prompt, choose=choose, mode=mode, sandbox=sandbox)
