"""Rendering of each kind of transcript entry."""

from __future__ import annotations

import pytest
from entry_rendering import THEME, max_width, render, tool
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
    SessionHeaderEntry,
    TerminalEntry,
)
from holdfast.chat.terminal.history import HistoryEntry, SummaryEntry
from holdfast.chat.terminal.reply_entries import ReasoningEntry, ReplyEntry, ToolCallEntry
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


def test_prompt_entry_shows_waiting_reason_and_folds_long_text() -> None:
    waiting = PromptEntry("first\nsecond", "queued")
    assert render(waiting) == "❯ queued: first second"
    waiting.mark_delivered()
    assert render(waiting) == "❯ first\n  second"
    long = PromptEntry("\n".join(str(number) for number in range(20)))
    assert long.foldable and render(long).endswith("  11\n  ▸ 8 more lines")


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
        "  34 messages archived (Ctrl-G), 6 kept · summary by anthropic:m · 1.2 s",
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
