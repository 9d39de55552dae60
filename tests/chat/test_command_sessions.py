"""/tree, /sessions, /clear, /handoff and /reference: many conversations, and what goes between them (P10, P23)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from command_talk import Talk, flat

from holdfast import SessionService, SQLiteStore
from holdfast.agent.events import SessionChanged
from holdfast.chat.commands import run_command
from holdfast.messages import decode_all, is_aside
from holdfast.models import ScriptedAgentModel, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    (folder := tmp_path / "harbor").mkdir()
    sessions = SessionService(SQLiteStore(tmp_path / "sessions.db"))
    async with sessions, Talk(folder, sessions=sessions).open() as talk:
        yield talk


async def test_clear_begins_a_new_session_and_keeps_the_old_one(talk: Talk) -> None:
    await talk.asks("u1")
    old = talk.id
    text = await talk.says("/clear")
    assert talk.id != old and talk.id in text and old in text
    assert await talk.texts() == []
    await talk.says(f"/sessions {old}")
    assert await talk.shows() == "u1 a1"


async def test_sessions_are_listed_newest_first_with_the_current_one_marked(talk: Talk) -> None:
    first = talk.id
    await talk.says("Mend the crane.", "/clear")
    second = talk.id
    await talk.says("Paint the buoys.\nAll of them.", f"/sessions {first}")
    rows = (await talk.says("/sessions")).splitlines()[1:3]
    assert [row.split() for row in rows] == [
        [second, row_date(rows[0]), "2", "Paint", "the", "buoys."],
        ["*", first, row_date(rows[1]), "2", "Mend", "the", "crane."],
    ]


def row_date(row: str) -> str:
    date = row.replace("*", " ").split()[1]
    assert len(date) == len("2026-01-31")
    return date


async def test_a_session_is_chosen_by_what_only_its_id_begins_with(talk: Talk) -> None:
    for name in ("harbor-1", "harbor-2", "quay"):
        await talk.sessions.create(id=name)
    await talk.says("/sessions qu")
    assert talk.id == "quay"
    assert flat(await talk.says("/sessions harbor")).startswith("2 sessions begin with 'harbor': write more of the id")
    await talk.says("/sessions harbor-2")
    assert talk.id == "harbor-2"
    assert "There is no session 'pier'" in await talk.says("/sessions pier")
    assert "one word too many" in await talk.says("/sessions a b")


async def test_many_sessions_are_cut_short_in_the_list_and_not_in_the_tree(talk: Talk) -> None:
    for number in range(25):
        await talk.sessions.create(id=f"s{number}")
    assert "and 6 older ones: /tree shows them all" in await talk.says("/sessions")
    assert len((await talk.says("/tree")).splitlines()) == 27


async def test_p10_the_tree_shows_what_was_forked_from_what(talk: Talk) -> None:
    await talk.asks("u1", "u2")
    root = talk.id
    await talk.says("/branch 1")
    first = talk.id
    await talk.says("", "/branch 1")
    inner = talk.id
    await talk.says(f"/sessions {root}", "/branch 2")
    second = talk.id
    await talk.says("/clear")
    rows = [line.rpartition("  20")[0].rstrip() for line in (await talk.says("/tree")).splitlines()[1:]]
    assert rows == [
        f"  {root}",
        f"  ├─ {first}",
        f"  │  └─ {inner}",
        f"  └─ {second}",
        f"* {talk.id}",
    ]


async def test_a_tree_as_deep_as_it_may_get(talk: Talk) -> None:
    await talk.asks("u1")
    for _ in range(30):
        await talk.chat.fork(None)
    assert len((await talk.says("/tree")).splitlines()) == 32


async def test_p23_a_handoff_drafts_the_first_message_of_a_new_session(tmp_path: Path) -> None:
    drafted = "The crane on quay 3 has a worn cable, see /harbor/crane.md."
    model = ScriptedAgentModel(["The cable is worn."], answers=drafted)
    async with Talk(tmp_path, model).open() as talk:
        await talk.says("Look at /harbor/crane.md on quay 3: is the cable worn?")
        old = talk.id
        page = await talk.types("/handoff replace the cable")
        assert talk.id != old and talk.id in page.text and old in page.text
        assert (page.draft or "").startswith("replace the cable\n")
        assert drafted in (page.draft or "")
        assert await talk.texts() == []
        assert talk.told[-1] == SessionChanged(talk.id, "handed_off")


async def test_a_handoff_needs_a_goal(talk: Talk) -> None:
    old = talk.id
    assert (await talk.says("/handoff")).startswith("A handoff needs a goal")
    assert talk.id == old


async def test_a_handoff_without_a_model_is_made_from_the_ledger(tmp_path: Path) -> None:
    async with Talk(tmp_path, ScriptedAgentModel(["It is worn."])).open() as talk:
        await talk.says("Is the cable of the crane worn?")
        page = await talk.types("/handoff replace the cable")
        assert "the ledger instead" in flat(page.text)
        assert "Is the cable of the crane worn?" in (page.draft or "")


async def test_a_handoff_can_be_stopped(tmp_path: Path) -> None:
    async with Talk(tmp_path, ScriptedAgentModel(["It is worn."])).open() as talk:
        await talk.says("Is the cable worn?")
        old = talk.id
        talk.chat.summarizer = lambda text: talk.chat.abort() or "never read"
        assert (await run_command(talk.chat, "/handoff replace it")).text.startswith("It was aborted")
        assert talk.id == old


async def test_a_handoff_is_not_lost_when_something_was_said_meanwhile(tmp_path: Path) -> None:
    async with Talk(tmp_path, ScriptedAgentModel(["It is worn.", "Yes?"], delay=0.01)).open() as talk:
        await talk.says("Is the cable worn?")
        old = talk.id
        talk.chat.summarizer = ScriptedModel(lambda call: talk.chat.say("Hello?") or "The cable is worn.")
        page = await run_command(talk.chat, "/handoff replace it")
        assert page.text.startswith("The agent is working") and "The cable is worn." in (page.draft or "")
        await talk.chat.wait_idle()
        assert (talk.id, (await talk.texts())[-1]) == (old, "Yes?")


async def test_an_answer_is_not_lost_when_something_was_said_meanwhile(tmp_path: Path) -> None:
    async with Talk(tmp_path, ScriptedAgentModel(["It is worn.", "Yes?"], delay=0.01)).open() as talk:
        await talk.says("Is the cable worn?")
        talk.chat.summarizer = ScriptedModel(lambda call: talk.chat.say("Hello?") or "It is worn (#2).")
        page = await run_command(talk.chat, f"/reference {talk.id} cable worn")
        assert flat(page.text).startswith("It is worn (#2). It was not added to this session. The agent is working")
        await talk.chat.wait_idle()


async def test_p23_another_session_is_asked_and_its_answer_added(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["The depth is 490 cm.", "Noted."], answers="Berth 70 has 490 cm (#2).")
    async with Talk(tmp_path, model).open() as talk:
        await talk.says("How deep is berth 70?")
        source = talk.id
        await talk.says("/clear", "Plan the dredging.")
        text = await talk.says(f"/reference {source} depth of berth 70?")
        assert text.startswith("Berth 70 has 490 cm (#2).")
        assert f"From session {source}, #2; added to this one." in flat(text)
        context = await talk.sessions.context(talk.id)
        last = decode_all(context.messages, context.format)[0][-1]
        assert is_aside(last) and "Berth 70 has 490 cm (#2)." in last.text and source in last.text
        assert len((await talk.says("/branch")).splitlines()) == 3


async def test_p23_without_a_model_the_passages_are_added(tmp_path: Path) -> None:
    async with Talk(tmp_path, ScriptedAgentModel(["The depth is 490 cm."], repeat=True)).open() as talk:
        await talk.says("How deep is berth 70?")
        source = talk.id
        await talk.says("/clear")
        text = await talk.says(f"/reference {source} berth 70")
        assert "No model answered: these are the passages." in flat(text)
        assert "How deep is berth 70?" in (await talk.texts())[-1]


async def test_what_was_not_found_is_not_added(talk: Talk) -> None:
    await talk.says("How deep is berth 70?")
    source = talk.id
    await talk.says("/clear")
    text = flat(await talk.says(f"/reference {source} zeppelins"))
    assert "it was not added to this one" in text
    assert await talk.texts() == []


@pytest.mark.parametrize("line", ["/reference", "/reference 01", "/reference nowhere what then?"])
async def test_a_reference_needs_a_session_and_a_question(talk: Talk, line: str) -> None:
    text = await talk.says(line)
    assert "/reference SESSION QUESTION" in text or "There is no session 'nowhere'" in text
