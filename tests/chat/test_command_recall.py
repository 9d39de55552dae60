"""/search, /recall, /pin and /context (H1)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from chat_harness import read_long
from command_harness import LONG, CommandHarness, collapse

from holdfast.chat.commands import base
from holdfast.chat.commands.recall import MAX_RECALL_TOKENS
from holdfast.compaction.presets import preset
from holdfast.models.calls import StepReply
from holdfast.tokens import Usage

pytestmark = pytest.mark.anyio


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[CommandHarness]:
    """`#1 u1 #2 a1 …`; a compaction has archived what is before u3."""
    async with CommandHarness(tmp_path, preset=preset("pi", reserve=1_000, keep=550)).open() as harness:
        await harness.run_all(f"u1 The crane is on quay 3. {LONG}")
        await harness.send_prompts("u2", "u3")
        await harness.run_all("/compact")
        yield harness


async def test_search_finds_archived_messages(harness: CommandHarness) -> None:
    lines = (await harness.run_all("/search crane quay")).splitlines()
    assert lines[0].startswith("#1 user") and lines[0].endswith("archived")
    assert "crane is on quay 3" in lines[1]
    assert lines[-1] == "Restore one: /recall #1."


async def test_search_without_hits_says_so(harness: CommandHarness) -> None:
    assert (await harness.run_all("/search zeppelin")).startswith("No event contains all of these words")
    assert await harness.run_all("/search") == "Name words to search for: /search WORDS."
    assert "No event contains" in await harness.run_all("/search '\x00 OR *")


@pytest.mark.parametrize("written", ["#1", "1", "[1]", "id"])
async def test_recall_shows_and_restores_message(harness: CommandHarness, written: str) -> None:
    event = (await harness.sessions.events(harness.id))[0]
    text = await harness.run_all(f"/recall {event.id[:22] if written == 'id' else written}")
    assert text.startswith("#1, user, ") and "The crane is on quay 3." in text
    assert text.endswith("Restored to the context, as #8.")
    assert "The crane is on quay 3." in (await harness.texts())[-1]


async def test_recall_restores_a_message_once(harness: CommandHarness) -> None:
    await harness.run_all("/recall #1")
    before = await harness.texts()
    assert (await harness.run_all("/recall 1")).endswith("It was already restored, as #8.")
    assert await harness.texts() == before


async def test_recall_of_visible_message_restores_nothing(harness: CommandHarness) -> None:
    before = await harness.texts()
    assert "is in the context already" in collapse(await harness.run_all("/recall #6"))
    assert "It is already in the context" in collapse(await harness.run_all("/recall #5-#6"))
    assert "is a compaction: only messages can be restored" in collapse(await harness.run_all("/recall #7"))
    assert await harness.texts() == before


async def test_recall_of_range_restores_messages_together(harness: CommandHarness) -> None:
    text = await harness.run_all("/recall #1-#3")
    assert text.endswith("Restored to the context.")
    last = (await harness.texts())[-1]
    assert all(f"#{number}, " in last for number in (1, 2, 3))
    assert len((await harness.run_all("/branch")).splitlines()) == 5


async def test_recall_of_long_message_is_limited_and_continues(tmp_path: Path) -> None:
    async with CommandHarness(tmp_path, preset=preset("pi", reserve=1_000, keep=550)).open() as harness:
        await harness.run_all("Depths: " + " ".join(f"berth {n} has {n * 7} cm" for n in range(2_000)))
        await harness.send_prompts("u2", "u3")
        await harness.run_all("/compact")
        before = (await harness.sessions.context(harness.id)).tokens
        text = collapse(await harness.run_all("/recall #1"))
        assert 0 < (await harness.sessions.context(harness.id)).tokens - before < 1.1 * MAX_RECALL_TOKENS
        assert "Restored to the context. It continues: /recall #1@" in text
        again = await harness.run_all("/recall " + text.rpartition("/recall ")[2].rstrip("."))
        assert "from character" in again.splitlines()[0]


@pytest.mark.parametrize("line", ["/recall", "/recall #99", "/recall #3-#1", "/recall what was that", "/recall #"])
async def test_recall_with_invalid_reference_reports_error(harness: CommandHarness, line: str) -> None:
    before = await harness.texts()
    assert len(collapse(await harness.run_all(line))) > 20
    assert await harness.texts() == before


async def test_pin_survives_compaction_until_unpinned(tmp_path: Path) -> None:
    steps = [f"a{number} {LONG * 4}" for number in range(1, 9)]
    async with CommandHarness(tmp_path, steps, preset=preset("pi", reserve=1_000, keep=1_600)).open() as harness:
        await harness.run_all("u1", "u2", "u3")
        assert (await harness.run_all("/pin")).startswith("Nothing is pinned")
        assert (await harness.run_all("/pin #2")).startswith("#2 stays visible through every compaction: a1")
        assert (await harness.run_all("/compact", "/pin")).startswith("#2  a1 said at some length")
        assert "a1 said" in " ".join(await harness.texts())
        assert await harness.run_all("/pin 2") == "#2 is already pinned."
        assert (await harness.run_all("/pin 2 off")).startswith("#2 is no longer pinned")
        assert await harness.run_all("/pin 2 off") == "#2 is not pinned."
        assert (await harness.run_all("/pin")).startswith("Nothing is pinned")


async def test_pin_of_archived_message_requires_recall_first(harness: CommandHarness) -> None:
    assert (
        collapse(await harness.run_all("/pin #1"))
        == "#1 is archived: restore it with /recall, then pin the restored copy."
    )
    await harness.run_all("/recall #1", "/pin #8")
    await harness.send_prompts("u4", "u5")
    await harness.run_all("/compact")
    assert "The crane is on quay 3." in " ".join(await harness.texts())


async def test_branch_keeps_pins(harness: CommandHarness) -> None:
    await harness.run_all("/pin #5")
    await harness.send_prompts("u4")
    await harness.run_all("/branch 4")
    assert (await harness.run_all("/pin")).startswith("#5  u3")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/pin #6 on", "Unexpected argument 'on': the usage is /pin [REF [off]]."),
        ("/pin #5-#6", "'#5-#6' does not name exactly one message: pin messages one by one."),
        ("/pin #1 off now", "Unexpected argument 'now': the usage is /pin [REF [off]]."),
        ("/pin #77", "has no event '#77'"),
        ("/pin #7", "is a compaction: only messages can be pinned"),
    ],
)
async def test_pin_with_invalid_arguments_reports_error(harness: CommandHarness, line: str, expected: str) -> None:
    assert expected in collapse(await harness.run_all(line))


async def test_context_shows_tokens_by_kind_and_tool(tmp_path: Path) -> None:
    async with CommandHarness(
        tmp_path, [read_long(), "Read."], preset=preset("pi", reserve=1_000, keep=550), window=9_000
    ).open() as harness:
        await harness.run_all("Read the berths.")
        context = await harness.sessions.context(harness.id)
        text = await harness.run_all("/context")
    lines = text.splitlines()
    assert lines[0].startswith("━") and lines[0].endswith(f"{100 * context.tokens / 9_000:.0f} % of 9,000")
    assert lines[1] == f"{context.tokens:,} tokens, estimated, in 4 messages"
    assert lines[2] == "pi compacts above 8,000 tokens"
    labels = [line.split("  ")[0] for line in lines[4:9]]
    assert labels == ["system prompt", "tool definitions", "user", "assistant", "read_file"]
    sizes = [int(line.replace(",", "").split("%")[0].split()[-2]) for line in lines[4:9]]
    assert sum(sizes) == context.tokens
    assert "  1 call  ━" in lines[8]
    assert lines[10] == "largest results" and lines[11].split()[0] == "read_file" and "berth 0: depth 0 cm" in lines[11]


async def test_context_with_provider_usage_marks_breakdown_as_estimate(tmp_path: Path) -> None:
    reply = StepReply((), "Counted.", usage=Usage(input=5_000, output=10))
    async with CommandHarness(tmp_path, [reply]).open() as harness:
        await harness.run_all("How long is this?")
        lines = (await harness.run_all("/context")).splitlines()
    assert lines[1] == "5,010 tokens, counted by the provider, in 2 messages"
    assert lines[3].endswith(" by local estimate, of which:")


async def test_context_of_preset_without_threshold_describes_trigger(harness: CommandHarness) -> None:
    await harness.run_all("/preset spring")
    harness.chat.configure(auto=False)
    text = collapse(await harness.run_all("/context"))
    assert "spring compacts above 20 turns, or at 4,000 tokens, but automatic compaction is off" in text
    assert "Unexpected argument" in await harness.run_all("/context now")


async def test_output_is_ascii_when_stdout_is_ascii(harness: CommandHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    class Teletype:
        encoding = "ascii"

    monkeypatch.setattr(base.sys, "stdout", Teletype())
    text = await harness.run_all("/context")
    assert text.isascii() and "###" in text
    await harness.run_all("/branch 1", "/branch 1")
    assert (await harness.run_all("/tree")).isascii()
