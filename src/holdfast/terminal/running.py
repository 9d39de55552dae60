"""One run of the chat: from settings to the line that says how to go on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
import click

from ..agent.tools import always_yes
from ..chat import open_chat
from ..errors import InvalidInput
from ..settings import Settings
from .app import ChatTerminal
from .conversation import Conversation
from .entries import Note
from .look import look_of

HUNG_UP = 129
"""The exit code where the terminal went away, as a shell would say it."""


def run(settings: Settings, folder: str | Path, session: str | None, yes: bool, prompt: str | None) -> int:
    if not (sys.__stdin__ and sys.__stdin__.isatty() and sys.__stderr__ and sys.__stderr__.isatty()):
        raise InvalidInput(
            "The chat needs a terminal for its input and its screen: see holdfast chat --help for others."
        )
    return anyio.run(partial(_converse, settings, folder, session, yes, prompt), backend="asyncio")


async def _converse(settings: Settings, folder: str | Path, session: str | None, yes: bool, prompt: str | None) -> int:
    conversation = Conversation()
    app = ChatTerminal(conversation, look_of())
    approve = always_yes if yes else conversation.questions.ask
    async with open_chat(settings, folder=folder, tell=conversation.tell, approve=approve, session=session) as chat:
        conversation.chat = chat
        for note in settings.notes:
            conversation.transcript.add(Note(note, "warning"))
        if prompt is not None:
            chat.say(prompt)
        with _hearing_signals(app):
            await app.run_async()
    if app.gone:
        _write_nowhere()
        return HUNG_UP
    click.echo(f"To go on with this session: holdfast chat --session {chat.record.id}")
    return app.return_code or 0


def _write_nowhere() -> None:
    """What Python still has to write when it ends would fail, and be taken for a failure of ours."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


@contextmanager
def _hearing_signals(app: ChatTerminal) -> Iterator[None]:
    """Where the terminal closes, or the machine goes down, what was said so far is stored first."""
    if sys.platform == "win32":
        yield
        return
    loop, wanted = asyncio.get_running_loop(), (signal.SIGHUP, signal.SIGTERM)
    for one in wanted:
        loop.add_signal_handler(one, app.vanish)
    try:
        yield
    finally:
        for one in wanted:
            loop.remove_signal_handler(one)
