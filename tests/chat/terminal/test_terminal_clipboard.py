"""A person's copy from the running terminal, by the mouse, by commands, and by tmux's own selection."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from app_harness import open_app
from terminal_harness import TerminalChat
from terminal_screens import SCREEN_TYPES, TIMEOUT, Tmux
from test_terminal_copying import CODE, REPLY

from holdfast.chat.terminal.clipboard import clipboard_commands
from holdfast.chat.terminal.handover import RETURN_HINT, editor_command
from holdfast.errors import InvalidInput

COMMAND = "pytest -q " + " ".join(f"tests/test_{number}.py" for number in range(9))
needs_tmux = pytest.mark.skipif("tmux" not in SCREEN_TYPES, reason="tmux is not installed")


class Buffers(Tmux):
    """A tmux whose program finds it, as it does in a terminal of a person."""

    @property
    def socket(self) -> str:
        return self._socket

    def select(self, first: tuple[int, int], last: tuple[int, int]) -> None:
        """Drags the mouse from one cell to another, columns and rows from 0."""
        (x, y), (to_x, to_y) = first, last
        moves = ((0, x, y, "M"), (32, x + 1, y, "M"), (32, to_x, to_y, "M"), (0, to_x, to_y, "m"))
        for button, column, row, end in moves:
            self.type(f"\x1b[<{button};{column + 1};{row + 1}{end}")

    def select_by_keys(self, first: str, last: str) -> None:
        """Selects whole lines in tmux's copy mode."""
        self._tmux("copy-mode")
        for words in (
            ("history-bottom",),
            ("search-backward", last),
            ("end-of-line",),
            ("begin-selection",),
            ("search-backward", first),
            ("start-of-line",),
            ("copy-selection-and-cancel",),
        ):
            self._tmux("send-keys", "-X", *words)

    def wait_for_buffer(self, text: str) -> None:
        end, found = time.monotonic() + TIMEOUT, ""
        while time.monotonic() < end:
            if self._tmux("list-buffers") and (found := self._tmux("show-buffer")) == text:
                return
            time.sleep(0.05)
        assert found == text

    def row(self, text: str) -> int:
        return next(row for row, line in enumerate(self.text().split("\n")) if text in line)


@pytest.fixture
def chat(terminal: Callable[..., TerminalChat]) -> TerminalChat:
    """A chat with a reply on the screen."""
    made = terminal(Buffers())
    script = made.script(
        {"text": "I look.", "calls": [{"name": "run_command", "arguments": {"command": COMMAND}}]}, {"text": REPLY}
    )
    assert isinstance(made.screen, Buffers)
    made.start(script, "--yes", size=(80, 44), TMUX=f"{made.screen.socket},0,0")
    made.send("What is it?").wait_for_text("is wrapped")
    made.wait_idle()
    return made


@needs_tmux
def test_a_mouse_selection_in_tmux_is_equal_to_the_source(chat: TerminalChat) -> None:
    screen = chat.screen
    assert isinstance(screen, Buffers)
    screen.select((0, screen.row("def hold")), (79, screen.row("four blanks")))
    screen.wait_for_buffer(CODE)
    screen.select((0, screen.row("Berths")), (79, screen.row("is wrapped")))
    screen.wait_for_buffer(REPLY)
    row = screen.row("run_command")
    line = screen.text().split("\n")[row]
    screen.select((line.index("pytest"), row), (line.index("…"), row))
    screen.wait_for_buffer(COMMAND)


@needs_tmux
def test_copy_sets_the_buffer_of_tmux(chat: TerminalChat) -> None:
    screen = chat.screen
    assert isinstance(screen, Buffers)
    chat.send("/copy 1").wait_for_text("Copied block 1 of the last reply, 5 lines.")
    screen.wait_for_buffer(CODE)
    chat.send("/copy").wait_for_text("Copied the last reply")
    screen.wait_for_buffer(REPLY)


@needs_tmux
def test_the_conversation_in_the_terminals_own_buffer_is_selected_by_tmux_alone(chat: TerminalChat) -> None:
    screen = chat.screen
    assert isinstance(screen, Buffers)
    chat.press("C-t").wait_for_text(RETURN_HINT)
    screen.select_by_keys("def hold", "four blanks")
    screen.wait_for_buffer(f"{CODE.expandtabs(8)}")
    screen.select_by_keys("Two requests could", "process only")
    screen.wait_for_buffer(next(line for line in REPLY.split("\n") if "Two requests" in line))
    chat.press("Enter").wait_for_text("Ask, or /help")
    chat.send("/context").wait_for_text("tokens, ")


@needs_tmux
def test_view_opens_the_users_editor_and_returns(terminal: Callable[..., TerminalChat], tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/seen.md\n')
    editor.chmod(0o755)
    made = terminal()
    made.start(made.script({"text": REPLY}), EDITOR=str(editor))
    made.send("What is it?").wait_for_text("is wrapped")
    made.wait_idle()
    made.send("/view 1")
    end = time.monotonic() + TIMEOUT
    while not (tmp_path / "seen.md").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert (tmp_path / "seen.md").read_text() == f"{CODE}\n"
    made.screen.type("/context")
    made.wait_for_text("❯ /context")  # the screen is the chat's again
    made.press("Enter").wait_for_text("tokens, ")


@pytest.mark.anyio
async def test_copy_copies_the_reply_a_block_or_a_message_by_the_escape_sequence(tmp_path: Path) -> None:
    async with open_app(tmp_path, REPLY) as harness:
        for line, text in (("", REPLY), (" 1", CODE), (" #1", "What is it?")):
            if not line:
                await harness.type("What is it?")
                await harness.press("enter")
                await harness.wait_idle()
            await harness.app._run_line(f"/copy{line}")
            assert harness.app.clipboard == text
        await harness.app._run_line("/copy 2")
        await harness.wait_for_text("There is no block 2: the last reply has 1 block of code.")
        for line in ("/copy code", "/view #99"):
            await harness.app._run_line(line)
            await harness.wait_for_text(f"There is no message {line.split()[1]}: give N for a block of the last reply")
        await harness.app._run_line("/copy all")
        assert harness.app.clipboard == f"## user #1\n\nWhat is it?\n\n## assistant #2\n\n{REPLY}"


def test_the_clipboard_of_another_machine_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "xclip").touch(0o755)
    there = {"PATH": str(tmp_path), "DISPLAY": ":0"}
    assert clipboard_commands(there) == [("xclip", "-selection", "clipboard")]
    assert clipboard_commands(there | {"SSH_TTY": "/dev/pts/1"}) == []
    assert clipboard_commands({"PATH": "", "TMUX": "/tmp/s,1,0"}) == [("tmux", "load-buffer", "-w", "-")]


def test_the_editor_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    assert editor_command({"EDITOR": "code --wait", "VISUAL": ""}) == ["code", "--wait"]
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(InvalidInput, match="set EDITOR"):
        editor_command({})
