"""/rewind: a branch from any step, with the files that tools changed since."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from command_harness import CommandHarness, collapse

from holdfast.chat.commands.rewind import steps
from holdfast.messages import ToolCall
from holdfast.models.calls import StepReply

pytestmark = pytest.mark.anyio


def calling(*calls: ToolCall) -> StepReply:
    return StepReply((), "I work.", calls)


def write(path: str, text: str, id: str) -> ToolCall:
    return ToolCall(id, "write_file", {"path": path, "content": text})


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[CommandHarness]:
    """A user's message, three steps that change files, one that fails, and a last word."""
    script = [
        calling(write("a.py", "1", "c1"), write("b b.py", "1", "c2")),
        calling(ToolCall("c3", "edit_file", {"path": "a.py", "old": "1", "new": "2"})),
        calling(ToolCall("c4", "edit_file", {"path": "gone.py", "old": "1", "new": "2"})),
        calling(ToolCall("c5", "run_command", {"command": "echo 3"})),
        "Done.",
    ]
    async with CommandHarness(tmp_path, script).open() as harness:
        await harness.run("Write two files.")
        yield harness


async def test_every_step_is_listed_newest_first_with_what_changed_since(harness: CommandHarness) -> None:
    choices = (await harness.run("/rewind")).choices
    assert choices is not None and choices.command == "/rewind"
    assert [item.title for item in choices.items] == [
        "Done.",
        "run_command echo 3",
        "edit_file gone.py",
        "edit_file a.py",
        "write_file a.py, write_file b b.py",
        "you: Write two files.",
    ]
    assert [item.about for item in choices.items] == [
        "nothing changed since",
        "nothing changed since",
        "1 command run since",
        "1 command run since",
        "1 file changed since: a.py; 1 command run since",
        "2 files changed since: a.py, b b.py; 1 command run since",
    ]
    assert "I work." in choices.items[4].preview and "  a.py" in choices.items[4].preview


async def test_rewind_forks_after_the_results_of_a_step_and_names_the_files(harness: CommandHarness) -> None:
    source, before = harness.id, await harness.sessions.export(harness.id)
    (harness.chat.folder.root / ".git").mkdir()
    step = (await steps(harness.chat))[1]
    page = await harness.run(f"/rewind #{step.first.seq}")
    assert harness.id != source and await harness.sessions.export(source) == before
    events = await harness.sessions.events(harness.id, kind="message")
    assert events[-1].id == step.last.id and await harness.sessions.waiting(harness.id) == ()
    shown = collapse(page.text)
    assert "1 file changed since: a.py; 1 command run since." in shown
    assert "!git diff -- a.py" in shown and "!git restore -- a.py" in shown


async def test_rewind_before_everything_names_all_files_quoted_for_a_shell(harness: CommandHarness) -> None:
    (harness.chat.folder.root / ".git").mkdir()
    page = await harness.run("/rewind #1")
    assert "!git restore -- a.py 'b b.py'" in collapse(page.text)
    assert "Press Enter to have it answered" in collapse(page.text)


async def test_rewind_to_what_is_no_step_is_refused(harness: CommandHarness) -> None:
    source = harness.id
    assert "#999" in (await harness.run("/rewind #999")).text
    assert harness.id == source


async def test_rewind_before_a_compaction_has_the_uncompacted_context(tmp_path: Path) -> None:
    from test_command_branch import TWO_KEPT

    async with CommandHarness(tmp_path, preset=TWO_KEPT).open() as harness:
        await harness.send_prompts("u1", "u2")
        await harness.run("/compact")
        await harness.run("/rewind #2")
        assert await harness.context_names() == "u1 a1"
