"""Components: Ctrl-C, approval preview, input history, terminal stream."""

from __future__ import annotations

import io
import os

import pytest

from holdfast.agent.tools import PermissionRequest
from holdfast.chat.terminal import run_terminal
from holdfast.chat.terminal.app import DOUBLE_PRESS_SECONDS, CtrlCState
from holdfast.chat.terminal.approval import approval_preview
from holdfast.chat.terminal.driver import TerminalStream, terminal_exists
from holdfast.chat.terminal.input_box import InputHistory
from holdfast.errors import InvalidInput
from holdfast.messages import ToolCall
from holdfast.settings import load_settings


def test_ctrl_c_state_stops_clears_warns_or_quits() -> None:
    now = [0.0]
    ctrl_c = CtrlCState(lambda: now[0])
    assert ctrl_c.press(busy=True, typed=True) == "stop"
    now[0] += DOUBLE_PRESS_SECONDS
    assert ctrl_c.press(busy=False, typed=True) == "leave"
    now[0] += DOUBLE_PRESS_SECONDS + 0.1
    assert ctrl_c.press(busy=False, typed=True) == "clear"
    ctrl_c.reset()
    assert ctrl_c.press(busy=False, typed=False) == "warn"


def shown(tool: str, **arguments: str) -> str:
    return approval_preview(PermissionRequest(tool, "", ToolCall("1", tool, dict(arguments)))).plain


def test_approval_preview_of_edit_is_a_diff() -> None:
    old = "\n".join(f"line {number}" for number in range(12))
    assert shown("edit_file", path="a.py", old=old, new=old.replace("line 6", "line six")) == (
        "a.py\n  line 4\n  line 5\n- line 6\n+ line six\n  line 7\n  line 8"
    )
    assert shown("edit_file", path="a.py", old="one", new="") == "a.py\n- one\n+ "


def test_approval_preview_of_new_file_shows_size_and_first_lines() -> None:
    text = "\n".join(f"line {number}" for number in range(30))
    lines = shown("write_file", path="a.py", content=text).split("\n")
    assert lines[0] == "a.py  30 lines, 229 characters"
    assert lines[1] == "+ line 0" and lines[-1] == "  and 18 more lines"


def test_approval_preview_of_command_shows_control_characters() -> None:
    assert shown("run_command", command="ls\x1b[8m; rm -rf /\x1b[0m\nls") == "$ ls^[[8m; rm -rf /^[[0m\nls"


def test_approval_preview_of_other_tool_shows_arguments() -> None:
    assert shown("moor", berth="12", boat="Petrel") == "berth: 12\nboat: Petrel"
    assert shown("edit_file", path="a.py") == "path: a.py"


def test_input_history_skips_repeated_lines() -> None:
    history = InputHistory()
    for text in ("one", "one", "  ", "two"):
        history.add(text)
    history.seed(["never"])
    assert [history.previous("draft"), history.previous("draft"), history.previous("draft")] == ["two", "one", None]


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_terminal_stream_closed_terminal_calls_on_lost() -> None:
    lost: list[str] = []
    stream = TerminalStream(Closed(), lambda: lost.append("lost"))
    stream.write("nobody reads this")
    stream.flush()
    assert lost == ["lost"]


def test_run_terminal_on_pipe_is_refused(tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    assert not terminal_exists(reading)
    os.close(reading)
    os.close(writing)
    monkeypatch.setattr("sys.__stdin__", io.StringIO())
    with pytest.raises(InvalidInput, match="needs a terminal"):
        run_terminal(load_settings(str(tmp_path), environ={"HOME": str(tmp_path)}), folder=".")
