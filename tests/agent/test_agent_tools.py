"""The agent's tools work inside one folder only."""

from __future__ import annotations

import os
import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.tools import (
    AgentTool,
    Permission,
    PermissionRequest,
    ToolArguments,
    Toolbox,
    WorkingFolder,
    approve_all,
    command_tool,
    file_tools,
)
from holdfast.agent.tools.files import MAX_CHARACTERS
from holdfast.errors import InvalidInput
from holdfast.messages import ToolCall, encode_tools

pytestmark = pytest.mark.anyio


@pytest.fixture
def harbor(tmp_path: Path) -> Path:
    folder = tmp_path / "harbor"
    (folder / "logs").mkdir(parents=True)
    (folder / "tides.txt").write_text("low 3\nhigh 9\nlow 4\n")
    (folder / "logs" / "may.log").write_text("moored at 9\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("low")
    (folder / "photo.png").write_bytes(b"\x89PNG\0\0low")
    (tmp_path / "secret.txt").write_text("nobody's business")
    return folder


def toolbox(folder: Path, approve: Any = approve_all) -> Toolbox:
    inside = WorkingFolder(folder)
    return Toolbox([*file_tools(inside), command_tool(inside)], approve)


def is_running(process: int) -> bool:
    """Whether the process exists and is not a zombie."""
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().split()[2] != "Z"


async def call(box: Toolbox, name: str, **arguments: Any) -> tuple[str, bool]:
    answer = await box.run(ToolCall("c1", name, arguments))
    return answer.text, answer.is_error


async def test_file_tools_read_list_and_search(harbor: Path) -> None:
    box = toolbox(harbor)
    assert await call(box, "read_file", path="tides.txt") == ("low 3\nhigh 9\nlow 4\n", False)
    assert await call(box, "read_file", path="tides.txt", first_line=2, lines=1) == (
        "high 9\n\n[lines 2-2: go on with first_line=3]",
        False,
    )
    assert await call(box, "list_files") == ("photo.png\ntides.txt\nlogs/may.log", False)
    assert await call(box, "list_files", pattern="*.log") == ("logs/may.log", False)
    assert await call(box, "search_files", text="low") == ("tides.txt:1: low 3\ntides.txt:3: low 4", False)
    assert await call(box, "search_files", text="(.*") == ("(No matches.)", False)


async def test_empty_pattern_matches_every_file(harbor: Path, caplog: pytest.LogCaptureFixture) -> None:
    box = toolbox(harbor)
    for pattern in ("", ".", "./"):
        assert await call(box, "list_files", pattern=pattern) == ("photo.png\ntides.txt\nlogs/may.log", False)
        assert (await call(box, "search_files", text="low 3", pattern=pattern))[0] == "tides.txt:1: low 3"
    assert not caplog.records


async def test_long_line_is_read_in_pieces(harbor: Path) -> None:
    """The result names where to continue: nothing is missed, nothing is repeated."""
    line = "".join(f"<{number}>" for number in range(20_000))
    (harbor / "min.json").write_text(f"first\n{line}\nlast\n")
    box, text_read, first_line, first_character = toolbox(harbor), "", 1, 1
    for _ in range(10):
        given = {"path": "min.json", "first_line": first_line, "first_character": first_character}
        text, failed = await call(box, "read_file", **given)
        assert not failed and len(text) < MAX_CHARACTERS + 100
        piece, mark, next_place = text.partition("\n[line")
        text_read += piece
        if not mark:
            break
        places = [int(number) for number in re.findall(r"=(\d+)", next_place)]
        first_line, first_character = places if len(places) == 2 else (places[0], 1)
    assert text_read == f"first\n{line}\nlast\n"


async def test_search_in_a_long_line_shows_an_excerpt(harbor: Path) -> None:
    (harbor / "min.js").write_text(f"  {'x' * 900}needle{'y' * 900}\n  a needle\n")
    text, _ = await call(toolbox(harbor), "search_files", text="needle", path="min.js")
    first, second = text.splitlines()
    assert first.startswith("min.js:1: …xxx") and "xneedley" in first and first.endswith("yyy…") and len(first) < 330
    assert second == "min.js:2: a needle"
    text, _ = await call(toolbox(harbor), "search_files", text=f"x{'x' * 400}", path="min.js")
    assert text == f"min.js:1: {'x' * 298}…"


@pytest.mark.parametrize("line", [b"a\n", b"a"], ids=["short lines", "one long line"])
async def test_large_file_is_not_loaded_into_memory(harbor: Path, line: bytes) -> None:
    (harbor / "large.log").write_bytes(b"\n\nneedle\n" + line * (8_000_000 // len(line)))
    box = toolbox(harbor)
    await call(box, "read_file", path="tides.txt")
    tracemalloc.start()
    try:
        assert (await call(box, "read_file", path="large.log", first_line=3, lines=1))[0].startswith("needle\n\n[lines")
        text, _ = await call(box, "search_files", text="needle")
        assert text == "[too large to search: large.log]", "files that were not searched are listed"
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are texts")
async def test_file_name_that_is_not_utf8_is_escaped(harbor: Path) -> None:
    """A lone surrogate in a listing could not be stored, and would end the conversation."""
    (harbor / os.fsdecode(b"caf\xe9.txt")).write_text("needle\n")
    box = toolbox(harbor)
    assert (await call(box, "list_files", pattern="caf*"))[0] == "caf\\xe9.txt"
    assert (await call(box, "search_files", text="needle"))[0] == "caf\\xe9.txt:1: needle"


async def test_tool_result_has_no_lone_surrogates() -> None:
    async def says(given: ToolArguments) -> str:
        return "a whole \ud83d\ude00 and half a \ud83d"

    box = Toolbox([AgentTool("smile", "Smile.", ToolArguments, says)], approve_all)
    assert await call(box, "smile") == ("a whole 😀 and half a \ufffd", False)


async def test_tool_without_arguments_runs() -> None:
    async def works(given: ToolArguments) -> str:
        return "done"

    asked: list[PermissionRequest] = []

    async def approve(request: PermissionRequest) -> Permission:
        asked.append(request)
        return "yes"

    box = Toolbox([AgentTool("launch", "Launch.", ToolArguments, works, changes=True)], approve)
    assert await call(box, "launch") == ("done", False)
    assert [request.line for request in asked] == [""] == [box.describe(ToolCall("c1", "launch", {}))]


async def test_file_tools_edit_and_write(harbor: Path) -> None:
    box = toolbox(harbor)
    assert await call(box, "edit_file", path="tides.txt", old="high 9", new="high 10") == ("Edited tides.txt.", False)
    assert (harbor / "tides.txt").read_text() == "low 3\nhigh 10\nlow 4\n"
    text, failed = await call(box, "edit_file", path="tides.txt", old="low", new="x")
    assert failed and "occurs 2 times" in text
    text, failed = await call(box, "edit_file", path="tides.txt", old="neap", new="x")
    assert failed and "does not occur" in text
    assert await call(box, "write_file", path="new/plan.md", content="# Plan\r\n") == ("Wrote new/plan.md.", False)
    assert (harbor / "new" / "plan.md").read_bytes() == b"# Plan\r\n"
    os.chmod(harbor / "tides.txt", 0o750)
    assert await call(box, "write_file", path="tides.txt", content="none") == ("Replaced tides.txt.", False)
    assert (harbor / "tides.txt").stat().st_mode & 0o777 == 0o750


async def test_edit_keeps_bytes_that_are_not_utf8(harbor: Path) -> None:
    (harbor / "old.txt").write_bytes(b"caf\xe9 at nine\r\n")
    assert await call(toolbox(harbor), "edit_file", path="old.txt", old="nine", new="ten") == ("Edited old.txt.", False)
    assert (harbor / "old.txt").read_bytes() == b"caf\xe9 at ten\r\n"


async def test_tool_exception_becomes_an_error_result(harbor: Path) -> None:
    text, failed = await call(toolbox(harbor), "write_file", path="a", content="half a \ud83d")
    assert failed and "write_file failed" in text and not (harbor / "a").exists()


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "~/secret.txt", "logs/../../secret.txt", "link.txt", "x\0y"]
)
@pytest.mark.parametrize("tool", ["read_file", "edit_file", "write_file", "list_files", "search_files"])
async def test_path_outside_the_folder_is_rejected(harbor: Path, tool: str, path: str) -> None:
    (harbor / "link.txt").symlink_to(harbor.parent / "secret.txt")
    more = {"old": "nobody", "new": "x"} if tool == "edit_file" else {"content": "x"} if tool == "write_file" else {}
    more |= {"text": "nobody"} if tool == "search_files" else {}
    text, failed = await call(toolbox(harbor), tool, path=path, **more)
    assert failed and "nobody's business" not in text
    assert (harbor.parent / "secret.txt").read_text() == "nobody's business"


async def test_search_does_not_follow_links_outside(harbor: Path) -> None:
    (harbor / "link.txt").symlink_to(harbor.parent / "secret.txt")
    (harbor / "way").symlink_to(harbor.parent)
    assert await call(toolbox(harbor), "search_files", text="business") == ("(No matches.)", False)


@given(path=st.text(max_size=30))
def test_resolve_returns_a_path_inside_or_raises(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    folder = WorkingFolder(tmp_path_factory.getbasetemp())
    try:
        found = folder.resolve(path)
    except InvalidInput:
        return
    assert found == folder.root or folder.root in found.parents


async def test_invalid_calls_become_error_results(harbor: Path) -> None:
    box = toolbox(harbor)
    for name, arguments, why in [
        ("read_file", {"path": "photo.png"}, "is not a text file"),
        ("read_file", {"path": "gone.txt"}, "no file gone.txt"),
        ("read_file", {"path": "tides.txt", "first_line": 99}, "has 3 lines"),
        ("read_file", {"path": "tides.txt", "first_character": 99}, "Line 1 of tides.txt has fewer than 99 characters"),
        ("read_file", {"path": "tides.txt", "first_line": 3, "first_character": 99}, "Line 3 of tides.txt has fewer"),
        ("read_file", {"file": "tides.txt"}, "arguments are invalid"),
        ("write_file", {"path": "logs", "content": ""}, "is a folder"),
        ("list_files", {"path": "gone"}, "There is no gone"),
        ("fly", {}, "There is no tool 'fly'"),
    ]:
        text, failed = await call(box, name, **arguments)
        assert failed and why in text, text
    answer = await box.run(ToolCall("c", "read_file", '{"path": "tid'))
    assert answer.is_error and "arguments are invalid" in answer.text


async def test_command_returns_output_and_exit_code(harbor: Path) -> None:
    box = toolbox(harbor)
    assert await call(box, "run_command", command="cat tides.txt; echo no >&2; exit 3") == (
        "low 3\nhigh 9\nlow 4\nno\n[exit code 3]",
        True,
    )
    assert await call(box, "run_command", command="nowhere 2>/dev/null") == ("[exit code 127]", True)
    assert await call(box, "run_command", command="true") == ("[exit code 0]", False)
    text, _ = await call(box, "run_command", command="yes | head -c 100000")
    assert len(text) < MAX_CHARACTERS + 100 and "characters left out" in text


@pytest.mark.parametrize(
    "start", ["sh", pytest.param("setsid sh", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux only"))]
)
async def test_command_timeout_kills_child_processes(harbor: Path, start: str) -> None:
    line = f"{start} -c 'echo $$ > child; sleep 60; touch late' & sleep 60"
    written = ""
    for seconds in (1, 20):
        text, failed = await call(toolbox(harbor), "run_command", command=line, seconds=seconds)
        assert failed and f"longer than {seconds} s" in text
        if (harbor / "child").exists() and (written := (harbor / "child").read_text()):
            break
    child = int(written)
    with anyio.fail_after(20):
        while is_running(child):  # noqa: ASYNC110 - there is nothing to wait for
            await anyio.sleep(0.02)


async def test_changing_tools_ask_for_permission(harbor: Path) -> None:
    asked: list[PermissionRequest] = []
    says: list[Permission] = ["no", "yes", "always"]

    async def approve(request: PermissionRequest) -> Permission:
        asked.append(request)
        return says[len(asked) - 1]

    box = toolbox(harbor, approve)
    await call(box, "read_file", path="tides.txt")
    assert not asked
    text, failed = await call(box, "write_file", path="a", content="1")
    assert failed and "did not allow" in text and not (harbor / "a").exists()
    for name in ("b", "c", "d"):
        assert not (await call(box, "write_file", path=name, content="1"))[1]
    assert [request.tool for request in asked] == ["write_file"] * 3, "always is asked once"
    assert [request.line for request in asked] == ["a", "b", "c"]


def test_tool_definitions_encode_for_every_provider(harbor: Path) -> None:
    definitions = toolbox(harbor).definitions
    assert [tool.name for tool in definitions][:2] == ["read_file", "list_files"]
    assert definitions[0].parameters["required"] == ["path"]
    for format in ("openai-chat", "openai-responses", "anthropic", "gemini"):
        assert encode_tools(format, definitions)
