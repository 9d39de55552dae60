"""Test harness: `holdfast chat` in a real terminal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from terminal_screens import Screen, default_screen, process_ended, wait_until

from holdfast import SessionService
from holdfast.context.events import Event, try_message_in
from holdfast.settings import trusted_folders
from holdfast.stores import open_store

READY = "Ask, or /help"
_CONTINUE_HINT = re.compile(r"holdfast chat\s+--session\s+(\w+)")


class TerminalChat:
    """One chat with its own store, settings and folder."""

    def __init__(self, place: Path, screen: Screen | None = None) -> None:
        self.place = place
        self.folder = place / "harbor"
        self.folder.mkdir(exist_ok=True)
        self.screen = screen or default_screen()
        self.store = f"sqlite:///{place / 'sessions.db'}"

    def script(self, *steps: Any, **more: Any) -> str:
        """Writes a script; returns the name of the model that plays it."""
        file = self.place / "story.json"
        file.write_text(json.dumps({"steps": list(steps), **more}))
        return f"script:{file}"

    def start(
        self,
        model: str,
        *words: str,
        size: tuple[int, int] = (80, 24),
        ready: str = "/help",
        program: Sequence[str] = ("-m", "holdfast"),
        **environ: str,
    ) -> TerminalChat:
        command = [sys.executable, *program, "chat", "--model", model, "--store", self.store]
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.place),
            "XDG_CONFIG_HOME": str(self.place / "config"),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "none",
        }
        trusted_folders(own).decide(self.folder, True)
        self.screen.start([*command, "--folder", str(self.folder), *words], own | environ, size)
        self.wait_for_text(ready, " %")
        return self

    # -- typing ----------------------------------------------------------------------------------------

    def send(self, text: str) -> TerminalChat:
        self.screen.type(text)
        self.screen.press("Enter")
        return self

    def press(self, *keys: str) -> TerminalChat:
        self.screen.press(*keys)
        return self

    # -- screen ----------------------------------------------------------------------------------------

    def wait_for_text(self, *texts: str) -> str:
        """Waits until all texts are on the screen, ignoring whitespace differences; returns the screen."""
        return wait_until(self.screen, lambda shown: all(text in _collapse(shown) for text in texts), f"{texts!r}")

    def wait_without_text(self, *texts: str) -> str:
        return wait_until(
            self.screen, lambda shown: not any(text in _collapse(shown) for text in texts), f"no {texts!r}"
        )

    def wait_idle(self) -> str:
        """Waits until nothing runs and the input is empty."""
        return wait_until(self.screen, lambda shown: READY in shown and not _BUSY.search(shown), "an idle chat")

    @property
    def footer(self) -> str:
        return self.screen.text().rpartition("\n")[2]

    # -- exit ------------------------------------------------------------------------------------------

    def quit(self, *keys: str) -> str:
        """Quits with these keys; returns the id of the session to continue."""
        self.screen.press(*keys)
        shown = self.wait_for_text("--session")
        assert process_ended(self.screen.pid)
        found = _CONTINUE_HINT.search(_collapse(shown))
        assert found, shown
        return found[1]

    def kill(self) -> None:
        os.kill(self.screen.pid, signal.SIGKILL)
        assert process_ended(self.screen.pid)

    # -- stored session --------------------------------------------------------------------------------

    def events(self) -> list[Event]:
        """Returns the events of the newest session, after verifying it."""
        return asyncio.run(self._events())

    async def _events(self) -> list[Event]:
        async with SessionService(open_store(self.store)) as sessions:
            newest = (await sessions.list(limit=1))[0]
            assert await sessions.verify(newest.id) == []
            return await sessions.events(newest.id)

    def messages(self) -> list[tuple[str, str]]:
        """Returns roles and texts of the newest session, in order."""
        messages = map(try_message_in, self.events())
        return [(message.role, message.text) for message in messages if message is not None]


_BUSY = re.compile(r"(thinking|writing|working|compacting|waiting for you|\w+) \d+ s ")


def _collapse(shown: str) -> str:
    return " ".join(shown.split())
