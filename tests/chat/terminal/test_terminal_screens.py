"""Whole screens at three sizes, compared with the texts in `screens/`.

    HOLDFAST_SCREENS=write .venv/bin/python -m pytest tests/chat/terminal/test_terminal_screens.py

writes them anew; with the name of a folder instead of `write`, each screen is also saved there as an SVG, on a dark
and on a light background.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from app_harness import AppHarness, open_app
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI
from test_terminal_picker import fill_store

from holdfast.agent.events import RunStarted, TextDelta
from holdfast.models import ModelCall, Reply

pytestmark = pytest.mark.anyio
SCREENS = Path(__file__).parent / "screens"
WRITE = os.environ.get("HOLDFAST_SCREENS", "")
SIZES = ((40, 12), (80, 24), (120, 40))
SCRIPT = "\n".join(f"install -m 644 charts/{number:02}.chart /srv/charts" for number in range(41)) + "\nrm -r drafts"
TIDES = [f"{hour:02}:00 {'high' if hour % 12 < 6 else 'low'} water" for hour in range(24)]
EDITED = [line.replace("06:00 low", "06:30 slack") for line in TIDES if "07:00" not in line]
MARKDOWN = """\
# Berths
Two requests could both pass the check before either of them wrote:

1. `hold` asks whether the berth is free
2. another request takes it
   - the first one does not notice

## What changed
| Berth | Boat | Note |
| --- | --- | --- |
| 7 | Petrel | moved to the north pier, because the old one is repaired until June |
| 12 | Tern | |

```python
def hold(self, berth: int, boat: str) -> None:
    if not self.db.insert_if_free(berth, boat):  # one statement
        raise Taken(f"berth {berth}")
```

> All 36 tests pass.

Now the **harbor mas"""
SUMMARY = "## Goal\n- Berths are given to one boat each.\n" * 12


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"text": "I do it now.", "calls": [{"name": name, "arguments": arguments}]}


async def ask(harness: AppHarness) -> None:
    await harness.type("Publish the tides.")
    await harness.press("enter")
    await harness.wait_for_text("May the agent use")


async def resume(harness: AppHarness) -> None:
    sessions = harness.chat.sessions
    read = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "berths.txt"}'}}
    record = await sessions.create(format="openai-chat", metadata={"folder": str(harness.chat.folder.root)})
    summary = "This session is being continued from a previous conversation that ran out of context. They moored."
    messages = [
        {"role": "user", "content": summary},
        {"role": "user", "content": "Last night two boats got the same berth. Find out why, and fix it."},
        {"role": "assistant", "content": "I look where berths are given away.", "tool_calls": [read]},
        {"role": "tool", "tool_call_id": "c1", "content": "berth 1: free\nberth 2: taken"},
        {"role": "assistant", "content": "The check and the insert are **two** statements."},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": MARKDOWN.partition("## What")[0]},
    ]
    await sessions.append(record.id, messages)
    await harness.chat.switch(record.id)
    await harness.wait_for_text("does not notice")


async def pick(harness: AppHarness) -> None:
    await fill_store(f"sqlite:///{harness.chat.folder.root.parent / 'sessions.db'}", harness.chat.folder.root, 50)
    await harness.type("/sessions")
    await harness.press("enter")
    await harness.wait_for_text("Sessions  50")


class EndlessSummarizer:
    """Writes for as long as the picture is taken."""

    name = "scripted"

    async def __call__(self, model_call: ModelCall, on_delta: Callable[[str], None]) -> Reply:
        on_delta(SUMMARY)
        await asyncio.Event().wait()
        raise AssertionError


async def compact(harness: AppHarness) -> None:
    harness.chat.agent.keeper.summarizer = EndlessSummarizer()
    harness.chat.configure(auto=False)
    for prompt in ("How many berths are free?", "And tomorrow?", "And in June?"):
        await harness.type(prompt)
        await harness.press("enter")
        await harness.wait_idle()
    await harness.type("/compact")
    await harness.press("enter")
    await harness.wait_for_text("characters")
    await harness.type("Give berth 12 to the Petrel.")
    await harness.press("enter")
    await harness.wait_for_text("queued: Give")


async def stream(harness: AppHarness) -> None:
    session = harness.chat.record.id
    harness.conversation.handle_event(RunStarted(session, "Why did two boats get the same berth?"))
    for start in range(0, len(MARKDOWN), 40):
        harness.conversation.handle_event(TextDelta(session, "text", MARKDOWN[start : start + 40]))
    await harness.wait_for_text("Now the **harbor mas")


COMMAND, OVERWRITE = call("run_command", command=SCRIPT), call("write_file", path="tides.txt", content="none today\n")
EDIT = call("edit_file", path="tides.txt", old="\n".join(TIDES[6:8]), new=EDITED[6])
SCENES: dict[str, tuple[Callable[[AppHarness], Awaitable[None]], Sequence[Any]]] = {
    "approval-of-a-command": (ask, [COMMAND]),
    "approval-of-an-overwrite": (ask, [OVERWRITE]),
    "approval-of-an-edit": (ask, [EDIT]),
    "resumed": (resume, []),
    "picker": (pick, []),
    "compacting": (compact, ["There are **400** berths, all of them free. " * 60]),
    "markdown": (stream, []),
}


@pytest.mark.parametrize("name", SCENES)
async def test_screen_is_as_stored(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, steps = SCENES[name]
    numbers = itertools.count(0x7A11)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    (tmp_path / "harbor").mkdir()
    (tmp_path / "harbor" / "tides.txt").write_text("\n".join(TIDES) + "\n")
    async with open_app(tmp_path, *steps, size=SIZES[1], window=8_000) as harness:
        await scene(harness)
        for size in SIZES:
            await harness.pilot.resize_terminal(*size)
            compare(f"{name}-{size[0]}x{size[1]}", await stable_text(harness), harness)


async def stable_text(harness: AppHarness) -> str:
    """Waits until a redraw changes nothing but times; returns the screen with these fixed."""
    before = ""
    while (text := normalize(harness.text)) != before:
        before = text
        await harness.pilot.pause(0.12)
    return text


def normalize(text: str) -> str:
    """Fixes times, and token counts, which depend on the length of the folder's path."""
    text = re.sub(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "⠋", re.sub(r"\b\d s\b", "0 s", text))
    text = re.sub(r"[━─]{10}(?=  \S+/8k)", "─" * 10, text)
    return re.sub(r"[\d.]+(?=k?/8k )|(?<=/8k )\d+|(?<=compacting )[\d.]+", lambda found: "0" * len(found[0]), text)


def compare(name: str, text: str, harness: AppHarness) -> None:
    file = SCREENS / f"{name}.txt"
    if WRITE:
        file.write_text(f"{text}\n", encoding="utf-8")
        if WRITE != "write":
            save_pictures(Path(WRITE) / name, harness)
    same = text == file.read_text(encoding="utf-8").removesuffix("\n")
    assert same, f"{name} has changed (how to write it anew: {__file__}); the screen is\n{text}"


def save_pictures(file: Path, harness: AppHarness) -> None:
    for suffix, theme in (("dark", DIMMED_MONOKAI), ("light", DEFAULT_TERMINAL_THEME)):
        width, height = harness.app.size
        console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, record=True)
        console.print(harness.app.screen._compositor.render_update(full=True))
        svg = console.export_svg(title=file.name, theme=theme).replace("<text ", '<text xml:space="preserve" ')
        file.with_name(f"{file.name}-{suffix}.svg").write_text(svg)
