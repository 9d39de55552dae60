"""Rendering of each kind of transcript entry."""

from __future__ import annotations

import pytest
from entry_rendering import THEME, max_width, render
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from holdfast.chat.commands.base import Table
from holdfast.chat.terminal.drawing import MIN_WIDTH, wrap_text
from holdfast.chat.terminal.entries import (
    CommandOutputEntry,
    CompactionEntry,
    CompactionProgressEntry,
    NoteEntry,
    PromptEntry,
    ReasoningEntry,
    ReplyEntry,
    SessionHeaderEntry,
    TerminalEntry,
    ToolCallEntry,
)
from holdfast.chat.terminal.history import HistoryEntry, SummaryEntry
from holdfast.chat.terminal.theme import ASCII_SYMBOLS, ChatTheme
from holdfast.hooks.events import ACCURACY_NOTICE, CompactionCompleted

DONE = CompactionCompleted(
    session="s",
    origin="auto",
    tokens_before=12_345,
    tokens_after=3_210,
    archived=34,
    kept=6,
    round=2,
    summary="## Goal\nBerths.",
    seconds=1.25,
    summarizer="anthropic:m",
)


def tool(text: str = "one\ntwo\nthree", *, failed: bool = False) -> ToolCallEntry:
    line = ToolCallEntry("1", "read_file", "tides.csv")
    line.finish(text, failed=failed)
    return line


def test_tool_call_entry_is_one_line_until_unfolded() -> None:
    assert render(ToolCallEntry("1", "read_file", "tides.csv")) == "  ◌ read_file tides.csv · running"
    line = tool()
    assert render(line) == "  ✓ read_file tides.csv · 3 lines"
    line.set_folded(False)
    assert render(line) == "  ✓ read_file tides.csv · 3 lines\n    │ one\n    │ two\n    │ three"
    assert render(tool("Error: no", failed=True)) == "  ✗ read_file tides.csv · failed, 1 line"
    stopped = ToolCallEntry("1", "read_file", "tides.csv")
    stopped.stop()
    assert render(stopped) == "  ✗ read_file tides.csv · stopped"


def test_tool_call_entry_cuts_argument_and_keeps_outcome() -> None:
    line = ToolCallEntry("1", "run_command", "echo " + "x" * 100)
    line.finish("done", failed=False)
    assert render(line, 40) == "  ✓ run_command echo xxxxxxxxx… · 1 line"


def test_tool_call_entry_long_result_counts_omitted_lines() -> None:
    line = tool("\n".join(f"line {number}" for number in range(1_000)))
    line.set_folded(False)
    assert render(line).endswith("    │ line 79\n    … 920 more lines")
    assert not tool("").foldable


def test_prompt_entry_shows_waiting_reason_and_folds_long_text() -> None:
    waiting = PromptEntry("first\nsecond", "queued")
    assert render(waiting) == "❯ queued: first second"
    waiting.mark_delivered()
    assert render(waiting) == "❯ first\n  second"
    long = PromptEntry("\n".join(str(number) for number in range(20)))
    assert long.foldable and render(long).endswith("  11\n  ▸ 8 more lines")


def test_reply_entry_is_markdown_while_it_streams() -> None:
    reply = ReplyEntry()
    for piece in ("# Tides\n\nThe tide ", "turns at **no"):
        reply.append(piece)
    assert render(reply) == "  Tides\n\n  The tide turns at **no"
    reply.append("on**.\n\n- one <tag>\n- [a](http://b)")
    shown = render(reply)
    assert shown == "  Tides\n\n  The tide turns at noon.\n\n   • one <tag>\n   • a (http://b)"
    reply.finish()
    assert render(reply) == shown, "nothing moves at the end"
    reply.finish("stopped")
    assert render(reply).endswith("\n  (stopped)")


def test_reasoning_entry_is_folded_when_complete() -> None:
    reasoning = ReasoningEntry()
    reasoning.append("Let me see.\nThe tide.")
    assert render(reasoning) == "  ◌ Let me see.\n    The tide."
    reasoning.finish()
    assert render(reasoning) == "  ▸ thought Let me see. The tide."
    reasoning.set_folded(False)
    assert render(reasoning) == "  ▾ Let me see.\n    The tide."


@pytest.mark.parametrize("width", [17, 60, 78])
def test_long_paragraph_is_wrapped_without_a_break_in_its_middle(width: int) -> None:
    line = Text("The harbor has forty berths, 日本, each of them with a number. " * 90)
    whole = line.wrap(Console(width=width), width, overflow="fold")
    assert [strip.text.rstrip() for strip in wrap_text(line, width)] == [one.plain.rstrip() for one in whole]


