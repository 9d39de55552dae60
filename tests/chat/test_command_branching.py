"""/branch and /edit: back to something that was said, in a new session, before and after compactions (P10, P23)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from chats import read_long
from command_talk import LONG, Talk, flat

from holdfast.agent.events import SessionChanged
from holdfast.chat.commands import run_command
from holdfast.messages import Media, Message, Text
from holdfast.presets import preset_named

pytestmark = pytest.mark.anyio
TWO_KEPT = preset_named("pi", 1_000, 550)
"""Of messages at some length, two are kept."""


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    """The session of the pi document's branching examples: u1 a1 u2 a2 [compaction, two kept] u3 a3 u4 a4."""
    async with Talk(tmp_path, preset=TWO_KEPT).open() as talk:
        await talk.asks("u1", "u2")
        assert (await talk.says("/compact")).startswith("Compacted: ")
        assert await talk.shows() == "Summary u2 a2"
        await talk.asks("u3", "u4")
        yield talk


async def test_p10_branching_after_the_compaction(talk: Talk) -> None:
    source = talk.id
    page = await talk.types("/branch 3")
    assert await talk.shows() == "Summary u2 a2 u3"
    assert talk.id != source and talk.id in page.text and source in page.text
    assert "Press Enter to have it answered" in flat(page.text)
    assert talk.told[-1] == SessionChanged(talk.id, "forked", source)


async def test_p10_branching_before_the_compaction_undoes_it(talk: Talk) -> None:
    await talk.types("/branch 2")
    assert await talk.shows() == "u1 a1 u2"
    assert await talk.sessions.events(talk.id, kind="compaction") == []


async def test_p10_the_source_of_a_branch_is_untouched(talk: Talk) -> None:
    source = talk.id
    before = await talk.sessions.export(source)
    await talk.says("/branch 2", "Something else.")
    assert await talk.sessions.export(source) == before


async def test_enter_has_the_last_message_of_a_branch_answered(talk: Talk) -> None:
    await talk.says("/branch 2", "")
    assert await talk.shows() == "u1 a1 u2 a5"
    await talk.types("")
    assert await talk.shows() == "u1 a1 u2 a5"


async def test_p10_the_list_has_all_messages_of_the_user_before_and_after_the_compaction(talk: Talk) -> None:
    lines = (await talk.says("/branch")).splitlines()[:4]
    assert [line.split()[:3] for line in lines] == [
        ["1", "#1", "archived"],
        ["2", "#3", "u2"],
        ["3", "#6", "u3"],
        ["4", "#8", "u4"],
    ]


async def test_what_a_program_said_is_no_message_of_the_user(talk: Talk) -> None:
    await talk.says("/recall #1", "/recall #1-#2")
    assert len((await talk.says("/branch")).splitlines()) == 6


@pytest.mark.parametrize("written", ["#3", "3"])
async def test_a_message_is_named_by_its_number_or_its_reference(talk: Talk, written: str) -> None:
    await talk.types(f"/branch {written}")
    assert await talk.shows() == {"#3": "u1 a1 u2", "3": "Summary u2 a2 u3"}[written]


async def test_a_message_is_named_by_its_id(talk: Talk) -> None:
    events = await talk.sessions.events(talk.id, kind="message")
    await talk.types(f"/branch {events[2].id}")
    assert await talk.shows() == "u1 a1 u2"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/branch 5", "There is no message 5: they are 1 to 4, see /branch."),
        ("/branch 0", "There is no message 0: they are 1 to 4, see /branch."),
        ("/branch 99999999999999999999", "There is no message 99999999999999999999: they are 1 to 4, see /branch."),
        ("/branch #2", "#2 is not a message of yours: see /branch for those that are."),
        ("/branch 1 2", "'2' is one word too many: the command is /branch [N]."),
        ("/edit", "Say which message: /edit N [NEW TEXT], and /branch lists them."),
        ("/edit 9 no", "There is no message 9: they are 1 to 4, see /branch."),
    ],
)
async def test_wrong_numbers_change_nothing(talk: Talk, line: str, said: str) -> None:
    source = talk.id
    assert await talk.says(line) == said
    assert talk.id == source


async def test_a_reference_to_nothing_is_told(talk: Talk) -> None:
    assert "no event '#99'" in await talk.says("/branch #99")
    assert "no event 'zzz'" in await talk.says("/branch zzz")


