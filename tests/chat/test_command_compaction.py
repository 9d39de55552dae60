"""/compact, /undo and /autocompact (P1, P2)."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_harness import read_long
from command_harness import CommandHarness, collapse

from holdfast.chat.commands import run_command
from holdfast.compaction.presets import preset
from holdfast.models import Failure, ScriptedAgentModel
from holdfast.settings import load_settings, save_setting, user_file

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return user_file()


def saved_in(file: Path) -> dict[str, Any] | None:
    return tomllib.loads(file.read_text()) if file.exists() else None


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[CommandHarness]:
    (folder := tmp_path / "harbor").mkdir()
    async with CommandHarness(folder, preset=preset("pi", reserve=1_000, keep=550)).open() as harness:
        yield harness


async def test_p1_compact_reports_tokens_and_messages(harness: CommandHarness) -> None:
    await harness.send_prompts("u1", "u2", "u3")
    before = (await harness.sessions.context(harness.id)).tokens
    text = collapse(await harness.run_all("/compact"))
    after = (await harness.sessions.context(harness.id)).tokens
    assert text.startswith(f"Compacted: {before:,} → {after:,} tokens. 4 messages were archived, 2 kept as they are;")


async def test_p1_compact_instructions_reach_the_summarizer(harness: CommandHarness) -> None:
    """P8: the model that answers writes the summary too."""
    await harness.send_prompts("u1", "u2", "u3")
    await harness.run_all("/compact mind the depths\nof the berths")
    assert "mind the depths\nof the berths" in harness.model.calls[-1].prompt


@pytest.mark.parametrize("prompts", [(), ("u1",)])
async def test_compact_with_nothing_to_compact_says_why(harness: CommandHarness, prompts: tuple[str, ...]) -> None:
    await harness.send_prompts(*prompts)
    assert (await harness.run_all("/compact")).startswith("Nothing was changed: ")
    assert await harness.sessions.events(harness.id, kind="compaction") == []


async def test_p9_compact_with_failed_summary_reports_error_and_changes_nothing(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["a1 " * 900, "a2 " * 900, "a3 " * 900], answers=Failure("auth", "the key is wrong"))
    async with CommandHarness(
        tmp_path, model, preset=preset("pi", reserve=1_000, keep=550), window=8_000
    ).open() as harness:
        await harness.send_prompts("u1", "u2", "u3")
        before = await harness.texts()
        assert "the key is wrong" in collapse(await harness.run_all("/compact"))
        assert await harness.texts() == before
        calls = len(model.calls)
        assert (await harness.run_all("/compact --without-model")).startswith("Compacted: ")
        assert len(model.calls) == calls and await harness.texts() != before


async def test_compact_without_model_names_the_fallback(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["a1 " * 3_000, "a2 " * 900, "a3 " * 900])
    async with CommandHarness(tmp_path, model, preset=preset("holdfast", reserve=1_000, keep=550)).open() as harness:
        await harness.send_prompts("u1", "u2", "u3")
        assert "the ledger is used instead" in collapse(await harness.run_all("/compact"))


async def test_undo_command_restores_context_exactly(harness: CommandHarness) -> None:
    await harness.send_prompts("u1", "u2", "u3")
    before = await harness.sessions.context(harness.id)
    await harness.run_all("/compact")
    between = await harness.sessions.context(harness.id)
    text = await harness.run_all("/undo")
    after = await harness.sessions.context(harness.id)
    assert after.messages == before.messages != between.messages
    assert text.startswith(f"The last compaction is undone: {between.tokens:,} → {after.tokens:,} tokens.")


async def test_undo_without_compaction_reports_error(harness: CommandHarness) -> None:
    assert "has no compaction to undo" in await harness.run_all("/undo")
    assert await harness.run_all("/undo 2") == "Unexpected argument '2': the usage is /undo."


@pytest.mark.parametrize("word", ["on", "off"])
async def test_p2_autocompact_alone_shows_the_setting(harness: CommandHarness, own_settings: Path, word: str) -> None:
    await harness.run_all(f"/autocompact {word}")
    before, auto = saved_in(own_settings), harness.chat.auto
    text = await harness.run_all("/autocompact")
    assert text.startswith(f"Automatic compaction is {word}.\n") and "threshold" in text
    assert text.endswith("Change it: /autocompact on, /autocompact off.")
    assert (harness.chat.auto, saved_in(own_settings)) == (auto, before)


async def test_p2_autocompact_saves_setting(harness: CommandHarness, own_settings: Path) -> None:
    text = await harness.run_all("/autocompact off")
    assert text.startswith("Automatic compaction is off. It is saved in")
    assert str(own_settings) in text.replace("\n", "")
    assert (harness.chat.auto, harness.chat.agent.keeper.auto) == (False, False)
    assert saved_in(own_settings) == {"compaction": {"enabled": False}}
    assert (await harness.run_all("/autocompact on")).startswith("Automatic compaction is on.")
    assert load_settings(harness.chat.folder.root).compaction.enabled is True


@pytest.mark.parametrize(("word", "auto"), [("on", True), ("off", False), ("OFF", False)])
async def test_p2_autocompact_accepts_on_and_off(harness: CommandHarness, word: str, auto: bool) -> None:
    await harness.run_all(f"/autocompact {word}", f"/autocompact {word}")
    assert harness.chat.auto is auto


@pytest.mark.parametrize("words", ["maybe", "on off"])
async def test_autocompact_with_invalid_arguments_changes_nothing(
    harness: CommandHarness, words: str, own_settings: Path
) -> None:
    assert "/autocompact [on|off]" in collapse(await harness.run_all(f"/autocompact {words}"))
    assert (harness.chat.auto, saved_in(own_settings)) == (True, None)


async def test_p2_autocompact_shows_limits_and_their_origin(
    tmp_path: Path, own_settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_setting("compaction.reserve_tokens", 2_000)
    monkeypatch.setenv("HOLDFAST_KEEP_RECENT_TOKENS", "700")
    (folder := tmp_path / "harbor").mkdir()
    settings = load_settings(folder, {"window": 9_000, "preset": "pi"})
    policy = preset("pi", reserve=2_000, keep=700)
    async with CommandHarness(folder, preset=policy, window=9_000, settings=settings).open() as harness:
        lines = (await harness.run_all("/autocompact off")).partition("\n\n")[2].splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines if line[0] != " "}
    assert rows["preset"] == ["pi", "compacts", "above", "the", "window", "less", "2,000"]
    assert rows["window"] == ["9,000", "flag"]
    assert rows["threshold"][0] == "7,000"
    assert rows["reserve_tokens"][0] == "2,000" and str(own_settings).startswith(rows["reserve_tokens"][1])
    assert rows["keep_recent_tokens"] == ["700", "HOLDFAST_KEEP_RECENT_TOKENS"]


async def test_autocompact_with_unsized_preset_shows_its_own_numbers(harness: CommandHarness) -> None:
    await harness.run_all("/preset amp")
    text = await harness.run_all("/autocompact off")
    assert "never automatically" in text and "reserve_tokens" not in text


async def test_autocompact_unsaved_applies_to_this_conversation_only(
    harness: CommandHarness, own_settings: Path
) -> None:
    own_settings.parent.parent.write_text("in the way")
    text = collapse(await harness.run_all("/autocompact off"))
    assert "It applies to this conversation only:" in text
    assert harness.chat.auto is False


async def test_autocompact_names_overriding_environment_variable(
    harness: CommandHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_AUTO_COMPACT", "on")
    text = collapse(await harness.run_all("/autocompact off"))
    assert "HOLDFAST_AUTO_COMPACT overrides it at the next start" in text
    assert harness.chat.auto is False


async def test_p14_compact_command_while_agent_runs_continues_run(tmp_path: Path) -> None:
    steps = [*[read_long()] * 6, "All is read."]
    async with CommandHarness(
        tmp_path, steps, preset=preset("pi", reserve=1_000, keep=3_000), window=200_000
    ).open() as harness:
        harness.chat.send("Read it six times.")
        for _ in range(5):
            await harness.wait_for_event("ToolFinished")
        text = collapse((await run_command(harness.chat, "/compact")).text)
        await harness.chat.wait_idle()
        assert text.endswith("The interrupted run continues.")
        assert (await harness.texts())[-1] == "All is read."
