"""Typing lines into a chat, and looking at what comes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from chats import SUMMARY, Room
from rich.cells import cell_len

from holdfast.chat.commands import Page, run_command
from holdfast.chat.commands.layout import WIDTH
from holdfast.models import ScriptedAgentModel

LONG = "said at some length " * 60
"""About as many tokens in every message, so that so many tokens are so many messages."""


class Talk(Room):
    """A chat with a model that answers `a1`, `a2`, … at some length, and lines typed into it."""

    def __init__(self, folder: Path, steps: Any = None, **options: Any) -> None:
        told = [f"a{number} {LONG}" for number in range(1, 40)]
        alone = isinstance(steps, ScriptedAgentModel)
        model = steps if alone else ScriptedAgentModel(steps or told, answers=options.pop("answers", SUMMARY))
        super().__init__(folder, model, **options)

    @asynccontextmanager
    async def open(self, session: str | None = None) -> AsyncIterator[Talk]:
        async with self.chat.running(session):
            yield self

    async def types(self, line: str) -> Page:
        """One line, and all that it sets going."""
        page = await run_command(self.chat, line)
        assert all(cell_len(row) <= WIDTH for row in page.text.split("\n")), page.text
        await self.chat.wait_idle()
        return page

    async def says(self, *lines: str) -> str:
        """Several lines; what the last one answers."""
        text = ""
        for line in lines:
            text = (await self.types(line)).text
        return text

    async def asks(self, *names: str) -> None:
        """`u1`, `u2`, …, each at some length."""
        await self.says(*(f"{name} {LONG}" for name in names))

    async def shows(self) -> str:
        """The context as the documents have it: `Summary u2 a2`."""
        return " ".join(_name(text) for text in await self.texts())

    @property
    def id(self) -> str:
        return self.chat.record.id


def _name(text: str) -> str:
    return "Summary" if text.startswith("Summary of the earlier conversation") else text.split(" ", 1)[0]


def flat(text: str) -> str:
    """A page as one line: where it breaks is no matter."""
    return " ".join(text.split())
