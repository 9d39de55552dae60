"""The chat without a terminal: keys go in, and the screen is read as text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from screens import LIMIT
from textual.pilot import Pilot

from holdfast.chat import open_chat
from holdfast.settings import load_settings
from holdfast.terminal.app import ChatTerminal
from holdfast.terminal.conversation import Conversation
from holdfast.terminal.look import Look


class Stage:
    def __init__(self, app: ChatTerminal, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot
        self.conversation = app.conversation
        self.chat = app.conversation.chat

    @property
    def text(self) -> str:
        lines = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def types(self, text: str) -> None:
        self.app.input.insert(text)
        await self.pilot.pause()

    async def until(self, holds: Callable[[], object]) -> None:
        with anyio.fail_after(LIMIT):
            while not holds():
                await self.pilot.pause(0.01)

    async def sees(self, *texts: str) -> None:
        try:
            await self.until(lambda: all(text in self.text for text in texts))
        except TimeoutError:
            raise AssertionError(f"{texts!r} was not seen; the screen is\n{self.text}") from None

    async def rests(self) -> None:
        await self.chat.wait_idle()
        await self.until(lambda: not self.conversation.standing.doing and self.app.input.display)


@asynccontextmanager
async def stage(
    place: Path,
    *steps: Any,
    size: tuple[int, int] = (80, 24),
    look: Look | None = None,
    window: int | None = None,
    **script: Any,
) -> AsyncIterator[Stage]:
    """A chat with a scripted model, in a folder of its own."""
    folder = place / "harbor"
    folder.mkdir(exist_ok=True)
    (place / "story.json").write_text(json.dumps({"steps": list(steps) or ["Aye."], "repeat": True, **script}))
    flags = {
        "model": f"script:{place / 'story.json'}",
        "store": f"sqlite:///{place / 'sessions.db'}",
        "window": window,
    }
    settings = load_settings(folder, flags, {"HOME": str(place)})
    conversation = Conversation()
    app = ChatTerminal(conversation, look or Look())
    async with open_chat(settings, folder=folder, tell=conversation.tell, approve=conversation.questions.ask) as chat:
        conversation.chat = chat
        async with app.run_test(size=size) as pilot:
            yield Stage(app, pilot)
