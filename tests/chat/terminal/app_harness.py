"""Test harness: the chat application without a terminal; keys in, screen text out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from terminal_screens import TIMEOUT
from textual.pilot import Pilot

from holdfast.chat.open_chat import open_chat
from holdfast.chat.terminal.app import ChatTerminal
from holdfast.chat.terminal.conversation import Conversation
from holdfast.chat.terminal.theme import ChatTheme
from holdfast.settings import load_settings


class AppHarness:
    """Presses keys in a headless app and waits for text on its screen."""

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

    async def press_until(self, key: str, holds: Callable[[], object]) -> None:
        """Presses a key as fast as the app handles it; `press` waits each time until the process is idle."""
        for _ in range(200):
            if holds():
                return
            self.app.simulate_key(key)
            await self.pilot.pause(0.01)
        raise AssertionError(f"{key} was pressed 200 times; the screen is\n{self.text}")

    async def type(self, text: str) -> None:
        self.app.input.insert(text)
        await self.pilot.pause()

    async def wait_until(self, holds: Callable[[], object]) -> None:
        with anyio.fail_after(TIMEOUT):
            while not holds():
                await self.pilot.pause(0.01)

    async def wait_for_text(self, *texts: str) -> None:
        try:
            await self.wait_until(lambda: all(text in self.text for text in texts))
        except TimeoutError:
            raise AssertionError(f"{texts!r} was not seen; the screen is\n{self.text}") from None

    async def wait_idle(self) -> None:
        await self.chat.wait_idle()
        await self.wait_until(lambda: not self.conversation.footer_state.activity and self.app.input.display)


@asynccontextmanager
async def open_app(
    place: Path,
    *steps: Any,
    size: tuple[int, int] = (80, 24),
    theme: ChatTheme | None = None,
    window: int | None = None,
    **script: Any,
) -> AsyncIterator[AppHarness]:
    """Opens the app with a scripted model in its own folder."""
    folder = place / "harbor"
    folder.mkdir(exist_ok=True)
    (place / "story.json").write_text(json.dumps({"steps": list(steps) or ["Aye."], "repeat": True, **script}))
    flags = {
        "model": f"script:{place / 'story.json'}",
        "store": f"sqlite:///{place / 'sessions.db'}",
        "window": window,
    }
    settings = load_settings(folder, flags, {"HOME": str(place)}, trust=True)
    conversation = Conversation()
    app = ChatTerminal(conversation, theme or ChatTheme())
    async with open_chat(
        settings, folder=folder, on_event=conversation.handle_event, approve=conversation.pending_approval.ask
    ) as chat:
        conversation.chat = chat
        async with app.run_test(size=size) as pilot:
            yield AppHarness(app, pilot)
