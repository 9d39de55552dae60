"""The agent's tools: useful inside one folder, and nowhere else."""

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

from holdfast import InvalidInput
from holdfast.agent.tools import (
    AgentTool,
    Arguments,
    Folder,
    Permission,
    Question,
    Toolbox,
    always_yes,
    command_tool,
    file_tools,
)
from holdfast.agent.tools.files import MOST
from holdfast.messages import ToolCall, tools_in

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


def toolbox(folder: Path, approve: Any = always_yes) -> Toolbox:
    inside = Folder(folder)
    return Toolbox([*file_tools(inside), command_tool(inside)], approve)


def runs(process: int) -> bool:
    """Is it there, and not only waiting for somebody to ask how it ended?"""
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().split()[2] != "Z"


async def call(box: Toolbox, name: str, **arguments: Any) -> tuple[str, bool]:
    answer = await box.run(ToolCall("c1", name, arguments))
    return answer.text, answer.is_error


async def test_files_are_read_listed_and_searched(harbor: Path) -> None:
    box = toolbox(harbor)
    assert await call(box, "read_file", path="tides.txt") == ("low 3\nhigh 9\nlow 4\n", False)
    assert await call(box, "read_file", path="tides.txt", first_line=2, lines=1) == (
        "high 9\n\n[lines 2-2: go on with first_line=3]",
        False,
    )
    assert await call(box, "list_files") == ("photo.png\ntides.txt\nlogs/may.log", False)
    assert await call(box, "list_files", pattern="*.log") == ("logs/may.log", False)
    assert await call(box, "search_files", text="low") == ("tides.txt:1: low 3\ntides.txt:3: low 4", False)
    assert await call(box, "search_files", text="(.*") == ("(Nowhere.)", False)


async def test_a_pattern_that_says_nothing_is_for_all_files(harbor: Path, caplog: pytest.LogCaptureFixture) -> None:
    box = toolbox(harbor)
    for pattern in ("", ".", "./"):
        assert await call(box, "list_files", pattern=pattern) == ("photo.png\ntides.txt\nlogs/may.log", False)
        assert (await call(box, "search_files", text="low 3", pattern=pattern))[0] == "tides.txt:1: low 3"
    assert not caplog.records


async def test_a_line_that_is_too_long_is_read_piece_by_piece(harbor: Path) -> None:
    """The cut is told, and what comes after it can be read: nothing is missed, nothing comes twice."""
    line = "".join(f"<{number}>" for number in range(20_000))
    (harbor / "min.json").write_text(f"first\n{line}\nlast\n")
    box, said, first_line, first_character = toolbox(harbor), "", 1, 1
    for _ in range(10):
        given = {"path": "min.json", "first_line": first_line, "first_character": first_character}
        text, failed = await call(box, "read_file", **given)
        assert not failed and len(text) < MOST + 100
        piece, mark, next_place = text.partition("\n[line")
        said += piece
        if not mark:
            break
        places = [int(number) for number in re.findall(r"=(\d+)", next_place)]
        first_line, first_character = places if len(places) == 2 else (places[0], 1)
    assert said == f"first\n{line}\nlast\n"


async def test_of_a_long_line_a_search_shows_what_stands_around(harbor: Path) -> None:
    (harbor / "min.js").write_text(f"  {'x' * 900}needle{'y' * 900}\n  a needle\n")
    text, _ = await call(toolbox(harbor), "search_files", text="needle", path="min.js")
    first, second = text.splitlines()
    assert first.startswith("min.js:1: …xxx") and "xneedley" in first and first.endswith("yyy…") and len(first) < 330
    assert second == "min.js:2: a needle"
    text, _ = await call(toolbox(harbor), "search_files", text=f"x{'x' * 400}", path="min.js")
    assert text == f"min.js:1: {'x' * 298}…"


@pytest.mark.parametrize("line", [b"a\n", b"a"], ids=["short lines", "one long line"])
async def test_a_large_file_is_not_held_in_memory(harbor: Path, line: bytes) -> None:
    (harbor / "large.log").write_bytes(b"\n\nneedle\n" + line * (8_000_000 // len(line)))
    box = toolbox(harbor)
    await call(box, "read_file", path="tides.txt")
    tracemalloc.start()
    try:
        assert (await call(box, "read_file", path="large.log", first_line=3, lines=1))[0].startswith("needle\n\n[lines")
        text, _ = await call(box, "search_files", text="needle")
        assert text == "[too large to be searched: large.log]", "it is told what was not looked at"
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are texts")
async def test_a_name_that_is_no_text_can_be_read(harbor: Path) -> None:
    """A half character in a listing could not be stored, and the conversation would end there."""
    (harbor / os.fsdecode(b"caf\xe9.txt")).write_text("needle\n")
    box = toolbox(harbor)
    assert (await call(box, "list_files", pattern="caf*"))[0] == "caf\\xe9.txt"
    assert (await call(box, "search_files", text="needle"))[0] == "caf\\xe9.txt:1: needle"


async def test_no_half_character_leaves_the_toolbox() -> None:
    async def says(given: Arguments) -> str:
        return "a whole \ud83d\ude00 and half a \ud83d"

    box = Toolbox([AgentTool("smile", "Smile.", Arguments, says)], always_yes)
    assert await call(box, "smile") == ("a whole 😀 and half a \ufffd", False)


async def test_a_tool_need_not_take_arguments() -> None:
    async def works(given: Arguments) -> str:
        return "done"

    asked: list[Question] = []

    async def approve(question: Question) -> Permission:
        asked.append(question)
        return "yes"

    box = Toolbox([AgentTool("launch", "Launch.", Arguments, works, changes=True)], approve)
    assert await call(box, "launch") == ("done", False)
    assert [question.line for question in asked] == [""] == [box.line(ToolCall("c1", "launch", {}))]


async def test_files_are_edited_and_written_whole(harbor: Path) -> None:
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


async def test_bytes_that_are_no_utf8_are_as_they_were_after_an_edit(harbor: Path) -> None:
    (harbor / "old.txt").write_bytes(b"caf\xe9 at nine\r\n")
    assert await call(toolbox(harbor), "edit_file", path="old.txt", old="nine", new="ten") == ("Edited old.txt.", False)
    assert (harbor / "old.txt").read_bytes() == b"caf\xe9 at ten\r\n"


async def test_a_tool_that_breaks_is_an_answer(harbor: Path) -> None:
    text, failed = await call(toolbox(harbor), "write_file", path="a", content="half a \ud83d")
    assert failed and "write_file broke" in text and not (harbor / "a").exists()


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "~/secret.txt", "logs/../../secret.txt", "link.txt", "x\0y"]
)
@pytest.mark.parametrize("tool", ["read_file", "edit_file", "write_file", "list_files", "search_files"])
async def test_nothing_leads_out_of_the_folder(harbor: Path, tool: str, path: str) -> None:
    (harbor / "link.txt").symlink_to(harbor.parent / "secret.txt")
    more = {"old": "nobody", "new": "x"} if tool == "edit_file" else {"content": "x"} if tool == "write_file" else {}
    more |= {"text": "nobody"} if tool == "search_files" else {}
    text, failed = await call(toolbox(harbor), tool, path=path, **more)
    assert failed and "nobody's business" not in text
    assert (harbor.parent / "secret.txt").read_text() == "nobody's business"


