"""The app's widgets driven by keys, without a terminal."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
from app_harness import AppHarness, open_app
from tests.transcripts.tool_sessions import FIRST, SECOND, SUMMARY, write_session
from textual import events

from holdfast.agent.events import ReplyStored, RunFinished, RunStarted, TextDelta, ToolFinished, ToolStarted, Unsent
from holdfast.agent.tools import PermissionRequest, PlannedChange
from holdfast.chat import Chat
from holdfast.chat.commands import COMMANDS
from holdfast.chat.mention_completion import MentionIndex
from holdfast.chat.terminal import conversation, transcript
from holdfast.chat.terminal.approval import approval_preview, wrap_rows
from holdfast.chat.terminal.entries import TerminalEntry
from holdfast.chat.terminal.history import load_history
from holdfast.chat.terminal.theme import ASCII_SYMBOLS, ChatTheme
from holdfast.messages import ToolCall
from holdfast.transcripts import import_transcript

pytestmark = pytest.mark.anyio
RM = PermissionRequest(
    "run_command", "rm -r boats", ToolCall("1", "run_command", {"command": "rm -r boats"}), rule="run_command rm"
)


async def test_prompt_and_reply_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with open_app(tmp_path, "The tide turns at **noon**.") as harness:
        await harness.wait_for_text("  New session\n", "/harbor ·", "script:story.json\n", "Ask, or /help")
        await harness.type("When?")
        await harness.press("enter")
        await harness.wait_for_text("❯ When?", "  The tide turns at noon.")
        assert harness.app.input.text == ""


async def test_input_history_moves_both_ways_and_keeps_draft(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        for prompt in ("first", "second"):
            await harness.type(prompt)
            await harness.press("enter")
            await harness.wait_idle()
        await harness.type("unsent")
        seen = []
        for key in ("up", "up", "up", "down", "down", "down"):
            await harness.press(key)
            seen.append(harness.app.input.text)
        assert seen == ["second", "first", "first", "second", "unsent", "unsent"]


async def test_newline_keys_insert_a_line(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        for key in ("a", "shift+enter", "b", "alt+enter", "c", "ctrl+j", "d", "\\", "enter", "e"):
            await harness.press(key)
        assert harness.app.input.text == "a\nb\nc\nd\ne" and harness.app.input.size.height == 5
        await harness.press("up")
        assert harness.app.input.cursor_location[0] == 3


async def test_up_moves_within_wrapped_line_before_history(tmp_path: Path) -> None:
    async with open_app(tmp_path, size=(40, 12)) as harness:
        harness.app.input.input_history.add("before")
        await harness.type("word " * 12)
        await harness.press("up")
        assert harness.app.input.text.startswith("word") and harness.app.input.size.height == 2
        await harness.press("up")
        assert harness.app.input.text == "before"


async def test_long_paste_is_folded_and_sent_whole(tmp_path: Path) -> None:
    """5,000 lines are one mark in the editor, drawn like any short text, and one prompt without control characters."""
    async with open_app(tmp_path) as harness:
        box, redraws = harness.app.input, 0
        pasted = "\r\n".join(f"line {number}\t\x1b[31m" for number in range(5_000))
        await harness.type("Sum up: ")
        view_redraw = harness.app.view.redraw

        def count_redraw() -> bool:
            nonlocal redraws
            redraws += 1
            return view_redraw()

        harness.app.view.redraw = count_redraw  # type: ignore[method-assign]
        box.post_message(events.Paste(pasted))
        await harness.wait_for_text("❯ Sum up: [pasted 5,000 lines]")
        assert box.text == "Sum up: [pasted 5,000 lines]" and box.size.height == 1
        box.post_message(events.Paste(pasted.replace("line", "row")))
        await harness.wait_for_text("[pasted 5,000 lines][pasted 5,000 lines #2]")
        await harness.press("backspace")
        assert box.text == "Sum up: [pasted 5,000 lines]", "a folded paste is deleted as one"
        await harness.press("enter")
        await harness.wait_for_text("Aye.")
        await harness.wait_idle()
        assert redraws < 40
        sent = (await harness.chat.sessions.context(harness.chat.record.id)).messages[0]["content"]
        lines = sent.split("\n")
        assert len(lines) == 5_000 and lines[0] == "Sum up: line 0\t^[[31m" and lines[-1] == "line 4999\t^[[31m"
        await harness.press("up")
        assert box.text == "Sum up: [pasted 5,000 lines]", "the history recalls the fold"


async def test_short_paste_is_inserted_as_it_is(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        harness.app.input.post_message(events.Paste("\r\n".join(f"line {number}\t\x1b[31m" for number in range(15))))
        await harness.pilot.pause()
        lines = harness.app.input.text.split("\n")
        assert len(lines) == 15 and lines[0] == "line 0\t^[[31m" and harness.app.input.size.height <= 8
        await harness.press("enter")
        await harness.wait_for_text("▸ 3 more lines")


async def test_p2_autocompact_alone_opens_its_choices_and_leaves_the_input_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # the choice is saved
    async with open_app(tmp_path) as harness:
        await harness.type("/autocompact")
        await harness.press("enter")
        await harness.wait_for_text("Automatic compaction  2", "reserve_tokens 16,384; keep_recent_tokens 20,000")
        await harness.press("down", "enter")
        await harness.wait_for_text("Automatic compaction is off.")
        assert harness.app.input.text == "" and not harness.app.completions.display


async def test_completion_list_is_navigated_by_tab_and_arrows(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        await harness.type("/aut")
        await harness.wait_for_text("/autocompact  show automatic")
        await harness.press("tab")
        assert harness.app.input.text == "/autocompact "
        await harness.wait_for_text("  /autocompact on\n  /autocompact off\n")
        await harness.press("down", "down")
        assert harness.app.input.text == "/autocompact off" and "❯ /autocompact off" in harness.text
        await harness.press("up")
        assert harness.app.input.text == "/autocompact on"
        await harness.press("escape")
        assert not harness.app.completions.display and harness.app.input.text == "/autocompact on"
        await harness.press("ctrl+c")
        await harness.type("/s")
        await harness.wait_for_text("/sessions", "/search")
        await harness.press("tab", "tab")
        assert harness.app.input.text == "/sessions"
        await harness.press("ctrl+c")
        await harness.type("/")
        await harness.wait_for_text(f"  … {len(COMMANDS) - 6} more")


async def test_list_of_an_earlier_mention_completes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harbor").mkdir()
    for name in ("quay.txt", "quarry.txt"):
        (tmp_path / "harbor" / name).touch()
    async with open_app(tmp_path, "Noted.") as harness:
        await harness.type("read @qua")
        await harness.wait_for_text("@quay.txt", "@quarry.txt")
        monkeypatch.setattr(MentionIndex, "complete", lambda *_: asyncio.Event().wait())
        await harness.type("rrel.md")
        await harness.press("tab")
        assert harness.app.input.text == "read @quarrel.md"
        await harness.press("enter")
        await harness.wait_for_text("❯ read @quarrel.md")


async def test_approval_replaces_input_and_restores_it(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        harness.conversation.handle_event(ToolStarted(harness.chat.record.id, RM.call.id, "run_command", "rm"))
        worker = harness.app.run_worker(harness.conversation.pending_approval.ask(RM))
        await harness.wait_for_text(
            "May the agent use run_command?", "$ rm -r boats", "y yes", "run_command rm · waiting for you"
        )
        await harness.press("x", "enter")
        assert worker.result is None
        assert "a always rm" in harness.text
        await harness.press("a")
        await harness.wait_until(lambda: worker.result == "always")
        await harness.wait_for_text("Ask, or /help")
        assert harness.app.focused is harness.app.input


async def test_approval_waits_while_user_types(tmp_path: Path) -> None:
    """A y typed in the middle of a word is not an approval."""
    async with open_app(tmp_path) as harness:
        await harness.press("m", "a", "n")
        worker = harness.app.run_worker(harness.conversation.pending_approval.ask(RM))
        await harness.wait_until(lambda: harness.conversation.pending_approval.question is not None)
        await harness.press("y")
        assert harness.app.input.text == "many" and worker.result is None
        await harness.wait_for_text("May the agent use run_command?")
        await harness.press("n", "enter")
        await harness.wait_until(lambda: worker.result == "no")
        await harness.wait_for_text("❯ many")


def command(text: str) -> PermissionRequest:
    return PermissionRequest("run_command", "", ToolCall("1", "run_command", {"command": text}))


MANY_LINES = "\n".join(f"echo line {number}" for number in range(41)) + "\ntouch X"
ONE_LONG_LINE = f"echo {'harmless ' * 400}; touch X"


def has_changed(harness: AppHarness, before: str) -> bool:
    """Whether more than the footer has changed."""
    return harness.text.split("\n")[:-1] != before.split("\n")[:-1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "key", "size"),
    [
        (MANY_LINES, "space", (40, 12)),
        (ONE_LONG_LINE, "enter", (40, 12)),
        (MANY_LINES, "down", (80, 24)),
        (ONE_LONG_LINE, "pagedown", (80, 24)),
        (ONE_LONG_LINE, "space", (120, 40)),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_long_command_is_allowed_only_once_its_end_was_on_the_screen(
    tmp_path: Path, text: str, key: str, size: tuple[int, int]
) -> None:
    """Every row of it has been on the screen then, and how many there are is shown all the time."""
    async with open_app(tmp_path, size=size) as harness:
        worker = harness.app.run_worker(harness.conversation.pending_approval.ask(command(text)))
        await harness.wait_for_text("lines 1-", " of ", "↓ Space", "n no")
        seen = set[str]()
        while "y yes" not in harness.text:
            assert "touch X" not in harness.text and "always" not in harness.text
            seen |= set(harness.text.split("\n"))
            for one in ("y", "y", "a", key):
                harness.app.simulate_key(one)
            await harness.wait_until(partial(has_changed, harness, harness.text))
            assert worker.result is None
        await harness.wait_for_text("touch X")
        assert worker.result is None
        seen |= set(harness.text.split("\n"))
        rows = wrap_rows(approval_preview(command(text)), size[0] - 4)
        assert {f"  {row.plain}".rstrip() for _, row in rows} <= seen
        await harness.press("a")
        assert worker.result is None, "what the shell would do cannot be allowed for ever"
        await harness.press("y")
        await harness.wait_until(lambda: worker.result == "yes")


async def test_end_has_to_be_reached_again_after_a_resize_before_it(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        worker = harness.app.run_worker(harness.conversation.pending_approval.ask(command(ONE_LONG_LINE)))
        await harness.wait_for_text("lines 1-")
        await harness.press("space")
        await harness.pilot.resize_terminal(40, 12)
        await harness.wait_for_text("↓ Space")
        await harness.press("y")
        assert worker.result is None and "y yes" not in harness.text
        await harness.press_until("space", lambda: "y yes" in harness.text)
        await harness.pilot.resize_terminal(60, 12)
        await harness.wait_for_text("y yes")


async def test_refusal_takes_words_for_the_model(tmp_path: Path) -> None:
    """n, the words, Enter; Esc goes back to the question, and n and Enter alone refuse without words."""
    async with open_app(tmp_path) as harness:
        worker = harness.app.run_worker(harness.conversation.pending_approval.ask(RM), exit_on_error=False)
        await harness.wait_for_text("n no")
        await harness.press("n")
        await harness.wait_for_text("instead?")
        await harness.press("escape")
        await harness.wait_for_text("y yes")
        await harness.press("n", *"any, use mv", "enter")
        await harness.wait_until(lambda: worker.error is not None)
        assert str(worker.error) == "The user did not allow this. The user's words: any, use mv"
        await harness.wait_for_text("Ask, or /help")
        await harness.press(*"aye")
        assert harness.app.input.text == "aye", "the keys go to the input again"


async def test_shift_tab_changes_the_mode_and_the_footer_shows_it(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        await harness.wait_for_text("script:story.json")
        seen = []
        for _ in range(3):
            await harness.press("shift+tab")
            seen.append(harness.chat.permissions.mode)
            await harness.wait_until(lambda: (seen[-1] in harness.text.split("\n")[-1]) == (seen[-1] != "ask"))
        assert seen == ["accept-edits", "plan", "ask"]
        await harness.type("/mode plan")
        await harness.press("enter")
        await harness.wait_until(lambda: "plan" in harness.text.split("\n")[-1])
        await harness.type("/mode x")
        await harness.press("enter")
        await harness.wait_for_text("There is no mode 'x'")


async def test_diff_stays_in_the_transcript(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        call = ToolCall("1", "edit_file", {"path": "tides.csv", "old": "high 9", "new": "high 10"})
        change = PlannedChange(tmp_path / "tides.csv", "tides.csv", b"high 9\n", b"high 10\n", "Edited tides.csv.")
        session = harness.chat.record.id
        harness.conversation.handle_event(ToolStarted(session, "1", "edit_file", "tides.csv"))
        asked = PermissionRequest("edit_file", "tides.csv", call, change, "edit_file")
        worker = harness.app.run_worker(harness.conversation.pending_approval.ask(asked))
        await harness.wait_for_text("1 - high 9", "1 + high 10", "y yes", "a always edit_file")
        await harness.press("y")
        await harness.wait_until(lambda: worker.result == "yes")
        await harness.wait_until(lambda: "waiting for you" not in harness.text)
        harness.conversation.handle_event(ToolFinished(session, "1", "edit_file", "Edited tides.csv."))
        await harness.press("ctrl+o")
        await harness.wait_for_text("1 - high 9", "1 + high 10", "Edited tides.csv.")


async def test_notice_of_ctrl_c_disappears_when_it_is_no_longer_true(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        await harness.press("ctrl+c")
        await harness.wait_for_text("Ctrl-C again quits")
        await harness.wait_until(lambda: "Ctrl-C again quits" not in harness.text)
        await harness.press("ctrl+c")
        await harness.wait_for_text("Ctrl-C again quits")


async def test_resumed_conversation_can_be_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line a message with its number; unfolded all of it, Markdown rendered, another tool's summary as one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    summary = "This session is being continued from a previous conversation that ran out of context. They moored."
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "berths.txt"}'}}
    messages = [
        {"role": "user", "content": summary},
        {"role": "user", "content": "List the berths.\nAll of them."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "berth 1: free\nberth 2: taken"},
        {"role": "assistant", "content": "**Two** berths:\n\n- one free\n- one taken"},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "Fair winds."},
    ]
    async with open_app(tmp_path) as harness:
        record = await harness.chat.sessions.create(format="openai-chat")
        await harness.chat.sessions.append(record.id, messages)
        await harness.chat.switch(record.id)
        await harness.wait_for_text(
            "  List the berths.\n",
            "/harbor ·",
            "script:story.json · last used just now\n",
            "summary of earlier messages",
            "List the berths. All of them.  #2",
            "#5",
            "Fair winds.",
        )
        assert "berth 2: taken" not in harness.text and "being continued" not in harness.text
        await harness.press("ctrl+o")
        await harness.wait_for_text("berth 2: taken", "Two berths:", "They moored.", "All of them.")
        assert "**Two**" not in harness.text


async def test_compaction_of_another_tool_stands_between_archived_and_later_messages(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        record = await import_transcript(harness.chat.sessions, write_session("claude-code", tmp_path))
        await harness.chat.switch(record.id)
        await harness.wait_for_text(
            f"❯ {FIRST}  #1", "· ls  #2", "By the crane.  #4", f"❯ {SECOND}  #6", "By the lock."
        )
        rows = harness.text.split("\n")
        divider = next(row for row in rows if row.startswith("── compacted 125 →"))
        places = [next(at for at, row in enumerate(rows) if text in row) for text in ("#4", divider, "archived", "#6")]
        assert places == sorted(places) and SUMMARY not in harness.text
        await harness.press("ctrl+o")
        await harness.wait_for_text(f"│ {SUMMARY}", "berth 4: by the crane")
        await harness.chat.undo()
        await harness.chat.switch(record.id)
        await harness.wait_for_text("The compaction was undone.")


def numbers_shown(harness: AppHarness) -> list[int]:
    return [entry.number for entry in harness.conversation.transcript.entries if entry.number]


async def test_long_resumed_conversation_shows_earlier_pages_when_scrolled_up(tmp_path: Path) -> None:
    count = 2_600
    async with open_app(tmp_path) as harness:
        record = await harness.chat.sessions.create()
        messages = [{"role": ("user", "assistant")[at % 2], "content": f"Word {at}."} for at in range(1, count + 1)]
        await harness.chat.sessions.append(record.id, messages)
        await harness.chat.switch(record.id)
        await harness.wait_for_text(f"Word {count - 1}.")
        shown = len(numbers_shown(harness))
        assert shown < count
        while shown < count:
            await harness.press("ctrl+home")
            await harness.wait_until(lambda before=shown: len(numbers_shown(harness)) > before)
            await harness.wait_until(lambda: harness.app.view.scroll_offset.y > 0)
            first = numbers_shown(harness)[0]
            assert f"Word {first}." not in harness.text and harness.text.count("Word") > 10
            shown = len(numbers_shown(harness))
        assert numbers_shown(harness) == list(range(1, count + 1)) and "earlier event" not in harness.text
        await harness.press("ctrl+home")
        await harness.wait_for_text("last used", "Word 1.  #1")
        await harness.press("ctrl+end")
        await harness.wait_until(lambda: len(numbers_shown(harness)) < count)
        await harness.wait_for_text(f"Word {count}.")


async def test_long_conversation_drops_entries_and_reads_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "MAX_ENTRIES", 16)
    call = {"calls": [{"name": "read_file", "arguments": {"path": "berths.txt"}}]}
    async with open_app(tmp_path, *[{"text": "Reading.", **call}, call, "Forty."] * 12) as harness:
        (tmp_path / "harbor" / "berths.txt").write_text("40 berths\n")
        for number in range(12):
            harness.chat.send(f"How many, {number}?")
            await harness.wait_idle()
        await harness.wait_until(lambda: len(harness.conversation.transcript.entries) <= 16)
        assert "❯ How many, 0?" not in " ".join(texts_of(harness))
        await harness.press("ctrl+home")
        await harness.wait_until(lambda: any("❯ How many, 0?" in text for text in texts_of(harness)))
        lines = texts_of(harness)
        asked = [line for line in lines if line.startswith("❯")]
        assert [line.partition(", ")[2].partition("?")[0] for line in asked] == [str(number) for number in range(12)]
        assert sum("read_file" in line for line in lines) == 24 and sum("Reading." in line for line in lines) == 12


def texts_of(harness: AppHarness) -> list[str]:
    return [strip.text for entry in harness.conversation.transcript.entries for strip in entry.lines[:1]]


async def test_session_that_changes_while_it_is_loaded_is_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app(tmp_path) as harness:
        await harness.wait_for_text("New session")
        first, second = [await harness.chat.sessions.create() for _ in range(2)]
        for record, text in ((first, "The first."), (second, "The second.")):
            await harness.chat.sessions.append(record.id, {"role": "user", "content": text})

        async def load_slowly(chat: Chat, before: int | None = None) -> tuple[list[TerminalEntry], list[str]]:
            loaded = await load_history(chat, before)
            if chat.record.id == first.id:
                await chat.switch(second.id)
            return loaded

        monkeypatch.setattr(conversation, "load_history", load_slowly)
        await harness.chat.switch(first.id)
        await harness.wait_for_text("The second.", "last used")
        await harness.pilot.pause(0.1)
        assert harness.text.count("/help lists") == 1 and "The first." not in harness.text


async def test_transcript_follows_end_unless_scrolled_up(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        session = harness.chat.record.id
        harness.conversation.handle_event(RunStarted(session, "Count."))
        for number in range(100):
            harness.conversation.handle_event(TextDelta(session, "text", f"number {number}\n"))
        await harness.wait_for_text("number 99")
        await harness.press("pageup", "pageup")
        await harness.wait_for_text("more")
        top = harness.text.split("\n")[0]
        for number in range(100, 120):
            harness.conversation.handle_event(TextDelta(session, "text", f"number {number}\n"))
        await harness.wait_for_text(f"↓ {harness.app.view.below} more")
        assert harness.text.split("\n")[0] == top and harness.app.view.below > 20
        await harness.press("ctrl+end")
        await harness.wait_for_text("number 119")
        await harness.press("ctrl+home")
        await harness.wait_for_text("❯ Count.")


async def test_entry_is_unfolded_by_keys_or_click(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        session = harness.chat.record.id
        for name in ("first", "second"):
            harness.conversation.handle_event(ToolStarted(session, name, "read_file", name))
            harness.conversation.handle_event(ToolFinished(session, name, "read_file", f"the {name} answer"))
        await harness.wait_for_text("✓ read_file second")
        await harness.press("alt+up", "up", "enter")
        await harness.wait_for_text("│ the first answer")
        assert "│ the second answer" not in harness.text
        await harness.press("escape")
        row = next(place for place, line in enumerate(harness.text.split("\n")) if "read_file second" in line)
        await harness.pilot.click(harness.app.view, offset=(6, row))
        await harness.wait_for_text("│ the second answer")
        await harness.press("ctrl+o", "ctrl+o")
        await harness.wait_until(lambda: "│" not in harness.text)


async def test_unsent_text_returns_to_input(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        await harness.type("a new thought")
        harness.conversation.handle_event(Unsent(harness.chat.record.id, "Mind the pier."))
        await harness.wait_for_text("❯ Mind the pier.\n  a new thought")


async def test_every_screen_size_is_drawn(tmp_path: Path) -> None:
    async with open_app(tmp_path, theme=ChatTheme(ASCII_SYMBOLS, color=False)) as harness:
        session = harness.chat.record.id
        harness.conversation.handle_event(RunStarted(session, "Tell me of the harbor."))
        harness.conversation.handle_event(ReplyStored(session, "e", "# Berths\n\n" + "It has **forty** berths. " * 20))
        harness.conversation.handle_event(ToolStarted(session, "c", "run_command", "echo " + "word " * 40))
        for size in ((40, 12), (120, 40), (7, 3), (1, 1), (80, 24)):
            await harness.pilot.resize_terminal(*size)
            await harness.pilot.pause()
            lines = harness.text.split("\n")
            assert len(lines) == size[1] and max(map(len, lines)) <= size[0] and harness.text.isascii()
        harness.conversation.handle_event(RunFinished(session, "done"))
        await harness.wait_for_text("> Tell me of the harbor.", "forty")


async def test_mouse_selection_is_copied(tmp_path: Path) -> None:
    async with open_app(tmp_path) as harness:
        harness.conversation.handle_event(ReplyStored(harness.chat.record.id, "e", "The tide turns at noon."))
        await harness.wait_for_text("The tide turns at noon.")
        row = next(place for place, line in enumerate(harness.text.split("\n")) if "noon" in line)
        await harness.pilot.mouse_down(harness.app.view, offset=(2, row))
        await harness.pilot.hover(harness.app.view, offset=(9, row))
        await harness.pilot.mouse_up(harness.app.view, offset=(9, row))
        await harness.wait_for_text("copied")
        assert harness.app.clipboard == "The tide"
