"""The chat's widgets by their keys, without a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import stage
from textual import events

from holdfast.agent.events import Replied, RunFinished, RunStarted, Said, ToolFinished, ToolStarted, Unsent
from holdfast.agent.tools import Question
from holdfast.messages import ToolCall
from holdfast.terminal.look import ASCII, Look

pytestmark = pytest.mark.anyio
RM = Question("run_command", "rm -r boats", ToolCall("1", "run_command", {"command": "rm -r boats"}))


async def test_a_prompt_and_its_reply(tmp_path: Path) -> None:
    async with stage(tmp_path, "The tide turns at **noon**.") as on:
        await on.sees("holdfast a new session in harbor, with script:story.json", "Ask, or /help")
        await on.types("When?")
        await on.press("enter")
        await on.sees("❯ When?", "  The tide turns at noon.")
        assert on.app.input.text == ""


async def test_history_goes_back_and_forth_and_keeps_what_was_being_typed(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        for prompt in ("first", "second"):
            await on.types(prompt)
            await on.press("enter")
            await on.rests()
        await on.types("unsent")
        seen = []
        for key in ("up", "up", "up", "down", "down", "down"):
            await on.press(key)
            seen.append(on.app.input.text)
        assert seen == ["second", "first", "first", "second", "unsent", "unsent"]


async def test_a_new_line_is_typed_in_many_ways(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        for key in ("a", "shift+enter", "b", "alt+enter", "c", "ctrl+j", "d", "\\", "enter", "e"):
            await on.press(key)
        assert on.app.input.text == "a\nb\nc\nd\ne" and on.app.input.size.height == 5
        await on.press("up")
        assert on.app.input.cursor_location[0] == 3


async def test_up_moves_through_a_wrapped_line_before_it_goes_back_in_history(tmp_path: Path) -> None:
    async with stage(tmp_path, size=(40, 12)) as on:
        on.app.input.past.add("before")
        await on.types("word " * 12)
        await on.press("up")
        assert on.app.input.text.startswith("word") and on.app.input.size.height == 2
        await on.press("up")
        assert on.app.input.text == "before"


async def test_a_paste_of_many_lines_is_one_text_without_control_characters(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        pasted = "\r\n".join(f"line {number}\t\x1b[31m" for number in range(500))
        on.app.input.post_message(events.Paste(pasted))
        await on.pilot.pause()
        lines = on.app.input.text.split("\n")
        assert len(lines) == 500 and lines[0] == "line 0\t^[[31m" and on.app.input.size.height <= 8
        await on.press("enter")
        await on.sees("▸ 488 more lines")


async def test_completions_are_a_list_that_tab_and_arrows_choose_from(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.types("/aut")
        await on.sees("/autocompact  compact by itself")
        await on.press("tab")
        assert on.app.input.text == "/autocompact "
        await on.sees("  /autocompact on\n  /autocompact off\n")
        await on.press("down", "down")
        assert on.app.input.text == "/autocompact off" and "❯ /autocompact off" in on.text
        await on.press("up")
        assert on.app.input.text == "/autocompact on"
        await on.press("escape")
        assert not on.app.completions.display and on.app.input.text == "/autocompact on"
        await on.press("ctrl+c")
        await on.types("/s")
        await on.sees("/sessions", "/search")
        await on.press("tab", "tab")
        assert on.app.input.text == "/sessions"


async def test_a_question_takes_the_inputs_place_and_gives_it_back(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.conversation.tell(ToolStarted(on.chat.record.id, RM.call.id, "run_command", "rm"))
        worker = on.app.run_worker(on.conversation.questions.ask(RM))
        await on.sees("May the agent use run_command?", "$ rm -r boats", "y yes", "run_command rm · waits for you")
        await on.press("x", "enter")
        assert worker.result is None
        await on.press("a")
        await on.until(lambda: worker.result == "always")
        await on.sees("Ask, or /help")
        assert on.app.focused is on.app.input


async def test_a_question_waits_for_somebody_who_types(tmp_path: Path) -> None:
    """A y in the middle of a word is no yes."""
    async with stage(tmp_path) as on:
        await on.press("m", "a", "n")
        worker = on.app.run_worker(on.conversation.questions.ask(RM))
        await on.until(lambda: on.conversation.questions.open is not None)
        await on.press("y")
        assert on.app.input.text == "many" and worker.result is None
        await on.sees("May the agent use run_command?")
        await on.press("n")
        await on.until(lambda: worker.result == "no")
        await on.sees("❯ many")


async def test_a_long_question_is_scrolled_and_its_keys_stay_in_sight(tmp_path: Path) -> None:
    async with stage(tmp_path, size=(40, 12)) as on:
        old, new = ("\n".join(f"{word} {number}" for number in range(40)) for word in ("old", "new"))
        call = ToolCall("1", "edit_file", {"path": "tides.csv", "old": old, "new": new})
        worker = on.app.run_worker(on.conversation.questions.ask(Question("edit_file", "tides.csv", call)))
        await on.sees("- old 0", "y yes")
        for _ in range(20):
            await on.press("pagedown")
        await on.sees("+ new 39", "y yes")
        await on.press("y")
        await on.until(lambda: worker.result == "yes")


async def test_the_transcript_follows_its_end_unless_somebody_reads_further_up(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        session = on.chat.record.id
        on.conversation.tell(RunStarted(session, "Count."))
        for number in range(100):
            on.conversation.tell(Said(session, "text", f"number {number}\n"))
        await on.sees("number 99")
        await on.press("pageup", "pageup")
        await on.sees("more")
        top = on.text.split("\n")[0]
        for number in range(100, 120):
            on.conversation.tell(Said(session, "text", f"number {number}\n"))
        await on.sees(f"↓ {on.app.view.below} more")
        assert on.text.split("\n")[0] == top and on.app.view.below > 20
        await on.press("ctrl+end")
        await on.sees("number 119")
        await on.press("ctrl+home")
        await on.sees("❯ Count.")


async def test_one_entry_is_unfolded_by_keys_or_by_a_click(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        session = on.chat.record.id
        for name in ("first", "second"):
            on.conversation.tell(ToolStarted(session, name, "read_file", name))
            on.conversation.tell(ToolFinished(session, name, "read_file", f"the {name} answer"))
        await on.sees("✓ read_file second")
        await on.press("shift+tab", "up", "enter")
        await on.sees("│ the first answer")
        assert "│ the second answer" not in on.text
        await on.press("escape")
        row = next(place for place, line in enumerate(on.text.split("\n")) if "read_file second" in line)
        await on.pilot.click(on.app.view, offset=(6, row))
        await on.sees("│ the second answer")
        await on.press("ctrl+o", "ctrl+o")
        await on.until(lambda: "│" not in on.text)


async def test_what_was_never_heard_returns_to_the_input(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.types("a new thought")
        on.conversation.tell(Unsent(on.chat.record.id, "Mind the pier."))
        await on.sees("❯ Mind the pier.\n  a new thought")


async def test_every_width_and_height_is_drawn(tmp_path: Path) -> None:
    async with stage(tmp_path, look=Look(ASCII, colour=False)) as on:
        session = on.chat.record.id
        on.conversation.tell(RunStarted(session, "Tell me of the harbor."))
        on.conversation.tell(Replied(session, "e", "# Berths\n\n" + "It has **forty** berths. " * 20))
        on.conversation.tell(ToolStarted(session, "c", "run_command", "echo " + "word " * 40))
        for size in ((40, 12), (120, 40), (7, 3), (1, 1), (80, 24)):
            await on.pilot.resize_terminal(*size)
            await on.pilot.pause()
            lines = on.text.split("\n")
            assert len(lines) == size[1] and max(map(len, lines)) <= size[0] and on.text.isascii()
        on.conversation.tell(RunFinished(session, "done"))
        await on.sees("> Tell me of the harbor.", "forty")


async def test_what_is_marked_with_the_mouse_is_copied(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.conversation.tell(Replied(on.chat.record.id, "e", "The tide turns at noon."))
        await on.sees("The tide turns at noon.")
        row = next(place for place, line in enumerate(on.text.split("\n")) if "noon" in line)
        await on.pilot.mouse_down(on.app.view, offset=(2, row))
        await on.pilot.hover(on.app.view, offset=(9, row))
        await on.pilot.mouse_up(on.app.view, offset=(9, row))
        await on.sees("copied")
        assert on.app.clipboard == "The tide"
