"""Every kind of terminal: small and large, without colours, without Unicode."""

from __future__ import annotations

from collections.abc import Callable

from talks import Talk

STORY = "The harbor has **forty** berths. " + "Each of them has a number, and a boat. " * 12


def test_the_window_may_change_its_size_at_any_time(talk: Callable[..., Talk]) -> None:
    chat = talk()
    reply = {"text": STORY, "calls": [{"name": "run_command", "arguments": {"command": "echo moored"}}]}
    chat.start(chat.script(reply, f"{STORY}The end.", delay=0.1), "--no-auto-compact")
    chat.says("Tell me of the harbor.").sees("The harbor has")
    chat.screen.resize(40, 12)
    shown = chat.sees("May the agent use run_command?", "y yes", "auto-compact off")
    lines = shown.splitlines()
    assert len(lines) <= 12 and all(len(line) <= 40 for line in lines)
    chat.press("y").sees("The end.")
    chat.screen.resize(120, 40)
    shown = chat.sees("❯ Tell me of the harbor.", "forty", "✓ run_command echo moored", "The end.", "auto-compact off")
    assert max(map(len, shown.splitlines())) == 120 and chat.screen.has_colours()
    chat.screen.resize(80, 24)
    chat.rests()
    chat.screen.resize(9, 4)
    chat.screen.resize(80, 24)
    chat.says("/help").sees("/quit")


def test_no_colours_where_they_are_not_wanted(talk: Callable[..., Talk]) -> None:
    chat = talk()
    chat.start(chat.script(STORY), NO_COLOR="1").says("Tell me of the harbor.").sees("forty berths")
    chat.rests()
    assert not chat.screen.has_colours() and "❯" in chat.screen.text()


def test_a_plain_terminal_without_unicode_gets_ascii_alone(talk: Callable[..., Talk]) -> None:
    chat = talk()
    reply = {"text": "Grüße — „Möwe“ 🌊 ☃", "calls": [{"name": "list_files", "arguments": {}}]}
    chat.start(chat.script(reply, "Fini."), TERM="xterm-mono", LC_ALL="C", LANG="C")
    chat.says("> hello").sees("+ list_files", "Fini.", 'Gru?e - "Mowe" ?? ?')
    chat.rests()
    shown = chat.screen.text()
    assert shown.isascii() and "> Ask, or /help" in shown and "----" in shown
    assert not chat.screen.has_colours()
