"""One size and one window of a session on every page and in every command; Codex's window as it recorded it (H8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from web_harness import RunningInspector, run_inspector, talk

from holdfast import SessionService, SQLiteStore
from holdfast.agent.tools import WorkingFolder, approve_all
from holdfast.chat import Chat
from holdfast.chat.commands.compaction import CONTEXT
from holdfast.cli.inspect import build_context_report
from holdfast.cli.sources import open_source
from holdfast.compaction.presets import preset
from holdfast.models import ScriptedAgentModel
from holdfast.transcripts.importing import import_transcript
from real_sessions import each_session, transcript

pytestmark = pytest.mark.anyio


def inspected(path: Path) -> tuple[int, int]:
    report = build_context_report(open_source(str(path)), model=None, estimator=None, format=None)
    return report.tokens, report.window.tokens


async def shown(running: RunningInspector, session: str) -> dict[str, Any]:
    """Returns the size wherever it is shown; the headline by its first number."""
    (listed,) = (await running.json("/api/sessions"))["sessions"]
    path, size = f"/api{listed['path']}", listed["size"]
    curve, saw = await running.json(f"{path}/sizes"), await running.json(f"{path}/at/{listed['version']}")
    return {
        "list": size["tokens"],
        "headline": int(listed["headline"].split()[0].replace(",", "")),
        "page": int((await running.json(path))["headline"].split()[0].replace(",", "")),
        "counted": curve["sizes"][-1],
        "reported": curve["reported"][-1],
        "cost": (await running.json(f"{path}/cost"))["tokens"],
        "saw": saw["tokens"],
    }


@each_session
async def test_h8_every_page_and_command_shows_one_size_and_one_window(path: Path, tmp_path: Path) -> None:
    async with SessionService(SQLiteStore(tmp_path / "s.db")) as sessions:
        record = await import_transcript(sessions, transcript(path))
    async with run_inspector(SQLiteStore(tmp_path / "s.db")) as running:
        size, recorded = await running.sessions.size(record.id), transcript(path).window
        assert set((await shown(running, record.id)).values()) == {size.tokens}
        assert await anyio.to_thread.run_sync(inspected, tmp_path / "s.db") == (size.tokens, size.window)
        if recorded is not None:
            assert (size.window, size.window_basis) == (recorded, "recorded")


async def test_h8_context_command_of_the_chat_shows_the_size_of_the_pages(tmp_path: Path) -> None:
    async with run_inspector(SQLiteStore(tmp_path / "s.db")) as running:
        await talk(running.sessions, "s", 6, model="claude-sonnet-4-5")
        chat = Chat(
            running.sessions,
            ScriptedAgentModel("Berth 7."),
            folder=WorkingFolder(tmp_path),
            preset=preset("holdfast"),
            approve=approve_all,
            listener=lambda event: None,
            window=200_000,
        )
        async with chat.running("s"):
            text = (await CONTEXT.run(chat, "")).text
        tokens = (await running.sessions.size("s")).tokens
        assert f"{tokens:,} tokens" in text
        assert set((await shown(running, "s")).values()) == {tokens}


@pytest.mark.parametrize(
    ("tokens", "state", "words"),
    [
        (50_000, "fine", "compacts in 106k, at 156k"),
        (140_000, "soon", "compacts in 16k, at 156k"),
        (170_000, "over", "14k over 156k, where its policy compacts"),
        (190_000, "over", "6.4k over what leaves room for a reply: compact it"),
    ],
)
async def test_state_of_a_session_in_words(tokens: int, state: str, words: str) -> None:
    async with run_inspector() as running:
        await running.sessions.create(id="s", format="openai-chat", model="claude-sonnet-4-5")
        await running.sessions.append("s", {"role": "user", "content": "Which ships are here?"})
        usage = {"input": tokens - 10, "output": 10}
        await running.sessions.append("s", {"role": "assistant", "content": "Two."}, usage=usage)
        one = await running.json("/api/s/s")
        assert one["state"] == state and words in one["headline"]
        assert one["headline"].startswith(f"{tokens:,} of 200,000 tokens, reported with #2")
