"""Runs the chat application in a terminal: opens the chat, handles signals, and says how to continue the session."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from ...agent.tools import Mode, Sandbox, approve_all
from ...errors import InvalidInput
from ...sessions.session_ids import shorten_id
from ...settings import Settings, state_folder
from ..open_chat import open_chat
from .app import ChatTerminal
from .attention import Attention
from .conversation import Conversation
from .entries import NoteEntry
from .input_history import HistoryFile
from .theme import detect_theme
from .watchdog import Watchdog

HANGUP_EXIT_CODE = 129
"""Exit code after the terminal closed: 128 + SIGHUP."""
_REPEATED_OPTIONS = ("store", "model", "summarizer", "preset", "window")
"""Options that the command to continue a session repeats."""


def run_app(
    settings: Settings,
    folder: str | Path,
    session: str | None,
    yes: bool,
    prompt: str | None,
    *,
    choose: bool,
    mode: Mode,
    sandbox: Sandbox | None,
) -> int:
    """Runs the chat application; returns the exit code. Raises `InvalidInput` without a terminal."""
    if not (sys.__stdin__ and sys.__stdin__.isatty() and sys.__stderr__ and sys.__stderr__.isatty()):
        raise InvalidInput(
            "The chat needs a terminal for input and screen: see holdfast chat --help for modes without one."
        )
    lines = ["/sessions"] if choose else []
    if prompt is not None:
        lines.append(f"/{prompt}" if prompt.startswith("/") else prompt)
    run = partial(_run_chat, settings, folder, session, yes, lines, mode=mode, sandbox=sandbox)
    return anyio.run(run, backend="asyncio")


async def _run_chat(
    settings: Settings,
    folder: str | Path,
    session: str | None,
    yes: bool,
    lines: Sequence[str],
    **options: Any,
) -> int:
    conversation = Conversation()
    app = ChatTerminal(conversation, detect_theme(), lines)
    approve = approve_all if yes else conversation.pending_approval.ask
    async with open_chat(
        settings, folder=folder, on_event=conversation.handle_event, approve=approve, session=session, **options
    ) as chat:
        conversation.chat = chat
        app.attention = Attention(app.write_to_terminal, calls=settings.notifications)
        app.input.input_history.open(HistoryFile(state_folder() / "input_history.jsonl", chat.folder.root))
        for note in settings.notes:
            conversation.transcript.add(NoteEntry(note, "warning"))
        with _watch(app):
            await app.run_async()
        kept = await chat.is_kept(chat.record)
        name = await shorten_id(chat.sessions, chat.record.id)
    if app.terminal_lost:
        _discard_output()
        return HANGUP_EXIT_CODE
    if kept:
        click.echo(f"To continue this session: {continue_command(name, settings, chat.sandbox)}")
    return app.return_code or 0


def continue_command(session: str, settings: Settings, sandbox: Sandbox | None = None) -> str:
    """Returns the command that continues a session, with the options that were given for this one."""
    given = [name for name in _REPEATED_OPTIONS if settings.origins.get(name) == "flag"]
    options = [word for name in given for word in (f"--{name}", str(settings.value(name)))]
    if sandbox is not None:
        options.append(f"--sandbox={'network' if sandbox.network else 'offline'}")
    return shlex.join(["holdfast", "chat", "--session", session, *options])


def _discard_output() -> None:
    """Redirects stdout and stderr to the null device, so that flushing at exit cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


@contextmanager
def _watch(app: ChatTerminal) -> Iterator[None]:
    """Exits in order on SIGHUP and SIGTERM, so that the session is stored first, and ends a stall of the screen."""
    if sys.platform == "win32":
        yield
        return
    watchdog = Watchdog(app.handle_terminal_lost, app.restore_terminal)
    app.heartbeat = watchdog.beat
    with watchdog.running():
        yield
