"""Test harness: lines typed into a chat, and their output."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from chat_harness import SUMMARY, ChatHarness
from rich.cells import cell_len

from holdfast.chat.commands import CommandResult, run_command
from holdfast.chat.commands.base import PAGE_WIDTH
from holdfast.models import ScriptedAgentModel

LONG = "said at some length " * 60
"""Gives every message about the same number of tokens, so that token limits are message counts."""


class CommandHarness(ChatHarness):
    """A chat with a model that answers `a1`, `a2`, … with long texts, and lines typed into it."""

    def __init__(self, folder: Path, steps: Any = None, **options: Any) -> None:
        replies = [f"a{number} {LONG}" for number in range(1, 40)]
        alone = isinstance(steps, ScriptedAgentModel)
        model = steps if alone else ScriptedAgentModel(steps or replies, answers=options.pop("answers", SUMMARY))
        super().__init__(folder, model, **options)

    @asynccontextmanager
    async def open(self, session: str | None = None) -> AsyncIterator[CommandHarness]:
        async with self.chat.running(session):
            yield self

    async def run(self, line: str) -> CommandResult:
        """Runs one line and waits until the chat is idle."""
        result = await run_command(self.chat, line)
        assert all(cell_len(row) <= PAGE_WIDTH for row in result.text.split("\n")), result.text
        await self.chat.wait_idle()
        return result

    async def run_all(self, *lines: str) -> str:
        """Runs several lines; returns the output of the last."""
        text = ""
        for line in lines:
            text = (await self.run(line)).text
        return text

    async def send_prompts(self, *names: str) -> None:
        """Sends prompts `u1`, `u2`, …, each with a long text."""
        await self.run_all(*(f"{name} {LONG}" for name in names))

    async def context_names(self) -> str:
        """Returns the context in short form: `Summary u2 a2`."""
        return " ".join(_name(text) for text in await self.texts())

    @property
    def id(self) -> str:
        return self.chat.record.id


def _name(text: str) -> str:
    return "Summary" if text.startswith("Summary of the earlier conversation") else text.split(" ", 1)[0]


def collapse(text: str) -> str:
    """Joins output into one line, ignoring line breaks."""
    return " ".join(text.split())
