"""What the user always allows, and what each mode does with calls; test_command_rules has the rules of commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.agent.tools import (
    AgentTool,
    Mode,
    Permission,
    PermissionRequest,
    PermissionRules,
    Toolbox,
    WorkingFolder,
    approve_all,
    command_tool,
    file_tools,
    refusal,
)
from holdfast.errors import InvalidInput
from holdfast.messages import ToolCall

pytest.importorskip("tree_sitter_bash")
pytestmark = pytest.mark.anyio


class AskedUser:
    """Answers approval requests and remembers them."""

    def __init__(self, answer: Permission) -> None:
        self.answer, self.asked = answer, list[PermissionRequest]()

    async def __call__(self, request: PermissionRequest) -> Permission:
        self.asked.append(request)
        return self.answer


def toolbox(folder: Path, user: AskedUser, file: Path | None = None) -> Toolbox:
    working = WorkingFolder(folder)
    rules = PermissionRules(working.root, file)
    return Toolbox([*file_tools(working), command_tool(working)], user, permissions=rules)


async def run(box: Toolbox, text: str) -> str:
    return (await box.run(ToolCall("1", "run_command", {"command": text}))).text


async def test_always_allows_what_was_offered_and_never_every_command(tmp_path: Path) -> None:
    user = AskedUser("always")
    box = toolbox(tmp_path, user)
    for text in ("echo one", "echo two", "echo three; touch X", "touch Y", "echo four"):
        await run(box, text)
    assert [request.line for request in user.asked] == ["echo one", "echo three; touch X", "touch Y"]
    assert [request.rule for request in user.asked] == [
        "run_command echo *",
        "run_command touch X",
        "run_command touch Y",
    ]
    for _ in range(2):
        await run(box, "echo a > b")
    assert len(user.asked) == 5, "a command without a rule is asked every time"


async def test_rules_are_saved_per_folder_and_can_be_revoked(tmp_path: Path) -> None:
    file, (here, there) = tmp_path / "config" / "permissions.json", (tmp_path / "here", tmp_path / "there")
    for folder in (here, there):
        folder.mkdir()
    await run(toolbox(here, AskedUser("always"), file), "echo one")
    assert file.stat().st_mode & 0o777 == 0o600 or os.name == "nt"
    again, elsewhere = AskedUser("no"), AskedUser("no")
    assert "two" in await run(toolbox(here, again, file), "echo two") and not again.asked
    assert "did not allow" in await run(toolbox(there, elsewhere, file), "echo two") and elsewhere.asked
    rules = PermissionRules(here.resolve(), file)
    assert rules.rules == ["run_command echo *"]
    rules.revoke("run_command echo *")
    assert rules.rules == [] and "did not allow" in await run(toolbox(here, again, file), "echo two")
    with pytest.raises(InvalidInput, match="/permissions"):
        rules.revoke("run_command echo *")


async def test_unreadable_rules_allow_nothing(tmp_path: Path) -> None:
    file = tmp_path / "permissions.json"
    file.write_text("[oops")
    assert "cannot be read" in await run(toolbox(tmp_path, AskedUser("yes"), file), "echo one")


async def test_file_that_changes_while_the_user_is_asked_is_not_written(tmp_path: Path) -> None:
    """What was approved is what is written, to the file that was shown."""
    target, other = tmp_path / "tides.txt", tmp_path / "other.txt"
    for swap in ("content", "link", "gone", "new"):
        target.unlink(missing_ok=True)
        other.write_text("other\n")
        if swap != "new":
            target.write_text("high 9\n")

        async def approve(request: PermissionRequest, swap: str = swap) -> Permission:
            target.unlink(missing_ok=True)
            if swap == "link":
                target.symlink_to(other)
            elif swap != "gone":
                target.write_text("surprise\n")
            return "yes"

        box = Toolbox(file_tools(WorkingFolder(tmp_path)), approve)
        call = {"path": "tides.txt", "content": "low 3\n"}
        answer = await box.run(ToolCall("1", "write_file", call))
        assert answer.is_error and "has changed since" in answer.text, swap
        assert other.read_text() == "other\n" and (not target.exists() or "low" not in target.read_text())


async def test_request_holds_the_whole_change(tmp_path: Path) -> None:
    (tmp_path / "tides.txt").write_bytes(b"high 9\r\nlow 3\xff\r\n")
    (tmp_path / "link.txt").symlink_to("tides.txt")
    user = AskedUser("no")
    box = toolbox(tmp_path, user)
    await box.run(ToolCall("1", "edit_file", {"path": "link.txt", "old": "9", "new": "10"}))
    await box.run(ToolCall("1", "write_file", {"path": "new.txt", "content": "x"}))
    edited, written = (request.change for request in user.asked)
    assert edited is not None and written is not None
    assert (edited.name, edited.before, edited.after) == (
        "tides.txt",
        b"high 9\r\nlow 3\xff\r\n",
        b"high 10\r\nlow 3\xff\r\n",
    )
    assert (written.name, written.before, written.after) == ("new.txt", None, b"x")


async def test_hard_link_out_of_the_folder_is_not_written_through(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside.txt", tmp_path / "harbor"
    folder.mkdir()
    outside.write_text("outside\n")
    os.link(outside, folder / "inside.txt")
    box = toolbox(folder, AskedUser("yes"))
    await box.run(ToolCall("1", "write_file", {"path": "inside.txt", "content": "changed\n"}))
    assert (folder / "inside.txt").read_text() == "changed\n" and outside.read_text() == "outside\n"


def box_in(folder: Path, mode: Mode, user: AskedUser) -> Toolbox:
    async def moor(given: dict[str, str]) -> str:
        return "moored"

    working = WorkingFolder(folder)
    tools = [*file_tools(working), command_tool(working), AgentTool("mcp__quay__moor", "", {}, moor, changes=True)]
    return Toolbox(tools, user, permissions=PermissionRules(working.root, mode=mode))


WRITES = (ToolCall("1", "write_file", {"path": "new.txt", "content": "x"}),)
EDITS = (ToolCall("1", "edit_file", {"path": "tides.txt", "old": "low", "new": "high"}),)
PROTECTED = (ToolCall("1", "write_file", {"path": ".vscode/tasks.json", "content": "x"}),)
COMMANDS = tuple(ToolCall("1", "run_command", {"command": text}) for text in ("touch X", "ls > X", "git push"))
READING = (ToolCall("1", "run_command", {"command": "cat tides.txt | head -1"}),)
MCP = (ToolCall("1", "mcp__quay__moor", {}),)
READS = (ToolCall("1", "read_file", {"path": "tides.txt"}), ToolCall("1", "list_files", {}))


@pytest.mark.parametrize(
    ("mode", "runs", "asks", "refuses"),
    [
        ("ask", READS, (*WRITES, *EDITS, *PROTECTED, *COMMANDS, *READING, *MCP), ()),
        ("accept-edits", (*READS, *WRITES, *EDITS), (*PROTECTED, *COMMANDS, *READING, *MCP), ()),
        ("plan", READS, READING, (*WRITES, *EDITS, *PROTECTED, *COMMANDS, *MCP)),
    ],
)
async def test_mode_decides_what_runs_is_asked_or_refused(
    tmp_path: Path, mode: Mode, runs: tuple[ToolCall, ...], asks: tuple[ToolCall, ...], refuses: tuple[ToolCall, ...]
) -> None:
    (tmp_path / "tides.txt").write_text("low\n")
    user = AskedUser("no")
    box = box_in(tmp_path, mode, user)
    for call in runs:
        assert not (await box.run(call)).is_error and not user.asked, call
    for call in asks:
        assert "did not allow" in (await box.run(call)).text and user.asked.pop().call is call
    before = sorted(os.listdir(tmp_path))
    for call in refuses:
        answer = await box.run(call)
        assert answer.is_error and "plan mode" in answer.text and not user.asked, call
    assert sorted(os.listdir(tmp_path)) == before


async def test_plan_mode_refuses_what_a_rule_allows_and_what_approve_all_would(tmp_path: Path) -> None:
    box = Toolbox(file_tools(WorkingFolder(tmp_path)), approve_all, permissions=PermissionRules(tmp_path, mode="plan"))
    assert "plan mode" in (await box.run(WRITES[0])).text and not os.listdir(tmp_path)
    rules = PermissionRules(tmp_path, mode="plan")
    rules.add("write_file")
    with pytest.raises(InvalidInput, match="plan mode"):
        rules.check(WRITES[0])


async def test_words_of_a_refusal_reach_the_model_as_the_users(tmp_path: Path) -> None:
    async def approve(request: PermissionRequest) -> Permission:
        raise refusal(" no, use pnpm\n")

    working = WorkingFolder(tmp_path)
    answer = await Toolbox([command_tool(working)], approve).run(COMMANDS[0])
    assert answer.is_error and answer.text.endswith("The user did not allow this. The user's words: no, use pnpm")


async def test_h14_every_call_asks_in_a_folder_that_is_not_trusted(tmp_path: Path) -> None:
    """Reading too, whatever is allowed and in whatever mode; nothing is offered from now on."""
    (tmp_path / "a.txt").write_text("read me")
    working, user, file = WorkingFolder(tmp_path), AskedUser("yes"), tmp_path / "rules.json"
    PermissionRules(working.root, file).add("write_file")
    rules = PermissionRules(working.root, file, "accept-edits", trusted=False)
    box = Toolbox([*file_tools(working), command_tool(working)], user, permissions=rules)
    for name, given in {
        "read_file": {"path": "a.txt"},
        "list_files": {},
        "search_files": {"text": "me"},
        "write_file": {"path": "b.txt", "content": "x"},
        "run_command": {"command": "ls"},
    }.items():
        assert not (await box.run(ToolCall("1", name, given))).is_error
        request = user.asked[-1]
        assert (request.tool, request.rule) == (name, None) and "not trusted this folder" in request.about
    assert len(user.asked) == 5
    user.answer = "no"
    assert "The user did not allow this" in (await box.run(ToolCall("1", "read_file", {"path": "a.txt"}))).text
