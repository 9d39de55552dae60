"""/model, /preset, /permissions and /export."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_harness import read_long
from command_harness import CommandHarness, collapse

from holdfast import MemoryStore, SessionService
from holdfast.compaction.presets import PRESETS
from holdfast.messages import decode_all
from holdfast.models import ScriptedAgentModel
from holdfast.models.calls import Failure, StepCall, StepReply
from holdfast.settings import load_settings
from holdfast.transcripts import read_transcript

pytestmark = pytest.mark.anyio


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[CommandHarness]:
    async with CommandHarness(tmp_path).open() as harness:
        yield harness


async def test_model_without_argument_shows_current_model(harness: CommandHarness) -> None:
    rows = dict(line.split(None, 1) for line in (await harness.run_all("/model")).splitlines())
    assert rows == {
        "model": "scripted",
        "format": "openai-chat",
        "window": "100,000 tokens: given when the chat was opened",
        "summaries": "scripted",
    }


async def test_model_with_name_switches_model(harness: CommandHarness, tmp_path: Path) -> None:
    (tmp_path / "second.json").write_text(json.dumps(["Here is the second one."]))
    await harness.send_prompts("u1")
    text = await harness.run_all(f"/model script:{tmp_path / 'second.json'}")
    assert text.startswith("This conversation now uses script:second.json.")
    assert harness.chat.model.name == "script:second.json"
    await harness.send_prompts("u2")
    assert await harness.context_names() == "u1 a1 u2 Here"


class Anthropic(ScriptedAgentModel):
    """A scripted model with another provider's format."""

    format = "anthropic"

    async def step(self, call: StepCall, on_delta: object) -> StepReply:
        self.steps.append(call)
        content = [{"type": "text", "text": "In my own way."}]
        return StepReply(({"role": "assistant", "content": content},), "In my own way.")


async def test_model_switch_converts_to_other_provider_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = Anthropic([], name="second")
    monkeypatch.setattr("holdfast.chat.commands.choices.resolve_chat_model", lambda name: second)
    async with CommandHarness(tmp_path, [read_long(), "Read.", "And back again."]).open() as harness:
        await harness.run_all("Read the berths.", "/model second", "Now you.")
        sent = second.steps[-1].messages
        assert sent[1]["content"][0]["type"] == "tool_use"
        assert sent[2]["content"][0]["type"] == "tool_result"
        harness.chat.configure(model=harness.model)
        await harness.run_all("And now?")
        assert "In my own way." in str(harness.model.steps[-1].messages[-2])
        assert (await harness.texts())[-1] == "And back again."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nobody", "'nobody' names no provider."),
        ("anthropc:x", "did you mean anthropic:x?"),
        ("script:none.json", "cannot be read"),
    ],
)
async def test_model_unknown_changes_nothing(harness: CommandHarness, name: str, expected: str) -> None:
    assert expected in collapse(await harness.run_all(f"/model {name}"))
    assert harness.chat.model is harness.model


async def test_model_window_comes_from_catalog_or_is_learned(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["Hm."], name="anthropic:claude-sonnet-4-5")
    async with CommandHarness(tmp_path, model, window=None).open() as harness:
        assert "200,000 tokens: the model catalog" in await harness.run_all("/model")
        refused = Failure("overflow", "too long", window=150_000)
        await harness.chat.sessions.note_overflow(harness.chat.record.id, refused, 160_000)
        assert "150,000 tokens: learned from the model" in await harness.run_all("/model")


async def test_preset_without_argument_lists_all_and_marks_current(harness: CommandHarness) -> None:
    lines = [line for line in (await harness.run_all("/preset")).splitlines()[:-1] if line[3:4].strip()]
    assert [line.replace("*", " ").split()[0] for line in lines] == list(PRESETS)
    assert [line.split()[1] for line in lines if line.startswith("*")] == ["holdfast"]


@pytest.mark.parametrize("name", PRESETS)
async def test_preset_switch_works_for_every_preset(harness: CommandHarness, name: str) -> None:
    text = await harness.run_all(f"/preset {name.upper()}")
    assert text.startswith(f"This conversation now uses the preset {name}.")
    assert harness.chat.preset.name == (await harness.chat.agent.keeper.policy()).name == name
    assert "compacts" in text
    assert name in await harness.run_all("/context")


