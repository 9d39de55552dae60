"""An automatic compaction that was undone: when it is due again, the user says what is to happen, and it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from app_harness import AppHarness, open_app

from holdfast.chat.terminal.entries import PromptEntry

pytestmark = pytest.mark.anyio
TIDES = "The tide flows in the morning and ebbs in the evening, as it says in the table. " * 45
SUMMARY = "## Completed Work\n- The tides were read."


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@asynccontextmanager
async def undone(place: Path) -> AsyncIterator[AppHarness]:
    """A chat that was compacted and undone, and whose user now sends a message."""
    async with open_app(place, f"{TIDES}Aye.", window=4_000, summary=SUMMARY, size=(100, 40)) as harness:
        for prompt in ("one", "two"):
            await send(harness, prompt)
            await harness.wait_idle()
        await harness.wait_until(lambda: "── compacted" in harness.text)
        await send(harness, "/undo")
        await harness.wait_for_text("The last compaction is undone")
        await send(harness, "three")
        await harness.wait_for_text("The compaction that you undid is due again")
        yield harness


async def send(harness: AppHarness, text: str) -> None:
    await harness.type(text)
    await harness.press("enter")


def sent(harness: AppHarness) -> bool:
    entries = harness.conversation.transcript.entries
    return any(isinstance(entry, PromptEntry) and entry.text == "three" for entry in entries)


async def compactions(harness: AppHarness) -> int:
    return len(await harness.chat.sessions.events(harness.chat.record.id, kind="compaction"))


async def answered(harness: AppHarness) -> list[str]:
    return [str(message["content"]) for message in await harness.chat.sessions.context(harness.chat.record.id)]


async def test_off_for_this_session_sends_the_message_and_compacts_no_more(tmp_path: Path) -> None:
    async with undone(tmp_path) as harness:
        before = await compactions(harness)
        await harness.press("enter")
        await harness.wait_until(lambda: sent(harness))
        await harness.wait_for_text("auto-compact off")
        await harness.wait_idle()
        assert await compactions(harness) == before and "three" in str(await answered(harness))
        await harness.chat.new()
        assert harness.chat.agent.keeper.auto
        await send(harness, "/autocompact on")


async def test_until_full_defers_the_compaction(tmp_path: Path) -> None:
    async with undone(tmp_path) as harness:
        before = await compactions(harness)
        await harness.press("down", "enter")
        await harness.wait_until(lambda: sent(harness))
        assert harness.chat.agent.keeper.until_full and harness.chat.agent.keeper.auto
        await harness.wait_idle()
        events = await harness.chat.sessions.events(harness.chat.record.id)
        asked = next(place for place, event in enumerate(events) if "'three'" in str(event.body))
        assert events[asked + 1].kind == "message", "it was answered without a compaction"
        assert await compactions(harness) > before, "then the reply has filled the window"


async def test_again_but_keep_compacts_with_the_words_then_sends_the_message(tmp_path: Path) -> None:
    async with undone(tmp_path) as harness:
        before = await compactions(harness)
        await harness.press("down", "down", "enter")
        await harness.wait_until(lambda: harness.app.input.text == "/compact keep ")
        await send(harness, "the table")
        await harness.wait_until(lambda: sent(harness))
        await harness.wait_idle()
        assert await compactions(harness) > before
        assert "three" in str((await answered(harness))[-2:])


async def test_again_compacts_as_before(tmp_path: Path) -> None:
    async with undone(tmp_path) as harness:
        before = await compactions(harness)
        await harness.press("end", "enter")
        await harness.wait_until(lambda: sent(harness))
        await harness.wait_idle()
        assert await compactions(harness) > before


async def test_escape_gives_the_message_back(tmp_path: Path) -> None:
    async with undone(tmp_path) as harness:
        before = await compactions(harness)
        await harness.press("escape")
        await harness.wait_until(lambda: harness.app.input.text == "three")
        assert await compactions(harness) == before and "three" not in str(await answered(harness))


async def test_without_an_undo_nothing_is_asked(tmp_path: Path) -> None:
    async with open_app(tmp_path, f"{TIDES}Aye.", window=3_500, summary=SUMMARY) as harness:
        for prompt in ("one", "two", "three"):
            await send(harness, prompt)
            await harness.wait_until(lambda: not harness.app.picker.display)
            await harness.wait_idle()
        assert await compactions(harness) > 0