async def test_p23_editing_a_message_forks_before_it_and_sends_the_new_text(talk: Talk) -> None:
    source = talk.id
    page = await talk.types("/edit 3 other words")
    assert await talk.shows() == "Summary u2 a2 other a5"
    assert (page.draft, talk.chat.record.parent) == (None, source)
    assert "Summary u2 a2 u3" in await shown_in(talk, source)


async def test_p23_without_a_text_the_old_one_is_a_draft(talk: Talk) -> None:
    page = await talk.types("/edit 2")
    assert (page.draft or "").startswith(f"u2 {LONG.strip()}")
    assert await talk.shows() == "u1 a1"


async def test_p23_the_very_first_message_can_be_edited(talk: Talk) -> None:
    old = talk.chat.record
    page = await talk.types("/edit 1")
    new = talk.chat.record
    assert (page.draft or "").startswith("u1 ")
    assert (await talk.shows(), new.parent) == ("", None)
    assert (new.system, new.tools, new.model) == (old.system, old.tools, old.model)
    await talk.types("/sessions " + old.id)
    await talk.types("/edit 1 another task")
    assert await talk.shows() == "another a5"


async def test_a_text_of_several_lines_is_sent_as_it_is(talk: Talk) -> None:
    await talk.types("/edit 1 one\n  two\nthree")
    assert (await talk.texts())[0] == "one\n  two\nthree"


async def test_editing_after_an_undo_has_the_context_that_was_there(talk: Talk) -> None:
    """What was said since the compaction stays, and the compaction stays undone."""
    await talk.says("/undo")
    await talk.asks("u5")
    await talk.types("/edit 5 other")
    assert await talk.shows() == "u1 a1 u2 a2 u3 a3 u4 a4 other a6"


async def test_editing_after_two_undos_has_no_compaction_at_all(talk: Talk) -> None:
    await talk.says("/compact", "/undo", "/undo", "u5")
    await talk.types("/edit 5 other")
    assert await talk.shows() == "u1 a1 u2 a2 u3 a3 u4 a4 other a6"
    assert await talk.sessions.verify(talk.id) == []


async def test_editing_right_after_a_compaction_keeps_it(talk: Talk) -> None:
    await talk.says("/compact", "u5")
    await talk.types("/edit 5 other")
    assert await talk.shows() == "Summary u4 a4 other a6"


async def test_an_image_does_not_come_along_into_the_draft(talk: Talk) -> None:
    image = Media("image", mime="image/png", data="aGFyYm9y")
    await talk.sessions.append(talk.id, Message("user", (Text("What is this?"), image)))
    page = await talk.types("/edit 5")
    assert page.draft == "What is this?"
    assert "does not come along" in flat(page.text)


async def test_nothing_moves_under_a_running_agent(tmp_path: Path) -> None:
    lines = ("/branch 1", "/edit 1 x", "/undo", "/clear", "/handoff x", "/recall #1", "/pin #1", "/preset pi")
    async with Talk(tmp_path, [read_long(), "Done."]).open() as talk:
        source = talk.id
        talk.chat.say("Read it.")
        await talk.hears("ToolStarted")
        answers = [await run_command(talk.chat, line) for line in lines]
        assert {page.text for page in answers} == {"The agent is working: wait until it is done, or stop it first."}
        await talk.chat.wait_idle()
        assert (talk.id, (await talk.texts())[-1]) == (source, "Done.")


async def shown_in(talk: Talk, session_id: str) -> str:
    await talk.types(f"/sessions {session_id}")
    return await talk.shows()


class TestTheDocumentsCompactions:
    """P7, with the pi preset itself."""

    async def test_p7_the_second_compaction_does_not_cross_the_first(self, tmp_path: Path) -> None:
        async with Talk(tmp_path, preset=TWO_KEPT).open() as talk:
            await talk.asks("u1", "u2", "u3", "u4")
            await talk.says("/compact")
            assert await talk.shows() == "Summary u4 a4"
            await talk.asks("u5", "u6", "u7")
            talk.chat.use(preset=preset_named("pi", 1_000, 20_000))
            await talk.says("/compact")
            assert await talk.shows() == "Summary u5 a5 u6 a6 u7 a7"

    async def test_p7_three_kept_snap_forward_to_a_user_message(self, tmp_path: Path) -> None:
        async with Talk(tmp_path, preset=TWO_KEPT).open() as talk:
            await talk.asks("u1", "u2", "u3", "u4")
            await talk.says("/compact")
            await talk.asks("u5", "u6", "u7")
            talk.chat.use(preset=preset_named("pi", 1_000, 800))
            await talk.says("/compact")
            assert await talk.shows() == "Summary u7 a7"
