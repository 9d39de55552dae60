"""Regenerate the pictures of docs/chat.md from a real run of the chat with a scripted model.

The agent works in a small generated project; its window is so small that the conversation is compacted. Run it after
a change to the chat's screen: `python scripts/record_chat.py`.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from capture import DOCS, THEME, clean_svg
from holdfast.chat.open_chat import open_chat
from holdfast.chat.terminal.app import ChatTerminal
from holdfast.chat.terminal.conversation import Conversation
from holdfast.chat.terminal.theme import ChatTheme
from holdfast.models import ModelCall, Reply
from holdfast.settings import load_settings

SIZE = (84, 32)
WINDOW = 2_900
TIMEOUT = 10.0
BOOKINGS = '''\
"""Berths and who holds them."""

class Bookings:
    def __init__(self, db):
        self.db = db

    def hold(self, berth, boat):
        if self.db.taken(berth):
            raise Taken(berth)
        self.db.insert(berth, boat)
'''
TEST = """\
from concurrent.futures import ThreadPoolExecutor

def test_two_boats_never_get_one_berth(bookings):
    with ThreadPoolExecutor() as pool:
        got = list(pool.map(bookings.try_hold, ["Petrel", "Tern"]))
    assert got.count(True) == 1
"""
CHECK = """\
import time
for number in range(36): print(f"tests/test_bookings.py::test_{number:02} PASSED")
print("36 passed in 0.41s")
"""
SUMMARY = """\
## Completed Work
| File | Action | Description |
| --- | --- | --- |
| tidebook/bookings.py | edited | check and insert are one statement in Bookings.hold |

## Key Technical Decisions
- The database decides who was first: insert_if_free, no lock in Python.

## Current State
- Working on: nothing
- Last completed: 36 tests pass

## Pending Work
- [ ] Tell the harbor master
"""
FIXED = """\
Two requests could both pass the check before either of them wrote. Now the database decides:

- `Bookings.hold` uses **one statement**, `insert_if_free`.
- The second boat gets `Taken`, as before.

All 36 tests pass. Nothing else changed.
"""
WHY = """\
Because a lock in Python holds in **one process** only, and the harbor runs four of them. The database sees all.
"""
STORY = [
    {
        "text": "I look where berths are given away.",
        "calls": [
            {"name": "search_files", "arguments": {"text": "def hold"}},
            {"name": "read_file", "arguments": {"path": "tidebook/bookings.py"}},
            {"name": "read_file", "arguments": {"path": "tests/test_bookings.py"}},
        ],
        "usage": {"input": 960, "output": 64},
    },
    {
        "text": "The check and the insert are two statements: between them another boat slips in.",
        "calls": [
            {
                "name": "edit_file",
                "arguments": {
                    "path": "tidebook/bookings.py",
                    "old": BOOKINGS[BOOKINGS.index("        if self") :],
                    "new": "        if not self.db.insert_if_free(berth, boat):\n            raise Taken(berth)\n",
                },
            }
        ],
        "usage": {"input": 1_090, "output": 118},
    },
    {
        "calls": [{"name": "run_command", "arguments": {"command": "python check.py"}}],
        "usage": {"input": 1_240, "output": 22},
    },
    {"text": FIXED, "usage": {"input": 1_880, "output": 84}},
    {"text": WHY, "usage": {"input": 1_290, "output": 31}},
]


class Summarizer:
    """Streams its summary and pauses in the middle until the picture is taken."""

    name = "scripted"

    def __init__(self) -> None:
        self.resume = asyncio.Event()

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Reply:
        for start in range(0, len(SUMMARY), 64):
            on_delta(SUMMARY[start : start + 64])
            if start == 256:
                await self.resume.wait()
        return Reply(SUMMARY, model=self.name)


class Recording:
    """Types into a chat and saves pictures of it."""

    def __init__(self, app: ChatTerminal, pilot: Any, size: tuple[int, int] = SIZE) -> None:
        self._app, self._pilot, self._size = app, pilot, size

    async def type(self, text: str) -> None:
        self._app.input.insert(text)
        await self._pilot.press("enter")

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def wait_for_text(self, text: str) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                while text not in self._lines():
                    await self._pilot.pause(0.02)
        except TimeoutError:
            raise SystemExit(f"{text!r} did not appear; the screen is\n{self._lines()}") from None
        await self._pilot.pause(0.3)

    def render(self, name: str, theme: TerminalTheme = THEME) -> str:
        """Returns one picture, without web fonts and with leading blanks turned into positions."""
        width, height = self._size
        console = Console(
            width=width,
            height=height,
            file=io.StringIO(),
            force_terminal=True,
            color_system="truecolor",
            record=True,
            legacy_windows=False,
            safe_box=False,
        )
        console.print(self._app.screen._compositor.render_update(full=True))
        return clean_svg(console.export_svg(title="holdfast chat", theme=theme, unique_id=name))

    def take(self, name: str) -> None:
        """Saves one picture for the documentation."""
        (DOCS / f"{name}.svg").write_text(self.render(name), encoding="utf-8")
        print(f"{name}.svg written")

    def _lines(self) -> str:
        lines = self._app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in line) for line in lines)


def create_project(root: Path) -> Path:
    """Creates a small project with a bug for the agent to fix."""
    folder = root / "harbor"
    (folder / "tidebook").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "tidebook" / "bookings.py").write_text(BOOKINGS)
    (folder / "tests" / "test_bookings.py").write_text(TEST)
    (folder / "check.py").write_text(CHECK)
    (root / "demo.json").write_text(json.dumps({"steps": STORY, "delay": 0.01}))
    return folder


async def record(root: Path) -> None:
    folder = create_project(root)
    flags = {"model": f"script:{root / 'demo.json'}", "store": f"sqlite:///{root / 'sessions.db'}", "window": WINDOW}
    conversation = Conversation()
    app = ChatTerminal(conversation, ChatTheme())
    settings = load_settings(folder, flags, {"HOME": str(root)}, trust=True)
    async with open_chat(
        settings, folder=folder, on_event=conversation.handle_event, approve=conversation.pending_approval.ask
    ) as chat:
        conversation.chat = chat
        chat.agent.keeper.summarizer = summarizer = Summarizer()
        async with app.run_test(size=SIZE) as pilot:
            recording = Recording(app, pilot)
            await recording.wait_for_text("/help")
            await recording.type("Last night two boats got the same berth. Find out why, and fix it.")
            await recording.wait_for_text("a always edit_file")
            recording.take("chat-question")
            await recording.press("y")
            await recording.wait_for_text("$ python check.py")
            await recording.wait_for_text("y yes")
            await recording.press("y")
            await recording.wait_for_text("characters")
            await recording.type("Why not a lock in Python?")
            await recording.wait_for_text("queued")
            recording.take("chat-compacting")
            summarizer.resume.set()
            await recording.wait_for_text("The database sees all.")
            recording.take("chat")
            await recording.type("/rewind")
            await recording.press("end")
            await recording.wait_for_text("changed since: bookings.py")
            recording.take("chat-rewind")


def use_deterministic_ids() -> None:
    """Makes ids deterministic, so that pictures change only when the screen does."""
    numbers = itertools.count(0x7A11)
    vars(secrets)["token_hex"] = lambda size: f"{next(numbers):0{2 * size}x}"


def main() -> int:
    use_deterministic_ids()
    with tempfile.TemporaryDirectory() as root:
        os.environ["HOME"] = root
        asyncio.run(record(Path(root)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
