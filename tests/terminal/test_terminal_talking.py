"""Talking with an agent in a real terminal: streaming, tools, questions, typing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from screens import KINDS, Emulated
from talks import Talk


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_is_answered_in_every_kind_of_terminal(talk: Callable[..., Talk], kind: str) -> None:
    chat = talk(KINDS[kind]())
    chat.start(chat.script("The tide turns at **noon**.", delay=0.05)).says("When does the tide turn?")
    shown = chat.sees("The tide turns at noon.")
    assert "❯ When does the tide turn?" in shown
    chat.rests()
    session = chat.leaves("C-d")
    assert [role for role, _ in chat.said()] == ["user", "assistant"] and session


def test_tools_are_folded_and_those_that_change_something_are_asked_for(talk: Callable[..., Talk]) -> None:
    """Yes is for this time, no is an answer that the model hears, always is for the tool from then on."""
    chat = talk()
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
    shown = chat.sees("May the agent use edit_file?", "- berth 1: free", "+ berth 1: taken by the Petrel")
    assert "✓ read_file berths.txt · 2 lines" in shown and "y yes" in shown
    chat.press("y").sees("May the agent use run_command?", "$ echo first-run")
    chat.press("a").sees("May the agent use write_file?", "log.txt", "3 lines, 14 characters", "+ three")
    chat.press("n")
    shown = chat.sees("The Petrel has berth 1.")
    assert "✓ edit_file berths.txt" in shown and "✗ write_file log.txt" in shown and "failed" in shown
    assert "✓ run_command echo second-run" in shown and "first-run\n" not in shown.replace("echo first-run", "")
    assert (chat.folder / "berths.txt").read_text().startswith("berth 1: taken by the Petrel")
    assert not (chat.folder / "log.txt").exists()
    chat.press("C-o").sees("│ first-run", "│ [exit code 0]", "did not allow this")
    chat.press("C-o").sees_no("│ first-run")
    chat.press("BTab", "Enter").sees("│ second-run")
    chat.says("And now?").sees("Nothing is left to do.")


def test_the_input_is_a_small_editor(talk: Callable[..., Talk]) -> None:
    chat = talk()
    chat.start(chat.script("Aye.", repeat=True))
    chat.screen.type("one")
    chat.press("M-Enter")
    chat.screen.type("two\\")
    chat.press("Enter", "C-j")
    chat.screen.paste("pasted first\npasted second \x07")
    shown = chat.sees("pasted second ^G")
    assert "❯ one\n  two\n\n  pasted first" in shown
    chat.press("Enter").sees("Aye.")
    chat.says("the second prompt").sees("❯ the second prompt")
    chat.rests()
    chat.press("Up").sees("❯ the second prompt ──")
    chat.press("Up", "Up").sees("❯ one two pasted first pasted second ^G ──")
    chat.press("C-c").rests()
    chat.screen.type("/aut")
    chat.sees("/autocompact compact by itself")
    chat.press("Tab").sees("❯ /autocompact ──")
    chat.screen.type("o")
    chat.sees("/autocompact on")
    chat.press("Down", "Down", "Enter").sees("Automatic compaction is off.", " auto-compact off ")
    assert chat.said()[0] == ("user", "one\ntwo\n\npasted first\npasted second ^G")


def test_hostile_text_never_reaches_the_terminal(talk: Callable[..., Talk]) -> None:
    """From the model, from a tool, and in what a person is asked to allow."""
    screen = Emulated()
    chat = talk(screen)
    bad = "\x1b]0;owned\x07\x1b[2J\x1b[31m[bold]not markup[/] \x1b]52;c;b3duZWQ=\x07 \u202eright to left\u202c \x9b5n"
    (chat.folder / "bad.txt").write_bytes(bad.encode() + b"\xff\xfe" + b"x" * 5_000)
    chat.start(
        chat.script(
            {"text": f"Look: {bad}", "calls": [{"name": "read_file", "arguments": {"path": "bad.txt"}}]},
            {"calls": [{"name": "run_command", "arguments": {"command": f"echo {bad}"}}]},
            f"Done. {bad} 👩‍👩‍👧 שלום",
        )
    )
    chat.says("Show me.").sees("$ echo ^[]0;owned^G^[[2J^[[31m[bold]not markup[/]")
    chat.press("n").sees("Done. [bold]not markup[/]", "שלום")
    chat.press("C-o").sees("xxxxxxxx")
    for sequence in (b"\x1b]0;", b"\x1b]52;", b"\x1b[2J\x1b[31m", "\u202e".encode(), b"\xc2\x9b"):
        assert sequence not in screen.raw
