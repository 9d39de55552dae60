"""Shell commands that are killed with their children on cancellation and with the program, and shutdown on signals."""

from __future__ import annotations

import os
import platform
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import anyio
import msgspec
from anyio.abc import ByteSendStream, Process, TaskStatus

_MARK_VARIABLE = "HOLDFAST_COMMAND"
"""Set for each command and inherited by what it starts."""
_MAX_OUTPUT_BYTES = 1_000_000
"""Bytes of output that are kept; the rest is read and dropped, so that the command can finish."""
_OUTPUT_GRACE = 0.5
"""Seconds to wait for output after the command has exited: a background child can hold the pipe open."""


class ShellResult(msgspec.Struct, frozen=True):
    """Exit code and output of a command."""

    exit_code: int
    stdout: str
    stderr: str


async def run_shell(
    command: str | Sequence[str],
    stdin: bytes = b"",
    *,
    cwd: str | os.PathLike[str] | None = None,
    on_output: Callable[[bytes], object] | None = None,
) -> ShellResult:
    """Runs a shell command, or a program with arguments; cancellation, or the end of the program, kills its processes.

    `on_output` gets all output as it comes.
    """
    out, err = _OutputBuffer(on_output), _OutputBuffer(on_output)
    mark = secrets.token_hex(16)
    with anyio.CancelScope(shield=True):  # a half-started process could not be killed
        environment = {**os.environ, _MARK_VARIABLE: mark}
        reaper = await _start_reaper(mark)
        try:
            process = await anyio.open_process(command, cwd=cwd, env=environment, start_new_session=True)
        except BaseException:
            await _stop_reaper(reaper)
            raise
        await _watch_with(reaper, process)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_write_stdin, process.stdin, stdin)
            group.start_soon(out.read_from, process.stdout)
            group.start_soon(err.read_from, process.stderr)
            code = await process.wait()
            group.cancel_scope.deadline = anyio.current_time() + _OUTPUT_GRACE
    finally:
        if process.returncode is None:
            _kill(process, mark)
        with anyio.CancelScope(shield=True):
            await process.aclose()
            await _stop_reaper(reaper)
    return ShellResult(code, out.text, err.text)


class _OutputBuffer:
    def __init__(self, on_output: Callable[[bytes], object] | None) -> None:
        self._bytes = bytearray()
        self._on_output = on_output

    async def read_from(self, stream: AsyncIterable[bytes]) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in stream:
                self._bytes += chunk[: _MAX_OUTPUT_BYTES - len(self._bytes)]
                if self._on_output is not None:
                    self._on_output(chunk)

    @property
    def text(self) -> str:
        return self._bytes.decode(errors="replace").strip()


async def _write_stdin(stream: ByteSendStream, data: bytes) -> None:
    """Writes the input; a command that does not read it is no error."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await stream.send(data)
        await stream.aclose()


_REAPER = """
read -r group
while read -r _; do :; done
kill -KILL -- "-$group"
for place in /proc/[0-9]*; do grep -q "$0" "$place/environ" && kill -KILL "${place#/proc/}"; done
"""
"""Waits until its input ends, as it does when this program is killed, and kills the command and what it started."""


async def _start_reaper(mark: str) -> Process | None:
    if os.name != "posix":
        return None
    words = ["/bin/sh", "-c", _REAPER, f"{_MARK_VARIABLE}={mark}"]
    return await anyio.open_process(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env={"PATH": os.defpath}
    )


async def _watch_with(reaper: Process | None, process: Process) -> None:
    if reaper is not None and reaper.stdin is not None:
        with suppress(anyio.BrokenResourceError):
            await reaper.stdin.send(f"{process.pid}\n".encode())


async def _stop_reaper(reaper: Process | None) -> None:
    """Ends it before its input: a command that has exited may leave processes in the background."""
    if reaper is not None:
        with suppress(ProcessLookupError):
            reaper.kill()
        await reaper.aclose()


def _kill(process: Process, mark: str) -> None:
    """Kills the command's process group, and children that left it for a session of their own."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    for child in _marked_processes(f"{_MARK_VARIABLE}={mark}".encode()):
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)


def _marked_processes(mark: bytes) -> Iterator[int]:
    """Yields the processes that inherited this variable, where the system tells (Linux)."""
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in place.read_bytes().split(b"\0"):
                yield int(place.parent.name)


def process_name() -> str:
    """Returns a name of this process that no other has had on this machine: host, id and time of its start."""
    return f"{_machine()}:{os.getpid()}:{_start_time(os.getpid())}"


def has_ended(name: str) -> bool:
    """Whether the process with this name has ended; False if it is on another machine or the system does not tell.

    What stands before an `@` in the name, such as the id of a lease, does not count.
    """
    machine, _, rest = name.rpartition("@")[2].partition(":")
    pid, _, started = rest.partition(":")
    return bool(started) and pid.isdecimal() and machine == _machine() and _start_time(int(pid)) != started


@cache
def _machine() -> str:
    """Host and process namespace: ids of processes in another container mean others here."""
    try:
        return f"{platform.node()}/{os.stat('/proc/self/ns/pid').st_ino}".replace(":", "_")
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """Returns the start time of a process in ticks since the system started; empty where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


class SignalStop:
    """Whether a signal was received."""

    exit_code: int | None = None
    """Exit code of a process stopped by this signal; None if there was none."""


@asynccontextmanager
async def stop_on_signals(stop: Callable[[], object]) -> AsyncIterator[SignalStop]:
    """Calls `stop` on the first SIGINT or SIGTERM; a second one cancels the block."""
    stopped = SignalStop()

    async def listen(*, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                if stopped.exit_code is not None:
                    group.cancel_scope.cancel()
                stopped.exit_code = 128 + number
                stop()

    async with anyio.create_task_group() as group:
        if sys.platform != "win32":  # on Windows, Ctrl-C cancels everything
            await group.start(listen)
        yield stopped
        group.cancel_scope.cancel()


async def call_on_hangup(reload: Callable[[], object]) -> None:
    """Calls `reload` on every SIGHUP until it is cancelled; returns at once on Windows, which has none."""
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGHUP) as signals:
        async for _ in signals:
            reload()
