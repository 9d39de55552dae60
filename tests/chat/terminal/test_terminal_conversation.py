"""A conversation in a real terminal: streaming, tools, approvals, typing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from terminal_harness import TerminalChat
from terminal_screens import SCREEN_TYPES, EmulatedTerminal


@pytest.mark.parametrize("kind", SCREEN_TYPES)
def test_prompt_is_answered_in_every_terminal_type(terminal: Callable[..., TerminalChat], kind: str) -> None:
    chat = terminal(SCREEN_TYPES[kind]())
    chat.start(chat.script("The tide turns at **noon**.", delay=0.05)).send("When does the tide turn?")
    shown = chat.wait_for_text("The tide turns at noon.")
    assert "❯ When does the tide turn?" in shown
    chat.wait_idle()
    session = chat.quit("C-d")
    assert [role for role, _ in chat.messages()] == ["user", "assistant"] and session


def test_tool_calls_are_folded_and_changes_need_approval(terminal: Callable[..., TerminalChat]) -> None:
    """Yes allows one call, no is reported to the model, always allows such commands from then on."""
    chat = terminal()
    (chat.folder / "berths.txt").write_text("berth 1: free\nberth 2: taken\n")

    def call(name: str, **arguments: str) -> dict[str, object]:
        return {"calls": [{"name": name, "arguments": arguments}]}

    chat.start(
        chat.script(
            call("read_file", path="berths.txt"),
            call("edit_file", path="berths.txt", old="berth 1: free", new="berth 1: taken by the Petrel"),
            call("run_command", command="echo first-run"),
            call("write_file", path="log.txt", content="one\ntwo\nthree\n"),
            call("run_command", command="echo second-run"),
            "The Petrel has berth 1.",
            "Nothing is left to do.",
        ),
        "Give berth 1 to the Petrel.",
    )
    shown = chat.wait_for_text(
        "May the agent use edit_file?", "- berth 1: free", "+ berth 1: taken by the Petrel", "y yes"
    )
    assert "✓ read_file berths.txt · 2 lines" in shown
    chat.press("y").wait_for_text("May the agent use run_command?", "$ echo first-run", "a always echo *")
    chat.press("a").wait_for_text("May the agent use write_file?", "log.txt", "new file, 3 lines", "+ three")
    chat.press("n", "Enter")
    shown = chat.wait_for_text("The Petrel has berth 1.")
    assert "✓ edit_file berths.txt" in shown and "✗ write_file log.txt" in shown and "failed" in shown
    assert "✓ run_command echo second-run" in shown and "first-run\n" not in shown.replace("echo first-run", "")
    assert (chat.folder / "berths.txt").read_text().startswith("berth 1: taken by the Petrel")
    assert not (chat.folder / "log.txt").exists()
    chat.press("C-o").wait_for_text("│ 3 + three", "did not allow this", "second-run")
    chat.press("C-o").wait_without_text("│ first-run")
    chat.press("M-Up", "Enter").wait_for_text("│ second-run")
    chat.send("And now?").wait_for_text("Nothing is left to do.")


def test_input_supports_newlines_paste_history_and_completion(terminal: Callable[..., TerminalChat]) -> None:
    chat = terminal()
    chat.start(chat.script("Aye.", repeat=True))
    chat.screen.type("one")
    chat.press("M-Enter")
    chat.screen.type("two\\")
    chat.press("Enter", "C-j")
    chat.screen.paste("pasted first\npasted second \x07")
    shown = chat.wait_for_text("pasted second ^G")
    assert "❯ one\n  two\n\n  pasted first" in shown
    chat.press("Enter").wait_for_text("Aye.")
    chat.wait_idle()
    chat.send("the second prompt").wait_for_text("❯ the second prompt Aye.")
    chat.wait_idle()
    chat.press("Up").wait_for_text("❯ the second prompt ──")
    chat.press("Up", "Up").wait_for_text("❯ one two pasted first pasted second ^G ──")
    chat.press("C-c").wait_idle()
    chat.screen.type("/aut")
    chat.wait_for_text("/autocompact show automatic")
    chat.press("Tab").wait_for_text("❯ /autocompact ──")
    chat.screen.type("o")
    chat.wait_for_text("/autocompact on")
    chat.press("Down", "Down", "Enter").wait_for_text("Automatic compaction is off.", " auto-compact off ")
    assert chat.messages()[0] == ("user", "one\ntwo\n\npasted first\npasted second ^G")


def test_control_sequences_never_reach_the_terminal(terminal: Callable[..., TerminalChat]) -> None:
    """From the model, from a tool, and in an approval prompt."""
    screen = EmulatedTerminal()
    chat = terminal(screen)
    bad = "\x1b]0;owned\x07\x1b[2J\x1b[31m[bold]not markup[/] \x1b]52;c;b3duZWQ=\x07 \u202eright to left\u202c \x9b5n"
    (chat.folder / "bad.txt").write_bytes(bad.encode() + b"\xff\xfe" + b"x" * 5_000)
    chat.start(
        chat.script(
            {"text": f"Look: {bad}", "calls": [{"name": "read_file", "arguments": {"path": "bad.txt"}}]},
            {"calls": [{"name": "run_command", "arguments": {"command": f"echo {bad}"}}]},
            f"Done. {bad} 👩‍👩‍👧 שלום",
        )
    )
    chat.send("Show me.").wait_for_text("$ echo ^[]0;owned^G^[[2J^[[31m[bold]not markup[/]")
    chat.press("n", "Enter").wait_for_text("Done. [bold]not markup[/]", "שלום")
    chat.press("C-o").wait_for_text("xxxxxxxx")
    for sequence in (b"\x1b]0;", b"\x1b]52;", b"\x1b[2J\x1b[31m", "\u202e".encode(), b"\xc2\x9b"):
        assert sequence not in screen.raw
