"""Every command in one session on a real terminal."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from terminal_harness import READY, TerminalChat

from holdfast.chat.commands import COMMANDS

WALK = (
    ("/help", "/compact [preview|WORDS]", "/quit"),
    ("/context", "of 6,000"),
    ("/cost", "No model has reported any usage yet."),
    ("/model", "Models", "openai:gpt-"),
    ("/mode", "accept-edits"),
    ("/permissions", "Nothing is always allowed"),
    ("/mcp", "There are no MCP servers"),
    ("/preset pi", "now uses the preset pi"),
    ("/preset holdfast", "now uses the preset holdfast"),
    ("/autocompact on", "Automatic compaction is on."),
    ("/autocompact off", "Automatic compaction is off."),
    ("/search slack", "/recall #"),
    ("/recall #2", "It was not restored"),
    ("/pin #1", "stays visible through every compaction"),
    ("/compact keep the tides", "── compacted"),
    ("/archived", "No longer shown", "Enter restore it"),
    ("/undo", "The last compaction is undone"),
    ("/rewind", "Rewind to", "nothing changed since"),
    ("/copy", "Copied the last reply, 1 line."),
    ("/view", "Ask, or /help"),
    ("/branch", "When does the tide turn?"),
    ("/branch 1", "Now in session"),
    ("/tree", "└─"),
    ("/sessions", "Enter choose", "this session"),
    ("/edit 1", "before message 1"),
    ("/clear", "The old one is kept"),
    ("/export tides.json messages", "Written to", "tides.json"),
)
LISTS = ("/model", "/sessions", "/archived", "/rewind")
"""Commands that open a list."""


def test_every_command_works_in_a_real_terminal(terminal: Callable[..., TerminalChat], tmp_path: Path) -> None:
    """P1, P2, P10, P11, P23: /handoff puts its draft into the input, /reference asks the previous session."""
    chat = terminal()
    flows = "It flows and ebbs and flows again, twice a day. " * 40
    replies = [f"The tide turns at noon: that is slack water. {flows}That was reply {n}." for n in (1, 2, 3)]
    chat.start(
        chat.script(*replies, repeat=True, summary="The tide turns at noon [2]."),
        "--window",
        "6000",
        "--no-auto-compact",
        size=(80, 40),
        EDITOR=f"touch {tmp_path / 'opened'}",
    )
    for number, prompt in enumerate(("When does the tide turn?", "And then?", "And after that?"), 1):
        chat.send(prompt).wait_for_text(f"That was reply {number}.")
        chat.wait_idle()
    first = _session(chat)
    for line, *shown in WALK:
        chat.send(line).wait_for_text(*shown)
        if line == "/view":  # the terminal is the editor's until it ends: what is typed then is not the chat's
            while not (tmp_path / "opened").exists():
                time.sleep(0.05)
            time.sleep(1)
        if line == "/sessions":
            chat.press("Escape").wait_for_text("Ask, or /help")
        if line == "/edit 1":
            chat.wait_for_text("❯ When does the tide turn? ──")
            chat.press("C-c")
        if line in LISTS:
            chat.press("Escape").wait_for_text(READY)
    chat.send(f"/sessions {first}").wait_for_text(f"Now in session {first}")
    chat.send("/handoff tell the skippers").wait_for_text("Review the draft of its first message and send it.")
    chat.press("C-c").wait_idle()
    chat.send(f"/reference {first} When does the tide turn?").wait_for_text("added to this one")
    chat.send("/nonsense").wait_for_text("There is no command /nonsense")
    chat.send("And the skippers?").wait_for_text("❯ And the skippers?", "That was reply")
    chat.wait_idle()
    chat.screen.type("/quit")
    chat.quit("Enter")
    walked = {line.split()[0][1:] for line, *_ in WALK} | {"handoff", "reference", "quit"}
    assert walked == {command.name for command in COMMANDS}
    assert (chat.folder / "tides.json").is_file()


def _session(chat: TerminalChat) -> str:
    found = re.search(r"\* (\w{6,})", chat.send("/tree").wait_for_text("first message", "* "))
    assert found
    return found[1]