def test_session_header_names_title_folder_model_and_age() -> None:
    header = SessionHeaderEntry("forked", "Two boats got the same berth", "~/harbor", "anthropic:m", "3 d")
    assert render(header, 60).split("\n")[:2] == [
        "  Two boats got the same berth",
        "  ~/harbor · anthropic:m · last used 3 d ago · branch",
    ]
    assert render(header, 20).startswith("  Two boats got the…\n  ~/harbor ·\n")
    assert render(SessionHeaderEntry("new", "", "~/harbor", "m"), 60).startswith("  New session\n  ~/harbor · m\n")


def test_compaction_entry_shows_tokens_counts_and_folded_summary() -> None:
    """P15: tokens before and after, message counts, the notice; the summary is folded."""
    divider = CompactionEntry(DONE, ACCURACY_NOTICE)
    shown = render(divider, 80).splitlines()
    assert shown[0] == "── compacted 12.3k → 3.2k tokens · 74 % less · round 2 " + "─" * 25
    assert shown[1:3] == [
        "  34 messages archived, 6 kept · summary by anthropic:m · 1.2 s",
        "  ▸ summary, 2 lines (Ctrl-O)",
    ]
    assert " ".join(" ".join(shown[3:]).split()) == ACCURACY_NOTICE
    divider.set_folded(False)
    assert "  ▾ summary\n    │ ## Goal\n    │ Berths." in render(divider, 80)


def test_compaction_progress_entry_shows_step_and_seconds() -> None:
    now = [0.0]
    progress = CompactionProgressEntry(12_000, manual=False, clock=lambda: now[0])
    progress.what, progress.characters, now[0] = "writing the summary", 1_234, 3.9
    assert render(progress) == (
        "  ◌ compacting 12k tokens, the window is nearly full\n"
        "    writing the summary · 1,234 characters · 3 s · Esc stops\n    it"
    )


def test_command_output_uses_the_width_there_is_with_dim_labels() -> None:
    about = "summarizes all but the newest messages when the window is nearly full, and keeps every user message"
    entry = CommandOutputEntry("The presets:", "", Table([("pi", about), ("holdfast", "default")]), "Done.")
    assert render(entry, 130) == f"  The presets:\n\n  pi        {about}\n  holdfast  default\n  Done."
    assert [segment.text for segment in entry.lines[2] if segment.style and segment.style.dim] == ["pi      "]
    lines = render(entry, 40).split("\n")
    assert lines[2].startswith("  pi        summarizes") and lines[3].startswith(" " * 12 + "newest"), lines
    assert "".join(lines[2:-2]).replace(" ", "") == f"pi{about}".replace(" ", "")
    assert render(entry, 16).split("\n")[2:4] == ["  pi", "      summarizes"]


def test_entries_with_ascii_theme_are_ascii() -> None:
    plain = ChatTheme(ASCII_SYMBOLS)
    entries = [
        tool(),
        tool(failed=True),
        CompactionEntry(DONE),
        PromptEntry("hello"),
        NoteEntry("sure", "warning"),
        SummaryEntry("it"),
    ]
    assert all(render(entry, 70, plain).isascii() for entry in entries)


def every_kind(text: str) -> list[TerminalEntry]:
    reasoning, opened, reply = ReasoningEntry(), tool(text), ReplyEntry()
    reasoning.append(text)
    opened.set_folded(False)
    reply.append(text)
    conversation = [
        PromptEntry(text),
        PromptEntry(text, "queued"),
        reply,
        ReplyEntry(text),
        reasoning,
        HistoryEntry("user", text),
        SummaryEntry(text),
    ]
    others = [
        NoteEntry(text),
        CommandOutputEntry(text),
        SessionHeaderEntry("new", text, text, text, text),
        ToolCallEntry("1", text, text),
        opened,
        CompactionEntry(DONE, text),
    ]
    return [*conversation, *others]


@given(st.text(max_size=200), st.integers(MIN_WIDTH + 6, 120))
def test_entries_never_exceed_width(text: str, width: int) -> None:
    for entry in every_kind(text):
        assert max_width(entry, width) <= width, type(entry).__name__


@pytest.mark.parametrize("width", [1, 2, 5, 9])
def test_entries_are_drawn_on_very_narrow_screens(width: int) -> None:
    for entry in every_kind("some words to draw\nand more"):
        entry.redraw(width, THEME)
