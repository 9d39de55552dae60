"""/compact, /undo and /autocompact: by hand, back again, and by itself (P1, P2)."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chats import read_long
from command_talk import Talk, flat

from holdfast import Failure
from holdfast.chat.commands import run_command
from holdfast.models import ScriptedAgentModel
from holdfast.presets import preset_named
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
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    (folder := tmp_path / "harbor").mkdir()
    async with Talk(folder, preset=preset_named("pi", 1_000, 550)).open() as talk:
        yield talk


async def test_p1_compact_says_what_it_came_to(talk: Talk) -> None:
    await talk.asks("u1", "u2", "u3")
    before = (await talk.sessions.context(talk.id)).tokens
    text = flat(await talk.says("/compact"))
    after = (await talk.sessions.context(talk.id)).tokens
    assert text.startswith(f"Compacted: {before:,} → {after:,} tokens. 4 messages were archived, 2 kept as they are;")


async def test_p1_instructions_steer_the_summary(talk: Talk) -> None:
    await talk.asks("u1", "u2", "u3")
    await talk.says("/compact mind the depths\nof the berths")
    assert "mind the depths\nof the berths" in talk.model.calls[-1].prompt


@pytest.mark.parametrize("said", [(), ("u1",)])
async def test_where_nothing_can_be_compacted_it_says_why(talk: Talk, said: tuple[str, ...]) -> None:
    await talk.asks(*said)
    assert (await talk.says("/compact")).startswith("Nothing was changed: ")
    assert await talk.sessions.events(talk.id, kind="compaction") == []


async def test_p9_a_failed_summary_is_told_and_changes_nothing(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["a1 " * 900, "a2 " * 900, "a3 " * 900], answers=Failure("auth", "the key is wrong"))
    async with Talk(tmp_path, model, preset=preset_named("pi", 1_000, 550)).open() as talk:
        await talk.asks("u1", "u2", "u3")
        before = await talk.texts()
        assert "the key is wrong" in flat(await talk.says("/compact"))
        assert await talk.texts() == before


async def test_where_no_model_answers_it_says_what_stands_in(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["a1 " * 3_000, "a2 " * 900, "a3 " * 900])
    async with Talk(tmp_path, model, preset=preset_named("holdfast", 1_000, 550)).open() as talk:
        await talk.asks("u1", "u2", "u3")
        assert "the ledger stands in for it" in flat(await talk.says("/compact"))


async def test_undo_restores_the_context_byte_for_byte(talk: Talk) -> None:
    await talk.asks("u1", "u2", "u3")
    before = await talk.sessions.context(talk.id)
    await talk.says("/compact")
    between = await talk.sessions.context(talk.id)
    text = await talk.says("/undo")
    after = await talk.sessions.context(talk.id)
    assert after.messages == before.messages != between.messages
    assert text.startswith(f"The last compaction is undone: {between.tokens:,} → {after.tokens:,} tokens.")


async def test_undo_without_a_compaction_says_so(talk: Talk) -> None:
    assert "has no compaction to undo" in await talk.says("/undo")
    assert await talk.says("/undo 2") == "'2' is one word too many: the command is /undo."


async def test_p2_autocompact_toggles_shows_and_saves(talk: Talk, own_settings: Path) -> None:
    text = await talk.says("/autocompact")
    assert text.startswith("Automatic compaction is off. It is saved in")
    assert str(own_settings) in text.replace("\n", "")
    assert (talk.chat.auto, talk.chat.agent.keeper.auto) == (False, False)
    assert saved_in(own_settings) == {"compaction": {"enabled": False}}
    assert (await talk.says("/autocompact")).startswith("Automatic compaction is on.")
    assert load_settings(talk.chat.folder.root).compaction.enabled is True


@pytest.mark.parametrize(("word", "auto"), [("on", True), ("off", False), ("OFF", False)])
async def test_p2_on_and_off_can_be_said(talk: Talk, word: str, auto: bool) -> None:
    await talk.says(f"/autocompact {word}", f"/autocompact {word}")
    assert talk.chat.auto is auto


@pytest.mark.parametrize("words", ["maybe", "on off"])
async def test_other_words_change_nothing(talk: Talk, words: str, own_settings: Path) -> None:
    assert "/autocompact [on|off]" in await talk.says(f"/autocompact {words}")
    assert (talk.chat.auto, saved_in(own_settings)) == (True, None)


async def test_p2_the_numbers_and_where_they_come_from(
    tmp_path: Path, own_settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_setting("compaction.reserve_tokens", 2_000)
    monkeypatch.setenv("HOLDFAST_KEEP_RECENT_TOKENS", "700")
    (folder := tmp_path / "harbor").mkdir()
    settings = load_settings(folder, {"window": 9_000, "preset": "pi"})
    preset = preset_named("pi", 2_000, 700)
    async with Talk(folder, preset=preset, window=9_000, settings=settings).open() as talk:
        rows = {line.split()[0]: line.split()[1:] for line in (await talk.says("/autocompact off")).splitlines()[-5:]}
    assert rows["preset"] == ["pi", "compacts", "above", "the", "window", "less", "2,000"]
    assert rows["window"] == ["9,000", "flag"]
    assert rows["threshold"][0] == "7,000"
    assert rows["reserve_tokens"][0] == "2,000" and str(own_settings).startswith(rows["reserve_tokens"][1].rstrip("…"))
    assert rows["keep_recent_tokens"] == ["700", "HOLDFAST_KEEP_RECENT_TOKENS"]


async def test_a_preset_with_numbers_of_its_own_shows_those(talk: Talk) -> None:
    await talk.says("/preset amp")
    text = await talk.says("/autocompact off")
    assert "never by itself" in text and "reserve_tokens" not in text


async def test_where_it_cannot_be_saved_it_holds_for_this_conversation(talk: Talk, own_settings: Path) -> None:
    own_settings.parent.parent.write_text("in the way")
    text = flat(await talk.says("/autocompact off"))
    assert "It holds for this conversation alone:" in text
    assert talk.chat.auto is False


async def test_where_something_else_wins_it_says_so(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_AUTO_COMPACT", "on")
    text = flat(await talk.says("/autocompact off"))
    assert "HOLDFAST_AUTO_COMPACT says otherwise and wins the next time" in text
    assert talk.chat.auto is False


async def test_p14_a_compaction_may_be_asked_for_while_the_agent_works(tmp_path: Path) -> None:
    steps = [*[read_long()] * 6, "All is read."]
    async with Talk(tmp_path, steps, preset=preset_named("pi", 1_000, 3_000), window=200_000).open() as talk:
        talk.chat.say("Read it six times.")
        for _ in range(5):
            await talk.hears("ToolFinished")
        text = flat((await run_command(talk.chat, "/compact")).text)
        await talk.chat.wait_idle()
        assert text.endswith("The work that was interrupted goes on.")
        assert (await talk.texts())[-1] == "All is read."
