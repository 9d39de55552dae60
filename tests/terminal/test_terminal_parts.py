"""Small parts: what Ctrl-C means, what a question shows, a wire that does not break."""

from __future__ import annotations

import io
import os

import pytest

from holdfast.agent.tools import Question
from holdfast.errors import InvalidInput
from holdfast.messages import ToolCall
from holdfast.settings import load_settings
from holdfast.terminal import run_terminal
from holdfast.terminal.driver import Wire, is_there
from holdfast.terminal.keys import AGAIN, Interrupts
from holdfast.terminal.past import Past
from holdfast.terminal.preview import preview


def test_ctrl_c_stops_clears_or_warns_and_twice_leaves() -> None:
    now = [0.0]
    interrupts = Interrupts(lambda: now[0])
    assert interrupts.meaning(busy=True, typed=True) == "stop"
    now[0] += AGAIN
    assert interrupts.meaning(busy=False, typed=True) == "leave"
    now[0] += AGAIN + 0.1
    assert interrupts.meaning(busy=False, typed=True) == "clear"
    interrupts.forget()
    assert interrupts.meaning(busy=False, typed=False) == "warn"


def shown(tool: str, **arguments: str) -> str:
    return preview(Question(tool, "", ToolCall("1", tool, dict(arguments)))).plain


def test_an_edit_is_shown_as_its_difference() -> None:
    old = "\n".join(f"line {number}" for number in range(12))
    assert shown("edit_file", path="a.py", old=old, new=old.replace("line 6", "line six")) == (
        "a.py\n  line 4\n  line 5\n- line 6\n+ line six\n  line 7\n  line 8"
    )
    assert shown("edit_file", path="a.py", old="one", new="") == "a.py\n- one\n+ "


def test_a_file_is_shown_by_its_size_and_its_first_lines() -> None:
    text = "\n".join(f"line {number}" for number in range(30))
    lines = shown("write_file", path="a.py", content=text).split("\n")
    assert lines[0] == "a.py  30 lines, 229 characters"
    assert lines[1] == "+ line 0" and lines[-1] == "  and 18 more lines"


def test_a_command_is_shown_whole_with_its_control_characters() -> None:
    assert shown("run_command", command="ls\x1b[8m; rm -rf /\x1b[0m\nls") == "$ ls^[[8m; rm -rf /^[[0m\nls"


def test_any_other_tool_is_shown_by_its_arguments() -> None:
    assert shown("moor", berth="12", boat="Petrel") == "berth: 12\nboat: Petrel"
    assert shown("edit_file", path="a.py") == "path: a.py"


def test_the_past_knows_no_line_twice_in_a_row() -> None:
    past = Past()
    for text in ("one", "one", "  ", "two"):
        past.add(text)
    past.fill(["never"])
    assert [past.back("draft"), past.back("draft"), past.back("draft")] == ["two", "one", None]


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_a_wire_to_a_terminal_that_is_gone_drops_what_is_written() -> None:
    gone: list[str] = []
    wire = Wire(Closed(), lambda: gone.append("gone"))
    wire.write("nobody reads this")
    wire.flush()
    assert gone == ["gone"]


def test_a_pipe_is_no_terminal(tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    assert not is_there(reading)
    os.close(reading)
    os.close(writing)
    monkeypatch.setattr("sys.__stdin__", io.StringIO())
    with pytest.raises(InvalidInput, match="needs a terminal"):
        run_terminal(load_settings(str(tmp_path), environ={"HOME": str(tmp_path)}), folder=".")
