"""The examples in docs/hooks.md work, and the page is complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import holdfast.hooks
from compaction_session import SUMMARY, append_turns
from holdfast import Outcome, SessionService, SQLiteStore
from holdfast.hooks import BeforeCompaction, Hooks, Telemetry
from holdfast.hooks.runner import command_input
from holdfast.models import ScriptedModel
from holdfast.strategies import KeepLast
from holdfast.triggers import EventCount

pytestmark = pytest.mark.anyio
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "hooks.md").read_text(encoding="utf-8")
FULL = EventCount(2)


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "RULES.md").write_text("Rules: never push to main.\n")
    return tmp_path


async def run_example(sessions: SessionService, folder: Path) -> None:
    """Vetoes while there is a lock; then adds instructions before, and rules after."""
    model = ScriptedModel("They talked of the harbour.")
    await sessions.create(id="s", format="openai-chat")
    await append_turns(sessions)
    (folder / "RELEASE.lock").touch()
    vetoed = await sessions.compact("s", FULL, SUMMARY, summarizer=model)
    assert (vetoed.outcome, vetoed.why) == (Outcome.VETOED, "a release is being made")
    (folder / "RELEASE.lock").unlink()
    result = await sessions.compact("s", FULL, SUMMARY, summarizer=model)
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    assert "Name every file that was changed." in model.calls[0].prompt
    assert str(result.messages[-1]["content"]).startswith("Rules: never push to main.")


async def test_docs_function_example_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)
    async with names["sessions"] as sessions:
        await run_example(sessions, folder)
    events = [line for line in capsys.readouterr().out.split() if line != "CompactionProgress"]
    assert events == [
        "CompactionStarted",
        "CompactionSkipped",
        "CompactionStarted",
        "CompactionCompleted",
        "CompactionBoundary",
    ]


async def test_docs_command_example_works(folder: Path) -> None:
    script = folder / "compact-hook.sh"
    script.write_text(blocks("sh")[0])
    script.chmod(0o755)
    names: dict[str, Any] = {"Hooks": Hooks}
    exec(blocks("python")[1], names)
    async with SessionService(SQLiteStore("agent.db"), hooks=names["hooks"]) as sessions:
        await run_example(sessions, folder)


@pytest.mark.parametrize("name", sorted(set(holdfast.hooks.__all__) - {"ACCURACY_NOTICE", "HookRunner", "Origin"}))
def test_docs_mention_every_public_name(name: str) -> None:
    assert re.search(rf"\b{name}\b", PAGE)


@pytest.mark.parametrize("field", BeforeCompaction.__struct_fields__)
def test_docs_mention_every_field_of_a_hook_input(field: str) -> None:
    assert f"`{field}`" in PAGE


async def test_docs_mention_every_field_of_a_command_input(folder: Path) -> None:
    given: list[Any] = []
    hooks = Hooks(before=given.append, session_start=given.append, after=lambda done, result: given.append(done))
    async with SessionService(SQLiteStore("agent.db"), hooks=hooks) as sessions:
        await sessions.create(id="s", format="openai-chat")
        await append_turns(sessions)
        await sessions.compact("s", FULL, KeepLast(4))
    fields = {name for one in given for name in command_input(one, None)}
    assert len(given) == 3
    assert [name for name in fields if f"`{name}`" not in PAGE] == []


def test_docs_mention_every_metric() -> None:
    meters = Mock()
    Telemetry(meter_provider=meters)
    made = {call.args[0] for call in meters.get_meter.return_value.method_calls}
    assert made == set(re.findall(r"`((?:holdfast|gen_ai)\.(?:compaction|client)[\w.]*)`", PAGE))