@pytest.mark.parametrize("name", PRESETS)
async def test_preset_switch_uses_its_estimator(harness: CommandHarness, name: str) -> None:
    await harness.send_prompts("u1")
    sessions, session_id = harness.chat.sessions, harness.chat.record.id
    await harness.run_all(f"/preset {name}")
    opened_with_it = SessionService(sessions.store, preset=name)
    assert sessions.estimator.name == opened_with_it.estimator.name
    assert (await sessions.context(session_id)).tokens == (await opened_with_it.context(session_id)).tokens


async def test_p2_preset_uses_numbers_from_settings(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {"compaction.reserve_tokens": 3_000, "window": 50_000})
    async with CommandHarness(tmp_path, settings=settings, window=50_000).open() as harness:
        assert "above the window less 3,000" in await harness.run_all("/preset pi")
        assert "pi compacts above 47,000 tokens" in await harness.run_all("/context")


async def test_preset_unknown_suggests_closest_name(harness: CommandHarness) -> None:
    assert "did you mean 'codex'?" in collapse(await harness.run_all("/preset codx"))
    assert harness.chat.preset.name == "holdfast"


@pytest.mark.parametrize(
    ("line", "name"), [("/export", ""), ("/export talk.jsonl", "talk.jsonl"), ("/export holdfast", "")]
)
async def test_export_holdfast_format_round_trips(
    harness: CommandHarness, tmp_path: Path, line: str, name: str
) -> None:
    await harness.send_prompts("u1", "u2")
    text = collapse(await harness.run_all(line))
    records = records_in(tmp_path / (name or f"{harness.id[-6:]}.jsonl"))
    assert text.endswith("in the format holdfast.")
    async with SessionService(MemoryStore()) as elsewhere:
        record = await elsewhere.import_(records)
        assert await elsewhere.context(record.id) == await harness.sessions.context(harness.id)


@pytest.mark.parametrize("line", ["/export messages", "/export talk.json messages", "/export talk.jsonl pi"])
async def test_export_other_formats_are_readable_transcripts(
    harness: CommandHarness, tmp_path: Path, line: str
) -> None:
    await harness.send_prompts("u1", "u2")
    await harness.run_all(line)
    name = line.split()[1] if "." in line else f"{harness.id[-6:]}.json"
    messages = decode_all(read_transcript(tmp_path / name).messages)[0]
    assert [message.text[:2] for message in messages] == ["u1", "a1", "u2", "a2"]


def records_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_export_of_a_session_whose_id_is_a_path_stays_in_the_folder(
    harness: CommandHarness, tmp_path: Path
) -> None:
    await harness.send_prompts("u1")
    lines = await harness.sessions.export(harness.id)
    await harness.sessions.import_(lines, id="../../elsewhere")
    await harness.chat.switch("../../elsewhere")
    await harness.run_all("/export")
    assert "elsewhere.jsonl" in names_in(tmp_path)


async def test_export_never_overwrites_a_file(harness: CommandHarness, tmp_path: Path) -> None:
    (tmp_path / "kept.jsonl").write_text("mine")
    assert "is not overwritten" in collapse(await harness.run_all("/export kept.jsonl"))
    assert (tmp_path / "kept.jsonl").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/export talk.jsonl word", "'word' is not an export format: use one of holdfast, pi, messages."),
        ("/export nowhere/talk.jsonl", "No such file or directory"),
        ("/export .", "is not overwritten"),
        ("/export \x00", "is not a valid path"),
        ("/export ~nobody-here/x", "is not a valid path"),
        ("/export a b c", "Unexpected argument 'c'"),
    ],
)
async def test_export_with_invalid_arguments_reports_error(
    harness: CommandHarness, tmp_path: Path, line: str, expected: str
) -> None:
    before = names_in(tmp_path)
    assert expected in collapse(await harness.run_all(line))
    assert names_in(tmp_path) == before


async def test_permissions_lists_and_revokes_rules(harness: CommandHarness) -> None:
    assert "every change is asked" in collapse(await harness.run_all("/permissions"))
    for rule in ("run_command git status", "edit_file"):
        harness.chat.permissions.add(rule)
    listed = await harness.run_all("/permissions")
    assert "  run_command git status" in listed and "  edit_file" in listed
    assert "asks again" in await harness.run_all("/permissions revoke run_command git status")
    assert harness.chat.permissions.rules == ["edit_file"]
    assert "lists what is" in await harness.run_all("/permissions revoke run_command git status")
    await harness.run_all("/permissions revoke all")
    assert harness.chat.permissions.rules == [] and "Use /permissions" in await harness.run_all("/permissions drop")
