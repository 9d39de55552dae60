"""The user who is away is called when the chat waits for an answer, ends or fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from app_harness import open_app

from holdfast.chat.terminal.attention import AWAY_SECONDS, Attention, notification, window_title
from holdfast.settings import load_settings

CALL: dict[str, Any] = {"calls": [{"name": "run_command", "arguments": {"command": "seq 4"}}]}


class Terminal:
    """Collects what was written; time passes by hand."""

    def __init__(self, *, calls: bool = True) -> None:
        self.written: list[str] = []
        self.now = 0.0
        self.attention = Attention(self.written.append, calls=calls, clock=lambda: self.now)

    @property
    def bells(self) -> int:
        return sum(text.startswith("\x07") for text in self.written)


@pytest.mark.parametrize("status", ["waiting", "done", "failed"])
def test_a_user_who_is_away_is_called_once(status: Any) -> None:
    terminal = Terminal()
    terminal.attention.update("busy", "harbor", "thinking")
    terminal.now += AWAY_SECONDS
    for _ in range(3):
        terminal.attention.update(status, "harbor", "something")
    assert terminal.bells == 1 and "harbor: something" in terminal.written[-1]


def test_a_user_who_types_in_a_focused_terminal_is_not_called() -> None:
    terminal = Terminal()
    terminal.attention.update("busy", "harbor", "thinking")
    terminal.now += AWAY_SECONDS
    terminal.attention.key_pressed()
    terminal.attention.update("done", "harbor", "done")
    assert not terminal.bells
    terminal.attention.focused = False
    terminal.attention.update("busy", "harbor", "thinking")
    terminal.attention.update("done", "harbor", "done")
    assert terminal.bells == 1


def test_without_notifications_only_the_title_changes() -> None:
    terminal = Terminal(calls=False)
    terminal.attention.focused = False
    terminal.attention.update("waiting", "harbor", "may it?")
    terminal.attention.close()
    assert terminal.written == ["\x1b[22;0t" + window_title("? harbor: may it?"), "\x1b[23;0t"]


def test_notifications_are_in_the_form_of_the_terminal() -> None:
    assert notification("harbor", "a;b", {"TERM": "xterm-256color"}) == "\x07\x1b]9;harbor: a,b\x07"
    assert notification("harbor", "a;b", {"TERM": "foot"}) == "\x07\x1b]777;notify;harbor;a,b\x07"
    assert notification("harbor", "x", {"TMUX": "s"}) == "\x07\x1bPtmux;\x1b\x1b]9;harbor: x\x07\x1b\\"


def test_no_text_ends_the_sequence_that_holds_it() -> None:
    assert window_title("a\x07b\x1b]52;c;x\x07c\u202e") == "\x1b]2;a^Gbc\x07"


def test_notifications_are_a_setting(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {}, {"HOME": str(tmp_path)}).notifications
    assert not load_settings(tmp_path, {}, {"HOME": str(tmp_path), "HOLDFAST_NOTIFICATIONS": "off"}).notifications


@pytest.mark.anyio
async def test_the_chat_calls_when_it_waits_and_when_it_ends(tmp_path: Path) -> None:
    written: list[str] = []
    async with open_app(tmp_path, CALL, "Four.") as harness:
        harness.app.attention = Attention(written.append)
        harness.app.app_focus = False
        harness.conversation.chat.send("How many?")
        await harness.wait_for_text("May the agent use run_command?")
        assert "may it use run_command? seq 4" in written[-1]
        harness.conversation.pending_approval.answer("yes")
        await harness.wait_for_text("Four.")
        await harness.wait_idle()
        await harness.wait_until(lambda: "\x1b]9;harbor: done" in written[-1])
        assert [text.startswith("\x07") for text in written].count(True) == 2
