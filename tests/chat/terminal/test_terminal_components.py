"""Components: Ctrl-C, approval preview, input history, terminal stream."""

from __future__ import annotations

import io
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from holdfast.agent.tools import PermissionRequest, PlannedChange, Sandbox
from holdfast.chat.terminal import run_terminal
from holdfast.chat.terminal.approval import approval_preview, wrap_rows
from holdfast.chat.terminal.ctrl_c import DOUBLE_PRESS_SECONDS, CtrlCState
from holdfast.chat.terminal.driver import TerminalStream, terminal_exists
from holdfast.chat.terminal.input_history import HistoryFile, InputHistory
from holdfast.chat.terminal.run import continue_command
from holdfast.errors import InvalidInput
from holdfast.io.text import escape_controls
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


def test_line_on_leaving_repeats_the_options_that_were_given(tmp_path: Path) -> None:
    flags = {"store": "a b.db", "model": "script:x.json", "window": 50_000}
    settings = load_settings(tmp_path, flags, environ={"HOME": str(tmp_path), "HOLDFAST_PRESET": "pi"})
    words = shlex.split(continue_command("abc", settings))
    assert words[:4] == ["holdfast", "chat", "--session", "abc"]
    assert dict(zip(words[4::2], words[5::2], strict=True)) == {
        "--store": settings.store,
        "--model": "script:x.json",
        "--window": "50000",
    }


def test_line_on_leaving_keeps_the_sandbox(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {}, environ={"HOME": str(tmp_path)})
    assert continue_command("abc", settings, Sandbox()).endswith("--session abc --sandbox=offline")
    assert continue_command("abc", settings, Sandbox(network=True)).endswith("--sandbox=network")


def shown(tool: str, **arguments: str) -> str:
    lines = approval_preview(PermissionRequest(tool, "", ToolCall("1", tool, dict(arguments))))
    return "\n".join(line.plain for line in lines)


def shown_change(before: str | None, after: str) -> list[str]:
    content = None if before is None else before.encode()
    change = PlannedChange(Path("/harbor/a.py"), "a.py", content, after.encode(), "")
    lines = approval_preview(PermissionRequest("write_file", "", ToolCall("1", "write_file", {}), change))
    return [line.plain for line in lines]


def test_approval_preview_of_a_changed_file_is_a_numbered_diff() -> None:
    old = "\n".join(f"line {number}" for number in range(12))
    assert shown_change(old, old.replace("line 6", "line six")) == [
        *("a.py  1 removed, 1 added, of 12 lines", " 5   line 4", " 6   line 5", " 7 - line 6", " 7 + line six"),
        *(" 8   line 7", " 9   line 8"),
    ]
    assert shown_change("one\n", "") == ["a.py  replaces 1 line", "1 - one"]
    many = [f"{number}" for number in range(1_000)]
    lines = shown_change("\n".join(many), "\n".join(["first", *many[1:-1], "last"]))
    assert [line for line in lines if line[5:6] in ("+", "-")] == [
        *("   1 - 0", "   1 + first", "1000 - 999", "1000 + last"),
    ]


def test_approval_preview_of_an_overwritten_file_says_so() -> None:
    old, new = ("\n".join(f"{word} {number}" for number in range(count)) for word, count in (("old", 31), ("new", 2)))
    lines = shown_change(old, new)
    assert lines[0] == "a.py  replaces 31 lines" and lines[1] == " 1 - old 0" and lines[-1] == " 2 + new 1"


def test_approval_preview_of_a_new_file_shows_all_of_it() -> None:
    text = "\n".join(f"line {number}" for number in range(30))
    lines = shown_change(None, text)
    assert lines[0] == "a.py  new file, 30 lines"
    assert lines[1:] == [f"{number + 1:>2} + line {number}" for number in range(30)]


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_approval_preview_shows_every_changed_line(before: list[str], after: list[str]) -> None:
    """The shown lines, applied to the old file, give the new one."""
    lines = shown_change("\n".join(before), "\n".join(after))[1:]
    width = len(str(max(len(before), len(after), 1)))
    rows = [(line[:width].strip(), line[width + 1], line[width + 3 :]) for line in lines]
    removed = {int(number) for number, sign, _ in rows if sign == "-"}
    added = {int(number): text for number, sign, text in rows if sign == "+"}
    rest = iter([text for number, text in enumerate(before, 1) if number not in removed])
    rebuilt = [added[number] if number in added else next(rest) for number in range(1, len(after) + 1)]
    assert rebuilt == after


def test_approval_preview_of_command_shows_control_characters() -> None:
    assert shown("run_command", command="ls\x1b[8m; rm -rf /\x1b[0m\nls") == "1 ls^[[8m; rm -rf /^[[0m\n2 ls"
    assert shown("run_command", command="ls\u202e\u200b x\r") == r"$ ls\u202e\u200b x^M"


def test_approval_preview_of_other_tool_shows_arguments() -> None:
    assert shown("moor", berth="12", boat="Petrel") == "berth: 12\nboat: Petrel"
    assert shown("edit_file", path="a.py") == "path: a.py"


@pytest.mark.parametrize(
    ("command", "marked"),
    [
        ("true" + " " * 2_500 + "; touch X", "$ true␣×2,500; touch X"),
        ("true" + " " * 32 + ";", "$ true" + " " * 32 + ";"),
        ("rm\u00a0-r boats", r"$ rm\u00a0-r boats"),
        ("a\u2003b\u3000c\u202fd\u2800e", r"$ a\u2003b\u3000c\u202fd\u2800e"),
        ("true" + "\u00a0" * 2_500 + "; touch X", r"$ true\u00a0×2,500; touch X"),
        ("a\tb\t\tc", "$ a→b→  →   c"),
    ],
)
def test_blanks_that_cannot_be_seen_are_marked(command: str, marked: str) -> None:
    assert shown("run_command", command=command) == marked
    (line,) = approval_preview(PermissionRequest("run_command", "", ToolCall("1", "run_command", {"command": command})))
    reversed_text = "".join(line.plain[span.start : span.end] for span in line.spans if str(span.style) == "reverse")
    assert all(mark not in marked or mark in reversed_text for mark in ("␣", "→", r"\u"))


def test_tabs_and_blanks_of_a_diff_are_marked() -> None:
    assert shown_change("a b\n", "a\tb\u00a0c\n")[1:] == ["1 - a b", r"1 + a→b\u00a0c"]


@given(st.text(), st.integers(2, 9))
def test_wrapped_rows_hold_every_character(text: str, width: int) -> None:
    line = escape_controls(text).replace("\n", "")
    assert "".join(row.plain for _, row in wrap_rows([Text(line)], width)) == line


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


def test_input_history_file_is_bounded_and_lists_this_folder_last(tmp_path: Path) -> None:
    path, here, there = tmp_path / "state" / "history.jsonl", tmp_path / "here", tmp_path / "there"
    for text in ("one", "two"):
        HistoryFile(path, here).append(text)
    HistoryFile(path, there).append("elsewhere")
    assert HistoryFile(path, here).read() == ["elsewhere", "one", "two"]
    with path.open("ab") as file:
        file.write(b"{broken\n" + (b'{"folder":"x","text":"' + b"y" * 5_000 + b'"}\n') * 200)
    HistoryFile(path, here).append("newest")
    assert path.stat().st_size < 510_000 and path.stat().st_mode & 0o777 == 0o600
    assert HistoryFile(path, here).read()[-1] == "newest"
    HistoryFile(path, here).append("x" * 20_001)
    assert HistoryFile(path, here).read()[-1] == "newest"
