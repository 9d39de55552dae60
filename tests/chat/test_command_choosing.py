"""/model, /preset and /export: who answers, how it is compacted, and the session as a file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chats import read_long
from command_talk import Talk, flat

from holdfast import MemoryStore, SessionService
from holdfast.calls import StepCall, StepReply
from holdfast.messages import decode_all
from holdfast.models import ScriptedAgentModel
from holdfast.presets import PRESETS
from holdfast.settings import load_settings
from holdfast.transcripts import read_transcript

pytestmark = pytest.mark.anyio


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with Talk(tmp_path).open() as talk:
        yield talk


async def test_the_model_is_shown(talk: Talk) -> None:
    rows = dict(line.split(None, 1) for line in (await talk.says("/model")).splitlines())
    assert rows == {
        "model": "scripted",
        "format": "openai-chat",
        "window": "100,000 tokens: given when the chat was opened",
        "summaries": "scripted",
    }


async def test_another_model_goes_on_with_the_conversation(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "second.json").write_text(json.dumps(["Here is the second one."]))
    await talk.asks("u1")
    text = await talk.says(f"/model script:{tmp_path / 'second.json'}")
    assert text.startswith("This conversation goes on with script:second.json.")
    assert talk.chat.model.name == "script:second.json"
    await talk.asks("u2")
    assert await talk.shows() == "u1 a1 u2 Here"


class Anthropic(ScriptedAgentModel):
    """Speaks another provider's format."""

    format = "anthropic"

    async def step(self, call: StepCall, on_delta: object) -> StepReply:
        self.steps.append(call)
        content = [{"type": "text", "text": "In my own way."}]
        return StepReply(({"role": "assistant", "content": content},), "In my own way.")


async def test_a_session_goes_on_in_another_providers_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = Anthropic([], name="second")
    monkeypatch.setattr("holdfast.chat.commands.choosing.stepper_for", lambda name: second)
    async with Talk(tmp_path, [read_long(), "Read.", "And back again."]).open() as talk:
        await talk.says("Read the berths.", "/model second", "Now you.")
        sent = second.steps[-1].messages
        assert sent[1]["content"][0]["type"] == "tool_use"
        assert sent[2]["content"][0]["type"] == "tool_result"
        talk.chat.use(model=talk.model)
        await talk.says("And now?")
        assert "In my own way." in str(talk.model.steps[-1].messages[-2])
        assert (await talk.texts())[-1] == "And back again."


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody", "'nobody' names no provider."),
        ("anthropc:x", "did you mean anthropic:x?"),
        ("script:none.json", "cannot be read"),
    ],
)
async def test_a_model_that_nobody_knows_changes_nothing(talk: Talk, name: str, said: str) -> None:
    assert said in flat(await talk.says(f"/model {name}"))
    assert talk.chat.model is talk.model


async def test_the_window_of_a_known_model_is_the_catalogs(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["Hm."], name="anthropic:claude-sonnet-4-5")
    async with Talk(tmp_path, model, window=None).open() as talk:
        assert "200,000 tokens: the catalog of models" in await talk.says("/model")
        talk.chat.agent.keeper.window.learn(150_000, 160_000)
        assert "150,000 tokens: learned from the model" in await talk.says("/model")


async def test_all_presets_are_shown_with_the_one_in_use(talk: Talk) -> None:
    lines = (await talk.says("/preset")).splitlines()[: len(PRESETS)]
    assert [line.replace("*", " ").split()[0] for line in lines] == list(PRESETS)
    assert [line.split()[1] for line in lines if line.startswith("*")] == ["holdfast"]


@pytest.mark.parametrize("name", PRESETS)
async def test_every_preset_can_be_used(talk: Talk, name: str) -> None:
    text = await talk.says(f"/preset {name.upper()}")
    assert text.startswith(f"This conversation is compacted by {name} from now on.")
    assert talk.chat.preset.name == talk.chat.agent.keeper.preset.name == name
    assert "compacts" in text
    assert name in await talk.says("/context")


@pytest.mark.parametrize("name", PRESETS)
async def test_a_preset_counts_as_its_system_counts(talk: Talk, name: str) -> None:
    await talk.asks("u1")
    sessions, session_id = talk.chat.sessions, talk.chat.record.id
    await talk.says(f"/preset {name}")
    opened_with_it = SessionService(sessions.store, preset=name)
    assert sessions.estimator.name == opened_with_it.estimator.name
    assert (await sessions.context(session_id)).tokens == (await opened_with_it.context(session_id)).tokens


async def test_p2_a_preset_takes_the_numbers_of_the_settings(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {"compaction.reserve_tokens": 3_000, "window": 50_000})
    async with Talk(tmp_path, settings=settings, window=50_000).open() as talk:
        assert "above the window less 3,000" in await talk.says("/preset pi")
        assert "pi compacts above 47,000 tokens" in await talk.says("/context")


async def test_an_unknown_preset_names_the_nearest(talk: Talk) -> None:
    assert "did you mean 'codex'?" in flat(await talk.says("/preset codx"))
    assert talk.chat.preset.name == "holdfast"


@pytest.mark.parametrize(
    ("line", "name"), [("/export", ""), ("/export talk.jsonl", "talk.jsonl"), ("/export holdfast", "")]
)
async def test_a_session_is_written_to_a_file_without_loss(talk: Talk, tmp_path: Path, line: str, name: str) -> None:
    await talk.asks("u1", "u2")
    text = flat(await talk.says(line))
    records = records_in(tmp_path / (name or f"{talk.id}.jsonl"))
    assert text.endswith("in the format holdfast.")
    async with SessionService(MemoryStore()) as elsewhere:
        record = await elsewhere.import_(records)
        assert await elsewhere.context(record.id) == await talk.sessions.context(talk.id)


@pytest.mark.parametrize("line", ["/export messages", "/export talk.json messages", "/export talk.jsonl pi"])
async def test_a_session_is_written_for_other_tools(talk: Talk, tmp_path: Path, line: str) -> None:
    await talk.asks("u1", "u2")
    await talk.says(line)
    name = line.split()[1] if "." in line else f"{talk.id}.json"
    said = decode_all(read_transcript(tmp_path / name).messages)[0]
    assert [message.text[:2] for message in said] == ["u1", "a1", "u2", "a2"]


def records_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_no_file_is_ever_overwritten(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "kept.jsonl").write_text("mine")
    assert "is not overwritten" in flat(await talk.says("/export kept.jsonl"))
    assert (tmp_path / "kept.jsonl").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/export talk.jsonl word", "'word' is no format to export: use one of holdfast, pi, messages."),
        ("/export nowhere/talk.jsonl", "No such file or directory"),
        ("/export .", "is not overwritten"),
        ("/export \x00", "is no path"),
        ("/export ~nobody-here/x", "is no path here"),
        ("/export a b c", "'c' is one word too many"),
    ],
)
async def test_what_cannot_be_written_is_told(talk: Talk, tmp_path: Path, line: str, said: str) -> None:
    before = names_in(tmp_path)
    assert said in flat(await talk.says(line))
    assert names_in(tmp_path) == before
