"""The list of sessions: drawn at several sizes, filtered, chosen from and left by keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from app_harness import AppHarness, open_app
from terminal_harness import TerminalChat

from holdfast import SessionService
from holdfast.chat.commands import Choice, Choices
from holdfast.stores import open_store

HOSTILE = "Paint\x1b[2J the \x07buoys \u202egnorw\x1b]0;title\x07"


async def fill_store(store: str, folder: Path, count: int) -> None:
    """Adds sessions with one message each; every tenth belongs to this folder."""
    async with SessionService(open_store(store)) as sessions:
        for number in range(count):
            place = str(folder) if number % 10 == 0 else "/elsewhere"
            record = await sessions.create(metadata={"folder": place})
            text = HOSTILE if number == 7 else f"Berth {number} is to be measured, with every bollard on it"
            await sessions.append(record.id, {"role": "user", "content": text})


@pytest.mark.anyio
@pytest.mark.parametrize("size", [(40, 12), (80, 24), (120, 40)])
async def test_list_of_sessions_fits_and_filters_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async with open_app(tmp_path, size=size) as harness:
        await fill_store(f"sqlite:///{tmp_path / 'sessions.db'}", tmp_path / "harbor", 50)
        await harness.type("/sessions")
        await harness.press("enter")
        await harness.wait_for_text("Sessions  50", "❯ Berth 40 is", "Enter choose", "Esc back")
        rows = harness.text.split("\n")
        assert len(rows) == size[1] and all(len(row) <= size[0] for row in rows)
        assert rows[1].endswith(" now") and "1 event · " in rows[2]
        await harness.press("end", "pageup", "pagedown")
        await harness.wait_for_text("❯ Berth 1 is")
        if size[1] == 12:
            await check_filter(harness)


async def check_filter(harness: AppHarness) -> None:
    await harness.press(*"BUOY")
    await harness.wait_for_text("1 of 50  BUOY", "❯ Paint the buoys gnorw")
    await harness.press("z")
    await harness.wait_for_text("0 of 50", "Nothing matches")
    await harness.press("enter", "ctrl+u", *"else", "space", *"31")
    await harness.wait_for_text(" of 50  else 31", "❯ Berth 31 is")
    old = harness.chat.record.id
    await harness.press("escape")
    await harness.wait_for_text("Ask, or /help")
    assert harness.chat.record.id == old and harness.app.focused is harness.app.input
    await harness.type("/sessions")
    await harness.press("enter")
    await harness.wait_for_text("Sessions  50")
    await harness.press(*"31", "enter")
    await harness.wait_for_text("It worked in /elsewhere;")
    assert harness.chat.record.id != old and not harness.app.picker.display


def test_resume_chooses_session_in_terminal(terminal: Callable[..., TerminalChat]) -> None:
    """An empty store says so; then one of two sessions is chosen by typing and Enter."""
    chat = terminal()
    model = chat.script("Aye.", repeat=True)
    chat.start(model, "--resume").wait_for_text("There are no sessions yet: this one is the first.")
    chat.send("Mend the crane.").wait_for_text("Aye.")
    crane = chat.quit("C-d")
    assert len(crane) < 10
    asyncio.run(fill_store(chat.store, chat.folder, 1))
    chat = terminal()
    chat.start(model, "--resume", size=(60, 16), ready="Sessions")
    chat.wait_for_text("Sessions 2", "❯ Berth 0 is", "Mend the crane.", crane)
    chat.press("Down").wait_for_text("❯ Mend the crane.")
    chat.press("Up").wait_for_text("❯ Berth 0 is")
    chat.screen.type("crane")
    assert "Berth" not in chat.wait_for_text("1 of 2 crane")
    chat.press("Enter").wait_for_text("Now in session", "❯ Mend the crane.", "Aye.")
    assert chat.quit("C-d") == crane


@pytest.mark.anyio
async def test_filter_finds_sessions_by_what_they_contain(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        await fill_store(f"sqlite:///{tmp_path / 'sessions.db'}", tmp_path / "harbor", 12)
        async with SessionService(open_store(f"sqlite:///{tmp_path / 'sessions.db'}")) as sessions:
            record = (await sessions.list())[3]
            await sessions.append(record.id, {"role": "assistant", "content": "The sluice is 3 m deep."})
        await harness.type("/sessions")
        await harness.press("enter")
        await harness.wait_for_text("Sessions  12")
        for letter in "sluice":
            await harness.press(letter)
        await harness.wait_for_text("1 of 12  sluice", "❯ ")
        await harness.press("enter")
        await harness.wait_until(lambda: harness.chat.record.id == record.id)


@pytest.mark.anyio
async def test_preview_of_the_selected_row_is_below_the_list(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        items = [Choice(str(number), f"step {number}", preview=f"all of {number}\n\x1b[2Jend") for number in range(40)]
        answer = asyncio.ensure_future(harness.app._choose(Choices("Rewind to", items)))
        await harness.wait_for_text("❯ step 0", "  all of 0", "  end", "Enter choose")
        await harness.press("down")
        await harness.wait_for_text("❯ step 1", "  all of 1")
        await harness.pilot.resize_terminal(80, 10)
        await harness.wait_until(lambda: "all of" not in harness.text)
        await harness.press("escape")
        assert await answer is None
