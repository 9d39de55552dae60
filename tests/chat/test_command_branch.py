"""/branch and /edit, before and after compactions (P10, P23)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from chat_harness import read_long
from command_harness import LONG, CommandHarness, collapse

from holdfast.agent.events import SessionChanged
from holdfast.chat.commands import run_command
from holdfast.compaction.presets import preset
from holdfast.messages import Media, Message, Text

pytestmark = pytest.mark.anyio
TWO_KEPT = preset("pi", reserve=1_000, keep=550)
"""Keeps two long messages."""


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[CommandHarness]:
    """The session of the pi document's branching examples: u1 a1 u2 a2 [compaction, two kept] u3 a3 u4 a4."""
    async with CommandHarness(tmp_path, preset=TWO_KEPT).open() as harness:
        await harness.send_prompts("u1", "u2")
        assert (await harness.run_all("/compact")).startswith("Compacted: ")
        assert await harness.context_names() == "Summary u2 a2"
        await harness.send_prompts("u3", "u4")
        yield harness


async def test_p10_branch_after_compaction_keeps_summary(harness: CommandHarness) -> None:
    source = harness.id
    page = await harness.run("/branch 3")
    assert await harness.context_names() == "Summary u2 a2 u3"
    assert harness.id != source and harness.id[-6:] in page.text and source[-6:] in page.text
    assert "Press Enter to have it answered" in collapse(page.text)
    assert harness.events[-1] == SessionChanged(harness.id, "forked", source)


async def test_p10_branch_before_compaction_has_uncompacted_context(harness: CommandHarness) -> None:
    await harness.run("/branch 2")
    assert await harness.context_names() == "u1 a1 u2"
    assert await harness.sessions.events(harness.id, kind="compaction") == []


async def test_p10_branch_leaves_source_unchanged(harness: CommandHarness) -> None:
    source = harness.id
    before = await harness.sessions.export(source)
    await harness.run_all("/branch 2", "Something else.")
    assert await harness.sessions.export(source) == before


async def test_enter_after_branch_answers_last_message(harness: CommandHarness) -> None:
    await harness.run_all("/branch 2", "")
    assert await harness.context_names() == "u1 a1 u2 a5"
    await harness.run("")
    assert await harness.context_names() == "u1 a1 u2 a5"


async def test_p10_branch_without_argument_lists_archived_and_visible_messages(harness: CommandHarness) -> None:
    lines = (await harness.run_all("/branch")).splitlines()[:4]
    assert [line.split()[:3] for line in lines] == [
        ["1", "#1", "archived"],
        ["2", "#3", "u2"],
        ["3", "#6", "u3"],
        ["4", "#8", "u4"],
    ]


async def test_branch_list_omits_restored_messages(harness: CommandHarness) -> None:
    await harness.run_all("/recall #1", "/recall #1-#2")
    assert len((await harness.run_all("/branch")).splitlines()) == 6


@pytest.mark.parametrize("written", ["#3", "3"])
async def test_branch_accepts_number_or_reference(harness: CommandHarness, written: str) -> None:
    await harness.run(f"/branch {written}")
    assert await harness.context_names() == {"#3": "u1 a1 u2", "3": "Summary u2 a2 u3"}[written]


async def test_branch_accepts_event_id(harness: CommandHarness) -> None:
    events = await harness.sessions.events(harness.id, kind="message")
    await harness.run(f"/branch {events[2].id}")
    assert await harness.context_names() == "u1 a1 u2"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/branch 5", "There is no message 5: choose 1 to 4, see /branch."),
        ("/branch 0", "There is no message 0: choose 1 to 4, see /branch."),
        (
            "/branch 99999999999999999999",
            "There is no message 99999999999999999999: choose 1 to 4, see /branch.",
        ),
        ("/branch #2", "#2 is not a user message: /branch lists them."),
        ("/branch 1 2", "Unexpected argument '2': the usage is /branch [N]."),
        ("/edit", "Name a message: /edit N [NEW TEXT]; /branch lists them."),
        ("/edit 9 no", "There is no message 9: choose 1 to 4, see /branch."),
    ],
)
async def test_branch_and_edit_with_invalid_arguments_change_nothing(
    harness: CommandHarness, line: str, expected: str
) -> None:
    source = harness.id
    assert await harness.run_all(line) == expected
    assert harness.id == source


async def test_branch_with_unknown_reference_reports_error(harness: CommandHarness) -> None:
    assert "no event '#99'" in await harness.run_all("/branch #99")
    assert "no event 'zzz'" in await harness.run_all("/branch zzz")