async def test_a_search_does_not_follow_a_link_out(harbor: Path) -> None:
    (harbor / "link.txt").symlink_to(harbor.parent / "secret.txt")
    (harbor / "way").symlink_to(harbor.parent)
    assert await call(toolbox(harbor), "search_files", text="business") == ("(Nowhere.)", False)


@given(path=st.text(max_size=30))
def test_whatever_the_path_it_is_inside_or_refused(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    folder = Folder(tmp_path_factory.getbasetemp())
    try:
        found = folder.inside(path)
    except InvalidInput:
        return
    assert found == folder.root or folder.root in found.parents


async def test_what_cannot_be_done_is_an_answer(harbor: Path) -> None:
    box = toolbox(harbor)
    for name, arguments, why in [
        ("read_file", {"path": "photo.png"}, "is no text"),
        ("read_file", {"path": "gone.txt"}, "no file gone.txt"),
        ("read_file", {"path": "tides.txt", "first_line": 99}, "has 3 lines"),
        ("read_file", {"path": "tides.txt", "first_character": 99}, "Line 1 of tides.txt has fewer than 99 characters"),
        ("read_file", {"path": "tides.txt", "first_line": 3, "first_character": 99}, "Line 3 of tides.txt has fewer"),
        ("read_file", {"file": "tides.txt"}, "arguments cannot be used"),
        ("write_file", {"path": "logs", "content": ""}, "is a folder"),
        ("list_files", {"path": "gone"}, "There is no gone"),
        ("fly", {}, "There is no tool 'fly'"),
    ]:
        text, failed = await call(box, name, **arguments)
        assert failed and why in text, text
    answer = await box.run(ToolCall("c", "read_file", '{"path": "tid'))
    assert answer.is_error and "arguments cannot be used" in answer.text


async def test_a_command_tells_its_output_and_its_end(harbor: Path) -> None:
    box = toolbox(harbor)
    assert await call(box, "run_command", command="cat tides.txt; echo no >&2; exit 3") == (
        "low 3\nhigh 9\nlow 4\nno\n[exit code 3]",
        False,
    )
    text, _ = await call(box, "run_command", command="yes | head -c 100000")
    assert len(text) < MOST + 100 and "characters left out" in text


async def test_a_command_that_takes_too_long_is_ended_with_its_children(harbor: Path) -> None:
    line = "sh -c 'sleep 60; touch late' & echo $! > child; sleep 60"
    text, failed = await call(toolbox(harbor), "run_command", command=line, seconds=1)
    assert failed and "longer than 1 s" in text
    child = int((harbor / "child").read_text())
    for _ in range(100):
        if not runs(child):
            break
        await anyio.sleep(0.02)
    else:
        pytest.fail("the child still runs")


async def test_a_person_is_asked_before_anything_is_changed(harbor: Path) -> None:
    asked: list[Question] = []
    says: list[Permission] = ["no", "yes", "always"]

    async def approve(question: Question) -> Permission:
        asked.append(question)
        return says[len(asked) - 1]

    box = toolbox(harbor, approve)
    await call(box, "read_file", path="tides.txt")
    assert not asked
    text, failed = await call(box, "write_file", path="a", content="1")
    assert failed and "did not allow" in text and not (harbor / "a").exists()
    for name in ("b", "c", "d"):
        assert not (await call(box, "write_file", path=name, content="1"))[1]
    assert [question.tool for question in asked] == ["write_file"] * 3, "always is said once"
    assert [question.line for question in asked] == ["a", "b", "c"]


def test_every_provider_is_told_of_the_tools(harbor: Path) -> None:
    told = toolbox(harbor).told
    assert [tool.name for tool in told][:2] == ["read_file", "list_files"]
    assert told[0].parameters["required"] == ["path"]
    for format in ("openai-chat", "openai-responses", "anthropic", "gemini"):
        assert tools_in(format, told)
