"""Two chats on one session see each other's messages as they come, and who is in a turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from app_harness import AppHarness, open_app

from holdfast import SessionService
from holdfast.chat.terminal.history import HistoryEntry
from holdfast.stores import open_store

pytestmark = pytest.mark.anyio


def foreign(harness: AppHarness) -> list[HistoryEntry]:
    entries = harness.conversation.transcript.entries
    return [entry for entry in entries if isinstance(entry, HistoryEntry) and "another chat" in entry._label]


async def test_messages_of_another_chat_are_shown_as_they_come_and_own_ones_once(tmp_path: Path) -> None:
    async with (
        open_app(tmp_path, "Aye.") as harness,
        SessionService(open_store(f"sqlite:///{tmp_path / 'sessions.db'}")) as elsewhere,
    ):
        await harness.wait_for_text("/help")
        await harness.type("Mine")
        await harness.press("enter")
        await harness.wait_idle()
        session = harness.chat.record.id
        async with elsewhere.announce_turn(session):
            await elsewhere.append(session, {"role": "user", "content": "Theirs"})
            await harness.wait_for_text("❯ Theirs  #3  another chat", "another chat is in a turn")
            await elsewhere.append(session, {"role": "assistant", "content": "Their **answer**"})
            await harness.wait_for_text("Their answer  #4  another chat")
        await harness.wait_until(lambda: "is in a turn" not in harness.text)
        await harness.type("Mine again")
        await harness.press("enter")
        await harness.wait_idle()
        await harness.conversation.show_others()
        assert len(foreign(harness)) == 2 and harness.text.count("Mine again") == 1
        context = [message["content"] for message in await harness.chat.sessions.context(session)]
        assert context == ["Mine", "Aye.", "Theirs", "Their **answer**", "Mine again", "Aye."]


async def test_own_turns_are_announced_to_others_and_not_to_oneself(tmp_path: Path) -> None:
    async with (
        open_app(tmp_path, {"calls": [{"name": "run_command", "arguments": {"command": "seq 4"}}]}, "Four.") as harness,
        SessionService(open_store(f"sqlite:///{tmp_path / 'sessions.db'}")) as elsewhere,
    ):
        await harness.type("Count")
        await harness.press("enter")
        await harness.wait_for_text("May the agent use run_command?")
        session = harness.chat.record.id
        assert (await elsewhere.others(session, 0))[2]
        await harness.conversation.show_others()
        assert not harness.conversation.footer_state.other
        harness.conversation.pending_approval.answer("yes")
        await harness.wait_for_text("Four.")
        await harness.wait_idle()
        assert not (await elsewhere.others(session, 0))[2]


async def test_what_was_there_before_is_not_shown_again(tmp_path: Path) -> None:
    async with SessionService(open_store(f"sqlite:///{tmp_path / 'sessions.db'}")) as elsewhere:
        record = await elsewhere.create()
        await elsewhere.append(record.id, {"role": "user", "content": "Before"})
        async with open_app(tmp_path, "Aye.") as harness:
            await harness.chat.switch(record.id)
            await harness.wait_for_text("Before  #1")
            await harness.conversation.show_others()
            assert foreign(harness) == [] and harness.text.count("#1") == 1
