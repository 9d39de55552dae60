"""Commands in bubblewrap: what they can write and reach."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from holdfast.agent.tools import Sandbox, Toolbox, WorkingFolder, approve_all, command_tool
from holdfast.errors import InvalidInput
from holdfast.io.processes import run_shell
from holdfast.messages import ToolCall

pytestmark = pytest.mark.anyio


def why_not() -> str:
    """Returns why no sandbox can be made here."""
    try:
        Sandbox().require()
    except InvalidInput as problem:
        return str(problem)
    return ""


confined = pytest.mark.skipif(bool(why_not()), reason=why_not())


async def run(folder: Path, command: str, *, network: bool = False) -> str:
    box = Toolbox([command_tool(WorkingFolder(folder), Sandbox(network))], approve_all)
    return (await box.run(ToolCall("1", "run_command", {"command": command}))).text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("harbor/.git/hooks", "harbor/charts/.vscode", "harbor/src"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "harbor" / "Makefile").write_text("all:\n")
    (tmp_path / "outside.txt").write_text("calm")
    return tmp_path / "harbor"


@pytest.fixture
def server() -> Iterator[int]:
    """Accepts connections on the loopback address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: listener.accept()[0].close(), daemon=True).start()
        yield listener.getsockname()[1]


@confined
async def test_command_writes_in_the_folder_and_a_private_tmp_only(folder: Path) -> None:
    assert "[exit code 0]" in await run(
        folder, "echo low > src/tides.txt && echo x > /tmp/holdfast-x && cat src/tides.txt"
    )
    assert (folder / "src" / "tides.txt").read_text() == "low\n"
    assert "holdfast-x" not in os.listdir("/tmp")
    for place in ("../outside.txt", "/etc/holdfast-x", "~/holdfast-x", "/run/holdfast-x"):
        await run(folder, f"echo storm > {place}")
        assert "No such file" in (await run_shell(f"cat {place}", cwd=folder / "src")).stderr, place
    assert (folder.parent / "outside.txt").read_text() == "calm"


@confined
async def test_protected_paths_are_read_only(folder: Path) -> None:
    for place in (".git/config", ".git/hooks/pre-commit", "charts/.vscode/tasks.json", "Makefile"):
        assert "Read-only file system" in await run(folder, f"echo x > {place}"), place
    for command in ("mv .git old", "rm Makefile"):
        assert "[exit code 0]" not in await run(folder, command)
    assert sorted(os.listdir(folder)) == [".git", "Makefile", "charts", "src"]


@confined
async def test_network_is_reached_only_where_it_was_chosen(folder: Path, server: int) -> None:
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{server} && echo connected"
    assert "connected" not in await run(folder, f"bash -c '{connect}'")
    assert "connected" in await run(folder, f"bash -c '{connect}'", network=True)


@confined
async def test_processes_of_a_command_that_took_too_long_are_stopped(folder: Path) -> None:
    box = Toolbox([command_tool(WorkingFolder(folder), Sandbox())], approve_all)
    command = "touch src/begun; setsid sleep 61.25 & sleep 61.25"
    answer = await box.run(ToolCall("1", "run_command", {"command": command, "seconds": 1}))
    assert "longer than 1 s" in answer.text and (folder / "src" / "begun").exists()
    with anyio.fail_after(20):
        while "sleep 61.25" in (await run_shell("ps -eo args | grep '^[s]leep'")).stdout:  # noqa: ASYNC110
            await anyio.sleep(0.02)


def test_missing_bubblewrap_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInput, match="bubblewrap"):
        Sandbox().require()


def test_bubblewrap_that_cannot_run_is_an_error_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert shutil.which("bwrap") == str(tmp_path / "bwrap")
    with pytest.raises(InvalidInput, match="No permissions to create new namespace"):
        Sandbox().require()
