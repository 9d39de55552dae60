"""What the user always allows: a tool, or the first words of a command, never every command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.agent.tools import (
    Permission,
    PermissionRequest,
    PermissionRules,
    Toolbox,
    WorkingFolder,
    command_tool,
    file_tools,
)
from holdfast.agent.tools.permissions import command_prefix
from holdfast.errors import InvalidInput
from holdfast.messages import ToolCall

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("command", "prefix"),
    [
        ("git status --short", "git status"),
        ("pytest -q tests/test_tides.py", "pytest"),
        ("python -m pytest -q", "python -m pytest"),
        ("npm run build", "npm run"),
        ("rm -r boats", "rm"),
        ("git", None),
        ("git -c alias.x=!sh x", None),
        ("python -c 'import os'", None),
        ("python setup.py", None),
        ("bash -c ls", None),
        ("sudo ls", None),
        ("find . -exec rm {} +", None),
        ("xargs rm", None),
        ("env X=1 ls", None),
        ("X=1 ls", None),
        ("git status; rm -r .", None),
        ("git status && rm -r .", None),
        ("git status | sh", None),
        ("git status > tides.txt", None),
        ("git status $(rm -r .)", None),
        ("git status `rm -r .`", None),
        ("git status\nrm -r .", None),
        ("git status\u202e", None),
        ("git 'status", None),
        ("", None),
    ],
)
def test_prefix_of_a_command_is_what_it_does(command: str, prefix: str | None) -> None:
    assert command_prefix(command) == prefix


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


async def test_always_allows_a_prefix_and_never_every_command(tmp_path: Path) -> None:
    user = AskedUser("always")
    box = toolbox(tmp_path, user)
    for text in ("echo one", "echo two", "echo three; touch X", "touch Y", "echo four"):
        await run(box, text)
    assert [request.line for request in user.asked] == ["echo one", "echo three; touch X", "touch Y"]
    assert [request.rule for request in user.asked] == ["run_command echo", None, "run_command touch"]
    for _ in range(2):
        await run(box, "echo a; echo b")
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
    assert rules.rules == ["run_command echo"]
    rules.revoke("run_command echo")
    assert rules.rules == [] and "did not allow" in await run(toolbox(here, again, file), "echo two")
    with pytest.raises(InvalidInput, match="/permissions"):
        rules.revoke("run_command echo")


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
