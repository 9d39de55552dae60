"""How each entry of a transcript looks."""

from __future__ import annotations

import pytest
from drawn import LOOK, drawn, widest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.hooks.events import ACCURACY, CompactionCompleted
from holdfast.terminal.drawing import NARROWEST
from holdfast.terminal.entries import (
    Divider,
    Earlier,
    Entry,
    Note,
    Page,
    Progress,
    Prompt,
    Reply,
    Summary,
    Thought,
    ToolLine,
    Welcome,
)
from holdfast.terminal.look import ASCII, Look

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


def tool(text: str = "one\ntwo\nthree", *, failed: bool = False) -> ToolLine:
    line = ToolLine("1", "read_file", "tides.csv")
    line.finish(text, failed=failed)
    return line


def test_a_tool_call_is_one_line_until_it_is_unfolded() -> None:
    assert drawn(ToolLine("1", "read_file", "tides.csv")) == "  ◌ read_file tides.csv · running"
    line = tool()
    assert drawn(line) == "  ✓ read_file tides.csv · 3 lines"
    line.fold(False)
    assert drawn(line) == "  ✓ read_file tides.csv · 3 lines\n    │ one\n    │ two\n    │ three"
    assert drawn(tool("Error: no", failed=True)) == "  ✗ read_file tides.csv · failed, 1 line"
    stopped = ToolLine("1", "read_file", "tides.csv")
    stopped.stop()
    assert drawn(stopped) == "  ✗ read_file tides.csv · stopped"


def test_the_argument_is_cut_and_the_outcome_stays() -> None:
    line = ToolLine("1", "run_command", "echo " + "x" * 100)
    line.finish("done", failed=False)
    assert drawn(line, 40) == "  ✓ run_command echo xxxxxxxxx… · 1 line"


def test_long_answers_say_how_much_is_left_out() -> None:
    line = tool("\n".join(f"line {number}" for number in range(1_000)))
    line.fold(False)
    assert drawn(line).endswith("    │ line 79\n    … 920 more lines")
    assert not tool("").folds


def test_a_prompt_that_waits_says_so_and_a_long_one_is_folded() -> None:
    waiting = Prompt("first\nsecond", "queued")
    assert drawn(waiting) == "❯ queued: first second"
    waiting.heard()
    assert drawn(waiting) == "❯ first\n  second"
    long = Prompt("\n".join(str(number) for number in range(20)))
    assert long.folds and drawn(long).endswith("  11\n  ▸ 8 more lines")


def test_a_reply_is_plain_while_it_comes_and_markdown_when_it_is_whole() -> None:
    reply = Reply()
    for piece in ("# Tides\n\nThe tide ", "turns at **no", "on**.\n\n- one <tag>\n- [a](http://b)"):
        reply.say(piece)
    assert drawn(reply) == "  # Tides\n\n  The tide turns at **noon**.\n\n  - one <tag>\n  - [a](http://b)"
    reply.end()
    assert drawn(reply) == "  Tides\n\n  The tide turns at noon.\n\n   • one <tag>\n   • a (http://b)"
    reply.end("stopped")
    assert drawn(reply).endswith("\n  (stopped)")


def test_a_thought_is_folded_when_it_is_over() -> None:
    thought = Thought()
    thought.say("Let me see.\nThe tide.")
    assert drawn(thought) == "  ◌ Let me see.\n    The tide."
    thought.end()
    assert drawn(thought) == "  ▸ thought Let me see. The tide."
    thought.fold(False)
    assert drawn(thought) == "  ▾ Let me see.\n    The tide."


def test_a_compaction_is_a_line_through_the_conversation() -> None:
    """P15: before and after, what became of the messages, the notice; the summary is folded."""
    divider = Divider(DONE, ACCURACY)
    shown = drawn(divider, 80).splitlines()
    assert shown[0] == "── compacted 12.3k → 3.2k tokens · 74 % less · round 2 " + "─" * 25
    assert shown[1:3] == [
        "  34 messages archived, 6 kept · summary by anthropic:m · 1.2 s",
        "  ▸ summary, 2 lines (Ctrl-O)",
    ]
    assert " ".join(" ".join(shown[3:]).split()) == ACCURACY
    divider.fold(False)
    assert "  ▾ summary\n    │ ## Goal\n    │ Berths." in drawn(divider, 80)


def test_what_a_running_compaction_does_is_shown_with_its_seconds() -> None:
    now = [0.0]
    progress = Progress(12_000, asked=False, clock=lambda: now[0])
    progress.what, progress.characters, now[0] = "writing the summary", 1_234, 3.9
    assert drawn(progress) == (
        "  ◌ compacting 12k tokens, the window is nearly full\n"
        "    writing the summary · 1,234 characters · 3 s · Esc stops\n    it"
    )


def test_without_unicode_the_signs_are_ascii() -> None:
    plain = Look(ASCII)
    entries = [tool(), tool(failed=True), Divider(DONE), Prompt("hello"), Note("sure", "warning"), Summary("it")]
    assert all(drawn(entry, 70, plain).isascii() for entry in entries)


def every_kind(text: str) -> list[Entry]:
    thought, opened, reply = Thought(), tool(text), Reply()
    thought.say(text)
    opened.fold(False)
    reply.say(text)
    said = [Prompt(text), Prompt(text, "queued"), reply, Reply(text), thought, Earlier("user", text), Summary(text)]
    told = [Note(text), Page(text), Welcome("new", text, text), ToolLine("1", text, text), opened, Divider(DONE, text)]
    return [*said, *told]


@given(st.text(max_size=200), st.integers(NARROWEST + 6, 120))
def test_no_line_is_wider_than_the_screen(text: str, width: int) -> None:
    for entry in every_kind(text):
        assert widest(entry, width) <= width, type(entry).__name__


@pytest.mark.parametrize("width", [1, 2, 5, 9])
def test_screens_too_narrow_to_read_are_drawn_anyway(width: int) -> None:
    for entry in every_kind("some words to draw\nand more"):
        entry.redraw(width, LOOK)


@given(st.lists(st.text(st.sampled_from("ab \n\x1b[m*"), max_size=12), max_size=12))
def test_a_reply_that_came_in_pieces_is_the_one_that_came_at_once(pieces: list[str]) -> None:
    slow, fast = Reply(), Reply()
    for piece in pieces:
        slow.say(piece)
        drawn(slow, 30)
    fast.say("".join(pieces))
    assert drawn(slow, 30).rstrip("\n ") == drawn(fast, 30).rstrip("\n ")
