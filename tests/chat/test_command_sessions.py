"""/tree, /sessions, /clear, /handoff and /reference (P10, P23)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_harness import CommandHarness, collapse

from holdfast import SessionService, SQLiteStore
from holdfast.agent.events import SessionChanged
from holdfast.chat.commands import run_command
from holdfast.chat.commands.sessions import format_age
from holdfast.messages import decode_all, is_aside
from holdfast.models import ScriptedAgentModel, ScriptedModel
from holdfast.sessions.session_ids import shorten_ids

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
    assert harness.id != old and text == (
        f"New session {harness.id[-6:]}. The old one is kept: /sessions {old[-6:]} switches back."
    )
    assert await harness.texts() == []
    await harness.run_all(f"/sessions {old[-6:]}")
    assert await harness.context_names() == "u1 a1"


async def test_sessions_offers_those_of_this_folder_first_and_marks_current(harness: CommandHarness) -> None:
    first, here = harness.id, harness.chat.folder.root
    await harness.run_all("Mend the crane.", "/clear")
    second = harness.id
    await harness.run_all("Paint the buoys.\nAll of them.", f"/sessions {first}")
    other = await harness.sessions.create(metadata={"folder": "/elsewhere", "title": "Dredging"})
    await harness.sessions.append(other.id, {"role": "user", "content": "How deep?"})
    await harness.sessions.create()
    offered = (await harness.run("/sessions")).choices
    assert offered is not None and offered.command == "/sessions"
    assert [(one.value, one.title, one.about, one.current) for one in offered.items] == [
        (second[-6:], "Paint the buoys.", f"2 events · {here} · scripted · {second[-6:]}", False),
        (first[-6:], "Mend the crane.", f"2 events · {here} · scripted · {first[-6:]} · this session", True),
        (other.id[-6:], "Dredging · How deep?", f"1 event · /elsewhere · {other.id[-6:]}", False),
    ]
    text = await harness.run_all(f"/sessions {other.id[-6:]}")
    done = (
        f"Now in session {other.id[-6:]}: Dredging · How deep? It worked in /elsewhere; the agent now works in {here}."
    )
    assert "".join(text.split()) == "".join(done.split()), "a long path is broken between lines"


async def test_sessions_name_the_tool_and_the_filter_finds_what_they_contain(harness: CommandHarness) -> None:
    await harness.run("Mend the crane.")
    about = {"imported": {"from": "codex", "id": "x"}, "folder": "/elsewhere"}
    other = await harness.sessions.create(metadata=about, model="gpt-5")
    await harness.sessions.append(other.id, {"role": "user", "content": "# AGENTS.md instructions for /elsewhere"})
    await harness.sessions.append(other.id, {"role": "user", "content": "How deep is it?"})
    await harness.sessions.append(other.id, {"role": "assistant", "content": "At the sluice 3 m."})
    offered = (await harness.run("/sessions")).choices
    assert offered is not None and offered.search is not None
    listed = {one.value: (one.title, one.about) for one in offered.items}
    assert listed[other.id[-6:]] == (
        "How deep is it?",
        f"3 events · /elsewhere · gpt-5 · codex · {other.id[-6:]}",
    )
    assert await offered.search("sluice deep") == set() and await offered.search("sluice 3") == {other.id[-6:]}


def test_age_is_in_its_largest_unit() -> None:
    now = datetime(2026, 5, 4, 12, tzinfo=UTC)
    ages = {"2026-05-04T11:59:30Z": "now", "2026-05-04T11:55:00": "5 min", "2026-05-04T09:00:00Z": "3 h"}
    ages |= {"2026-05-02T12:00:00.5Z": "1 d", "2026-04-13T12:00:00Z": "3 wk", "2026-05-05T00:00:00Z": "now", "": ""}
    assert {time: format_age(time, now) for time in ages} == ages


def test_shortened_ids_are_unique_ends_of_generated_ids() -> None:
    ids = ["0" * 18 + "abcdef", "1" * 17 + "2abcdef", "abcdef" + "3" * 18, "my-own-name-of-a-session"]
    ids.append("6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
    assert shorten_ids(ids) == dict(zip(ids, ["0abcdef", "2abcdef", "333333", ids[3], "c964ff"], strict=True))


async def test_sessions_accepts_unique_id_prefix(harness: CommandHarness) -> None:
    for name in ("harbor-1", "harbor-2", "quay"):
        await harness.sessions.create(id=name)
    await harness.run_all("/sessions qu")
    assert harness.id == "quay"
    assert collapse(await harness.run_all("/sessions harbor")) == (
        "'harbor' is part of several session ids, harbor-2, harbor-1: use one of these."
    )
    await harness.run_all("/sessions harbor-2")
    assert harness.id == "harbor-2"
    assert "There is no session 'pier'" in await harness.run_all("/sessions pier")
    assert "Unexpected argument" in await harness.run_all("/sessions a b")


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
        f"  {root[-6:]}",
        f"  ├─ {first[-6:]}",
        f"  │  └─ {inner[-6:]}",
        f"  └─ {second[-6:]}",
        f"* {harness.id[-6:]}",
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
        assert harness.id != old and harness.id[-6:] in page.text and old[-6:] in page.text
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
        assert f"From session {source[-6:]}, #2; added to this one." in collapse(text)
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
