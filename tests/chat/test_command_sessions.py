"""/tree, /sessions, /clear, /handoff and /reference (P10, P23)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from command_harness import CommandHarness, collapse

from holdfast import SessionService, SQLiteStore
from holdfast.agent.events import SessionChanged
from holdfast.chat.commands import run_command
from holdfast.messages import decode_all, is_aside
from holdfast.models import ScriptedAgentModel, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[CommandHarness]:
    (folder := tmp_path / "harbor").mkdir()
    sessions = SessionService(SQLiteStore(tmp_path / "sessions.db"))
    async with sessions, CommandHarness(folder, sessions=sessions).open() as harness:
        yield harness


async def test_clear_starts_new_session_and_keeps_old_one(harness: CommandHarness) -> None:
    await harness.send_prompts("u1")
    old = harness.id
    text = await harness.run_all("/clear")
    assert harness.id != old and harness.id in text and old in text
    assert await harness.texts() == []
    await harness.run_all(f"/sessions {old}")
    assert await harness.context_names() == "u1 a1"


async def test_sessions_lists_newest_first_and_marks_current(harness: CommandHarness) -> None:
    first = harness.id
    await harness.run_all("Mend the crane.", "/clear")
    second = harness.id
    await harness.run_all("Paint the buoys.\nAll of them.", f"/sessions {first}")
    rows = (await harness.run_all("/sessions")).splitlines()[1:3]
    assert [row.split() for row in rows] == [
        [second, row_date(rows[0]), "2", "Paint", "the", "buoys."],
        ["*", first, row_date(rows[1]), "2", "Mend", "the", "crane."],
    ]


def row_date(row: str) -> str:
    date = row.replace("*", " ").split()[1]
    assert len(date) == len("2026-01-31")
    return date


async def test_sessions_accepts_unique_id_prefix(harness: CommandHarness) -> None:
    for name in ("harbor-1", "harbor-2", "quay"):
        await harness.sessions.create(id=name)
    await harness.run_all("/sessions qu")
    assert harness.id == "quay"
    assert collapse(await harness.run_all("/sessions harbor")).startswith(
        "2 sessions begin with 'harbor': type more of the id"
    )
    await harness.run_all("/sessions harbor-2")
    assert harness.id == "harbor-2"
    assert "There is no session 'pier'" in await harness.run_all("/sessions pier")
    assert "Unexpected argument" in await harness.run_all("/sessions a b")


async def test_sessions_list_is_limited_and_tree_is_not(harness: CommandHarness) -> None:
    for number in range(25):
        await harness.sessions.create(id=f"s{number}")
    assert "and 6 older sessions: /tree shows all" in await harness.run_all("/sessions")
    assert len((await harness.run_all("/tree")).splitlines()) == 27


async def test_p10_tree_shows_forks(harness: CommandHarness) -> None:
    await harness.send_prompts("u1", "u2")
    root = harness.id
    await harness.run_all("/branch 1")
    first = harness.id
    await harness.run_all("", "/branch 1")
    inner = harness.id
    await harness.run_all(f"/sessions {root}", "/branch 2")
    second = harness.id
    await harness.run_all("/clear")
    rows = [line.rpartition("  20")[0].rstrip() for line in (await harness.run_all("/tree")).splitlines()[1:]]
    assert rows == [
        f"  {root}",
        f"  ├─ {first}",
        f"  │  └─ {inner}",
        f"  └─ {second}",
        f"* {harness.id}",
    ]


async def test_tree_with_deep_forks_fits_width(harness: CommandHarness) -> None:
    await harness.send_prompts("u1")
    for _ in range(30):
        await harness.chat.fork(None)
    assert len((await harness.run_all("/tree")).splitlines()) == 32


async def test_p23_handoff_drafts_first_message_of_new_session(tmp_path: Path) -> None:
    drafted = "The crane on quay 3 has a worn cable, see /harbor/crane.md."
    model = ScriptedAgentModel(["The cable is worn."], answers=drafted)
    async with CommandHarness(tmp_path, model).open() as harness:
        await harness.run_all("Look at /harbor/crane.md on quay 3: is the cable worn?")
        old = harness.id
        page = await harness.run("/handoff replace the cable")
        assert harness.id != old and harness.id in page.text and old in page.text
        assert (page.draft or "").startswith("replace the cable\n")
        assert drafted in (page.draft or "")
        assert await harness.texts() == []
        assert harness.events[-1] == SessionChanged(harness.id, "handed_off")


async def test_handoff_without_goal_reports_error(harness: CommandHarness) -> None:
    old = harness.id
    assert (await harness.run_all("/handoff")).startswith("A handoff needs a goal")
    assert harness.id == old


async def test_handoff_without_model_uses_ledger(tmp_path: Path) -> None:
    async with CommandHarness(tmp_path, ScriptedAgentModel(["It is worn."])).open() as harness:
        await harness.run_all("Is the cable of the crane worn?")
        page = await harness.run("/handoff replace the cable")
        assert "the ledger instead" in collapse(page.text)
        assert "Is the cable of the crane worn?" in (page.draft or "")


async def test_handoff_aborted_keeps_session(tmp_path: Path) -> None:
    async with CommandHarness(tmp_path, ScriptedAgentModel(["It is worn."])).open() as harness:
        await harness.run_all("Is the cable worn?")
        old = harness.id
        harness.chat.summarizer = lambda text: harness.chat.abort() or "never read"
        assert (await run_command(harness.chat, "/handoff replace it")).text.startswith("Aborted")
        assert harness.id == old


async def test_handoff_with_concurrent_prompt_returns_draft(tmp_path: Path) -> None:
    async with CommandHarness(tmp_path, ScriptedAgentModel(["It is worn.", "Yes?"], delay=0.01)).open() as harness:
        await harness.run_all("Is the cable worn?")
        old = harness.id
        harness.chat.summarizer = ScriptedModel(lambda call: harness.chat.send("Hello?") or "The cable is worn.")
        page = await run_command(harness.chat, "/handoff replace it")
        assert page.text.startswith("The agent is working") and "The cable is worn." in (page.draft or "")
        await harness.chat.wait_idle()
        assert (harness.id, (await harness.texts())[-1]) == (old, "Yes?")


async def test_reference_with_concurrent_prompt_returns_answer(tmp_path: Path) -> None:
    async with CommandHarness(tmp_path, ScriptedAgentModel(["It is worn.", "Yes?"], delay=0.01)).open() as harness:
        await harness.run_all("Is the cable worn?")
        harness.chat.summarizer = ScriptedModel(lambda call: harness.chat.send("Hello?") or "It is worn (#2).")
        page = await run_command(harness.chat, f"/reference {harness.id} cable worn")
        assert collapse(page.text).startswith("It is worn (#2). It was not added to this session. The agent is working")
        await harness.chat.wait_idle()


async def test_p23_reference_adds_answer_of_other_session(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["The depth is 490 cm.", "Noted."], answers="Berth 70 has 490 cm (#2).")
    async with CommandHarness(tmp_path, model).open() as harness:
        await harness.run_all("How deep is berth 70?")
        source = harness.id
        await harness.run_all("/clear", "Plan the dredging.")
        text = await harness.run_all(f"/reference {source} depth of berth 70?")
        assert text.startswith("Berth 70 has 490 cm (#2).")
        assert f"From session {source}, #2; added to this one." in collapse(text)
        context = await harness.sessions.context(harness.id)
        last = decode_all(context.messages, context.format)[0][-1]
        assert is_aside(last) and "Berth 70 has 490 cm (#2)." in last.text and source in last.text
        assert len((await harness.run_all("/branch")).splitlines()) == 3


async def test_p23_reference_without_model_adds_passages(tmp_path: Path) -> None:
    async with CommandHarness(tmp_path, ScriptedAgentModel(["The depth is 490 cm."], repeat=True)).open() as harness:
        await harness.run_all("How deep is berth 70?")
        source = harness.id
        await harness.run_all("/clear")
        text = await harness.run_all(f"/reference {source} berth 70")
        assert "No model answered: these are the passages." in collapse(text)
        assert "How deep is berth 70?" in (await harness.texts())[-1]


async def test_reference_without_sources_adds_nothing(harness: CommandHarness) -> None:
    await harness.run_all("How deep is berth 70?")
    source = harness.id
    await harness.run_all("/clear")
    text = collapse(await harness.run_all(f"/reference {source} zeppelins"))
    assert "it was not added to this one" in text
    assert await harness.texts() == []


@pytest.mark.parametrize("line", ["/reference", "/reference 01", "/reference nowhere what then?"])
async def test_reference_without_session_or_question_reports_error(harness: CommandHarness, line: str) -> None:
    text = await harness.run_all(line)
    assert "/reference SESSION QUESTION" in text or "There is no session 'nowhere'" in text
