"""A chat in a real terminal: started, typed at, looked at."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from screens import Screen, ended, until, usual

from holdfast import SessionService
from holdfast.events import Event
from holdfast.stores import open_store
from holdfast.stores.said import message_of

READY = "Ask, or /help"
_GOING_ON = re.compile(r"holdfast chat\s+--session\s+(\w+)")


class Talk:
    """One chat with its own store, settings and folder."""

    def __init__(self, place: Path, screen: Screen | None = None) -> None:
        self.place = place
        self.folder = place / "harbor"
        self.folder.mkdir(exist_ok=True)
        self.screen = screen or usual()
        self.store = f"sqlite:///{place / 'sessions.db'}"

    def script(self, *steps: Any, **more: Any) -> str:
        """A model that plays a script, by its name."""
        file = self.place / "story.json"
        file.write_text(json.dumps({"steps": list(steps), **more}))
        return f"script:{file}"

    def start(self, model: str, *words: str, size: tuple[int, int] = (80, 24), **environ: str) -> Talk:
        command = [sys.executable, "-m", "holdfast", "chat", "--model", model, "--store", self.store]
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.place),
            "XDG_CONFIG_HOME": str(self.place / "config"),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "none",
        }
        self.screen.start([*command, "--folder", str(self.folder), *words], own | environ, size)
        self.sees("/help", " %")
        return self

    # -- typing ----------------------------------------------------------------------------------------

    def says(self, text: str) -> Talk:
        self.screen.type(text)
        self.screen.press("Enter")
        return self

    def press(self, *keys: str) -> Talk:
        self.screen.press(*keys)
        return self

    # -- looking ---------------------------------------------------------------------------------------

    def sees(self, *texts: str) -> str:
        """All of these are on the screen, sooner or later; however many blanks and line ends are between words."""
        return until(self.screen, lambda shown: all(text in _flat(shown) for text in texts), f"{texts!r}")

    def sees_no(self, *texts: str) -> str:
        return until(self.screen, lambda shown: not any(text in _flat(shown) for text in texts), f"no {texts!r}")

    def rests(self) -> str:
        """Nothing runs, and the input is empty."""
        return until(self.screen, lambda shown: READY in shown and not _BUSY.search(shown), "an idle chat")

    @property
    def footer(self) -> str:
        return self.screen.text().rpartition("\n")[2]

    # -- the end ---------------------------------------------------------------------------------------

    def leaves(self, *keys: str) -> str:
        """Leave by these keys; the id of the session that can be gone on with."""
        self.screen.press(*keys)
        shown = self.sees("--session")
        assert ended(self.screen.pid)
        found = _GOING_ON.search(_flat(shown))
        assert found, shown
        return found[1]

    def kill(self) -> None:
        os.kill(self.screen.pid, signal.SIGKILL)
        assert ended(self.screen.pid)

    # -- what was stored -------------------------------------------------------------------------------

    def events(self) -> list[Event]:
        """Of the newest session, which verifies."""
        return asyncio.run(self._events())

    async def _events(self) -> list[Event]:
        async with SessionService(open_store(self.store)) as sessions:
            newest = (await sessions.list(limit=1))[0]
            assert await sessions.verify(newest.id) == []
            return await sessions.events(newest.id)

    def said(self) -> list[tuple[str, str]]:
        """Roles and texts of the newest session, in order."""
        messages = map(message_of, self.events())
        return [(message.role, message.text) for message in messages if message is not None]


_BUSY = re.compile(r"(thinking|writing|working|compacting|waiting for you|\w+) \d+ s ")


def _flat(shown: str) -> str:
    return " ".join(shown.split())
