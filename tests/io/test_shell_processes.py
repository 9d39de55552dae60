"""Commands end with the program that runs them, however it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from holdfast.io.processes import run_shell

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX processes")
PROGRAM = "import anyio, sys; from holdfast.io.processes import run_shell; anyio.run(run_shell, sys.argv[1])"


def wait_until_ended(*pids: int) -> None:
    until = time.monotonic() + 20
    while alive := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < until, f"{alive} still run"
        time.sleep(0.02)


def test_command_and_its_children_end_when_the_program_is_killed(tmp_path: Path) -> None:
    """Also one that left the process group."""
    command = f"cd {tmp_path}; sleep 600 & echo $! > a; setsid sh -c 'echo $$ > b; sleep 600' & echo $$ > c; wait"
    with subprocess.Popen([sys.executable, "-c", PROGRAM, command]) as program:
        files = [tmp_path / name for name in "abc"]
        while not all(file.exists() and file.read_text().strip() for file in files):
            time.sleep(0.02)
        program.kill()
    wait_until_ended(*(int(file.read_text()) for file in files))


def children() -> set[str]:
    """The processes that this thread started; other tests of the run have servers."""
    return set(Path("/proc/thread-self/children").read_text().split())


def test_process_left_in_the_background_outlives_its_command_and_the_reaper_ends(tmp_path: Path) -> None:
    before = children()
    left = int(anyio.run(run_shell, "sleep 600 >/dev/null 2>&1 & echo $!").stdout)
    try:
        assert Path(f"/proc/{left}").exists()
        assert children() <= before
    finally:
        os.kill(left, 9)
