"""/search, /recall, /pin and /context: what is there, what was, and where the tokens are (H1)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from chats import read_long
from command_talk import LONG, Talk, flat

from holdfast.calls import StepReply
from holdfast.chat.commands import layout
from holdfast.chat.commands.recalling import MOST_TOKENS
from holdfast.presets import preset_named
from holdfast.tokens import Usage

pytestmark = pytest.mark.anyio


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    """`#1 u1 #2 a1 …`; a compaction has archived what is before u3."""
    async with Talk(tmp_path, preset=preset_named("pi", 1_000, 550)).open() as talk:
        await talk.says(f"u1 The crane is on quay 3. {LONG}")
        await talk.asks("u2", "u3")
        await talk.says("/compact")
        yield talk


async def test_what_was_archived_is_found(talk: Talk) -> None:
    lines = (await talk.says("/search crane quay")).splitlines()
    assert lines[0].startswith("#1 user") and lines[0].endswith("archived")
    assert "crane is on quay 3" in lines[1]
    assert lines[-1] == "Bring one back: /recall #1."


async def test_what_is_nowhere_is_told(talk: Talk) -> None:
    assert (await talk.says("/search zeppelin")).startswith("Nothing here holds all of these words")
    assert await talk.says("/search") == "Say what to look for: /search WORDS."
    assert "Nothing here" in await talk.says("/search '\x00 OR *")


@pytest.mark.parametrize("written", ["#1", "1", "[1]", "id"])
async def test_a_message_is_shown_and_brought_back(talk: Talk, written: str) -> None:
    event = (await talk.sessions.events(talk.id))[0]
    text = await talk.says(f"/recall {event.id[:22] if written == 'id' else written}")
    assert text.startswith("#1, user, ") and "The crane is on quay 3." in text
    assert text.endswith("Brought back into the context, as #8.")
    assert "The crane is on quay 3." in (await talk.texts())[-1]


async def test_it_is_brought_back_once(talk: Talk) -> None:
    await talk.says("/recall #1")
    before = await talk.texts()
    assert (await talk.says("/recall 1")).endswith("It was brought back before, as #8.")
    assert await talk.texts() == before


async def test_what_the_context_shows_is_not_brought_back(talk: Talk) -> None:
    before = await talk.texts()
    assert "is in the context already" in flat(await talk.says("/recall #6"))
    assert "It is in the context already" in flat(await talk.says("/recall #5-#6"))
    assert "is a compaction: only messages can be restored" in flat(await talk.says("/recall #7"))
    assert await talk.texts() == before


async def test_several_messages_are_brought_back_together(talk: Talk) -> None:
    text = await talk.says("/recall #1-#3")
    assert text.endswith("Brought back into the context.")
    last = (await talk.texts())[-1]
    assert all(f"#{number}, " in last for number in (1, 2, 3))
    assert len((await talk.says("/branch")).splitlines()) == 5


async def test_no_more_is_brought_back_than_there_is_room_for(tmp_path: Path) -> None:
    async with Talk(tmp_path, preset=preset_named("pi", 1_000, 550)).open() as talk:
        await talk.says("Depths: " + " ".join(f"berth {n} has {n * 7} cm" for n in range(2_000)))
        await talk.asks("u2", "u3")
        await talk.says("/compact")
        before = (await talk.sessions.context(talk.id)).tokens
        text = flat(await talk.says("/recall #1"))
        assert 0 < (await talk.sessions.context(talk.id)).tokens - before < 1.1 * MOST_TOKENS
        assert "Brought back into the context. There is more of it: /recall #1@" in text
        again = await talk.says("/recall " + text.rpartition("/recall ")[2].rstrip("."))
        assert "from character" in again.splitlines()[0]


@pytest.mark.parametrize("line", ["/recall", "/recall #99", "/recall #3-#1", "/recall what was that", "/recall #"])
async def test_a_reference_that_names_nothing_is_told(talk: Talk, line: str) -> None:
    before = await talk.texts()
    assert len(flat(await talk.says(line))) > 20
    assert await talk.texts() == before


async def test_a_pin_holds_through_a_compaction_until_it_is_taken_off(tmp_path: Path) -> None:
    steps = [f"a{number} {LONG * 4}" for number in range(1, 9)]
    async with Talk(tmp_path, steps, preset=preset_named("pi", 1_000, 1_600)).open() as talk:
        await talk.says("u1", "u2", "u3")
        assert (await talk.says("/pin")).startswith("Nothing is pinned")
        assert (await talk.says("/pin #2")).startswith("#2 stays visible through every compaction: a1")
        assert (await talk.says("/compact", "/pin")).startswith("#2  a1 said at some length")
        assert "a1 said" in " ".join(await talk.texts())
        assert await talk.says("/pin 2") == "#2 is pinned already."
        assert (await talk.says("/pin 2 off")).startswith("#2 is no longer pinned")
        assert await talk.says("/pin 2 off") == "#2 is not pinned."
        assert (await talk.says("/pin")).startswith("Nothing is pinned")


async def test_what_is_archived_is_brought_back_before_it_is_pinned(talk: Talk) -> None:
    assert flat(await talk.says("/pin #1")) == "#1 is archived: bring it back with /recall, and pin what came back."
    await talk.says("/recall #1", "/pin #8")
    await talk.asks("u4", "u5")
    await talk.says("/compact")
    assert "The crane is on quay 3." in " ".join(await talk.texts())


async def test_a_branch_keeps_its_pins(talk: Talk) -> None:
    await talk.says("/pin #5")
    await talk.asks("u4")
    await talk.says("/branch 4")
    assert (await talk.says("/pin")).startswith("#5  u3")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/pin #6 on", "'on' is not off: /pin [REF [off]]."),
        ("/pin #5-#6", "'#5-#6' names more or less than one message: pin them one by one."),
        ("/pin #1 off now", "'now' is one word too many: the command is /pin [REF [off]]."),
        ("/pin #77", "has no event '#77'"),
        ("/pin #7", "is a compaction: only messages can be pinned"),
    ],
)
async def test_what_cannot_be_pinned_is_told(talk: Talk, line: str, said: str) -> None:
    assert said in flat(await talk.says(line))


async def test_the_context_is_taken_apart(tmp_path: Path) -> None:
    async with Talk(
        tmp_path, [read_long(), "Read."], preset=preset_named("pi", 1_000, 550), window=9_000
    ).open() as talk:
        await talk.says("Read the berths.")
        context = await talk.sessions.context(talk.id)
        text = await talk.says("/context")
    lines = text.splitlines()
    assert lines[0].startswith("━") and lines[0].endswith(f"{100 * context.tokens / 9_000:.0f} % of 9,000")
    assert lines[1] == f"{context.tokens:,} tokens, estimated, in 4 messages"
    assert lines[2] == "pi compacts above 8,000 tokens"
    labels = [line.split("  ")[0] for line in lines[4:9]]
    assert labels == ["system prompt", "tool definitions", "user", "assistant", "read_file"]
    sizes = [int(line.replace(",", "").split("%")[0].split()[-2]) for line in lines[4:9]]
    assert sum(sizes) == context.tokens
    assert lines[8].endswith("1 call")
    assert lines[10] == "largest results" and lines[11].split()[0] == "read_file" and "berth 0: depth 0 cm" in lines[11]


async def test_what_the_provider_counted_is_the_size_and_the_parts_are_ours(tmp_path: Path) -> None:
    reply = StepReply((), "Counted.", usage=Usage(input=5_000, output=10))
    async with Talk(tmp_path, [reply]).open() as talk:
        await talk.says("How long is this?")
        lines = (await talk.says("/context")).splitlines()
    assert lines[1] == "5,010 tokens, counted by the provider, in 2 messages"
    assert lines[3].endswith(" by our own count, of which:")


async def test_the_context_of_a_preset_without_a_threshold_says_it_in_words(talk: Talk) -> None:
    await talk.says("/preset spring")
    talk.chat.use(auto=False)
    text = flat(await talk.says("/context"))
    assert "spring compacts above 20 turns, or at 4,000 tokens, but automatic compaction is off" in text
    assert "one word too many" in await talk.says("/context now")


async def test_lines_are_ascii_where_nothing_else_can_be_shown(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    class Teletype:
        encoding = "ascii"

    monkeypatch.setattr(layout.sys, "stdout", Teletype())
    text = await talk.says("/context")
    assert text.isascii() and "###" in text
    await talk.says("/branch 1", "/branch 1")
    assert (await talk.says("/tree")).isascii()
