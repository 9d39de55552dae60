"""Kinds of terminals: small and large, without colors, without Unicode."""

from __future__ import annotations

from collections.abc import Callable

from terminal_harness import TerminalChat

STORY = "The harbor has **forty** berths. " + "Each of them has a number, and a boat. " * 12


def test_terminal_resize_redraws(terminal: Callable[..., TerminalChat]) -> None:
    chat = terminal()
    reply = {"text": STORY, "calls": [{"name": "run_command", "arguments": {"command": "echo moored"}}]}
    chat.start(chat.script(reply, f"{STORY}The end.", delay=0.1), "--no-auto-compact")
    chat.send("Tell me of the harbor.").wait_for_text("The harbor has")
    chat.screen.resize(40, 12)
    shown = chat.wait_for_text("May the agent use run_command?", "y yes", "auto-compact off")
    lines = shown.splitlines()
    assert len(lines) <= 12 and all(len(line) <= 40 for line in lines)
    chat.press("y").wait_for_text("The end.")
    chat.screen.resize(120, 40)
    shown = chat.wait_for_text(
        "❯ Tell me of the harbor.", "forty", "✓ run_command echo moored", "The end.", "auto-compact off"
    )
    assert max(map(len, shown.splitlines())) == 120 and chat.screen.has_colours()
    chat.screen.resize(80, 24)
    chat.wait_idle()
    chat.screen.resize(9, 4)
    chat.screen.resize(80, 24)
    chat.send("/help").wait_for_text("/quit")


def test_no_color_environment_disables_colors(terminal: Callable[..., TerminalChat]) -> None:
    chat = terminal()
    chat.start(chat.script(STORY), NO_COLOR="1").send("Tell me of the harbor.").wait_for_text("forty berths")
    chat.wait_idle()
    assert not chat.screen.has_colours() and "❯" in chat.screen.text()


def test_terminal_without_unicode_gets_ascii(terminal: Callable[..., TerminalChat]) -> None:
    chat = terminal()
    reply = {"text": "Grüße — „Möwe“ 🌊 ☃", "calls": [{"name": "list_files", "arguments": {}}]}
    chat.start(chat.script(reply, "Fini."), TERM="xterm-mono", LC_ALL="C", LANG="C")
    chat.send("> hello").wait_for_text("+ list_files", "Fini.", 'Gru?e - "Mowe" ?? ?')
    chat.wait_idle()
    shown = chat.screen.text()
    assert shown.isascii() and "> Ask, or /help" in shown and "----" in shown
    assert not chat.screen.has_colours()
