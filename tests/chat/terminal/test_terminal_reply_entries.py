"""Rendering of replies, reasoning and tool calls."""

from __future__ import annotations

from entry_rendering import render, tool

from holdfast.chat.terminal.reply_entries import ReasoningEntry, ReplyEntry, ToolCallEntry


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
