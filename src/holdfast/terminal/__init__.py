"""`holdfast chat` on a terminal. Needs textual: pip install 'holdfast[chat]'."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput

if TYPE_CHECKING:
    from ..settings import Settings

__all__ = ["run_terminal"]


def run_terminal(
    settings: Settings,
    *,
    folder: str | Path,
    session: str | None = None,
    yes: bool = False,
    prompt: str | None = None,
) -> int:
    """Talk with an agent in a folder, in a new session or in one that is there; returns the exit code.

    With `yes` nobody is asked before a tool changes something. A `prompt` is what the person says first.
    """
    if find_spec("textual") is None:
        raise InvalidInput("The chat on a terminal needs textual: pip install 'holdfast[chat]'.")
    from .running import run

    return run(settings, folder, session, yes, prompt)