async def test_p23_edit_forks_before_message_and_sends_new_text(harness: CommandHarness) -> None:
    source = harness.id
    page = await harness.run("/edit 3 other words")
    assert await harness.context_names() == "Summary u2 a2 other a5"
    assert (page.draft, harness.chat.record.parent) == (None, source)
    assert "Summary u2 a2 u3" in await context_names_in(harness, source)


async def test_p23_edit_without_text_returns_old_text_as_draft(harness: CommandHarness) -> None:
    page = await harness.run("/edit 2")
    assert (page.draft or "").startswith(f"u2 {LONG.strip()}")
    assert await harness.context_names() == "u1 a1"


async def test_p23_edit_of_first_message_starts_equal_session(harness: CommandHarness) -> None:
    old = harness.chat.record
    page = await harness.run("/edit 1")
    new = harness.chat.record
    assert (page.draft or "").startswith("u1 ")
    assert (await harness.context_names(), new.parent) == ("", None)
    assert (new.system, new.tools, new.model) == (old.system, old.tools, old.model)
    await harness.run("/sessions " + old.id)
    await harness.run("/edit 1 another task")
    assert await harness.context_names() == "another a5"


async def test_edit_with_multiline_text_sends_it_unchanged(harness: CommandHarness) -> None:
    await harness.run("/edit 1 one\n  two\nthree")
    assert (await harness.texts())[0] == "one\n  two\nthree"


async def test_edit_after_undo_keeps_compaction_undone(harness: CommandHarness) -> None:
    """Messages since the compaction stay, and the compaction stays undone."""
    await harness.run_all("/undo")
    await harness.send_prompts("u5")
    await harness.run("/edit 5 other")
    assert await harness.context_names() == "u1 a1 u2 a2 u3 a3 u4 a4 other a6"


async def test_edit_after_two_undos_has_no_compaction(harness: CommandHarness) -> None:
    await harness.run_all("/compact", "/undo", "/undo", "u5")
    await harness.run("/edit 5 other")
    assert await harness.context_names() == "u1 a1 u2 a2 u3 a3 u4 a4 other a6"
    assert await harness.sessions.verify(harness.id) == []


async def test_edit_right_after_compaction_keeps_it(harness: CommandHarness) -> None:
    await harness.run_all("/compact", "u5")
    await harness.run("/edit 5 other")
    assert await harness.context_names() == "Summary u4 a4 other a6"


async def test_edit_of_message_with_image_drafts_text_only(harness: CommandHarness) -> None:
    image = Media("image", mime="image/png", data="aGFyYm9y")
    await harness.sessions.append(harness.id, Message("user", (Text("What is this?"), image)))
    page = await harness.run("/edit 5")
    assert page.draft == "What is this?"
    assert "is not copied" in collapse(page.text)


async def test_session_commands_while_agent_runs_are_refused(tmp_path: Path) -> None:
    lines = ("/branch 1", "/edit 1 x", "/undo", "/clear", "/handoff x", "/recall #1", "/pin #1", "/preset pi")
    async with CommandHarness(tmp_path, [read_long(), "Done."]).open() as harness:
        source = harness.id
        harness.chat.send("Read it.")
        await harness.wait_for_event("ToolStarted")
        answers = [await run_command(harness.chat, line) for line in lines]
        assert {page.text for page in answers} == {"The agent is working: wait until it is done, or stop it first."}
        await harness.chat.wait_idle()
        assert (harness.id, (await harness.texts())[-1]) == (source, "Done.")


async def context_names_in(harness: CommandHarness, session_id: str) -> str:
    await harness.run(f"/sessions {session_id}")
    return await harness.context_names()


class TestPiDocumentCompactions:
    """P7, with the pi preset itself."""

    async def test_p7_second_compaction_does_not_cross_the_first(self, tmp_path: Path) -> None:
        async with CommandHarness(tmp_path, preset=TWO_KEPT).open() as harness:
            await harness.send_prompts("u1", "u2", "u3", "u4")
            await harness.run_all("/compact")
            assert await harness.context_names() == "Summary u4 a4"
            await harness.send_prompts("u5", "u6", "u7")
            harness.chat.configure(preset=preset("pi", reserve=1_000, keep=20_000))
            await harness.run_all("/compact")
            assert await harness.context_names() == "Summary u5 a5 u6 a6 u7 a7"

    async def test_p7_cut_snaps_forward_to_user_message(self, tmp_path: Path) -> None:
        async with CommandHarness(tmp_path, preset=TWO_KEPT).open() as harness:
            await harness.send_prompts("u1", "u2", "u3", "u4")
            await harness.run_all("/compact")
            await harness.send_prompts("u5", "u6", "u7")
            harness.chat.configure(preset=preset("pi", reserve=1_000, keep=800))
            await harness.run_all("/compact")
            assert await harness.context_names() == "Summary u7 a7"
