"""A line for the shell, run to its end, or ended with all that it has started."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterable
from contextlib import suppress

import anyio
import msgspec
from anyio.abc import ByteSendStream, Process

_HEARD = 1_000_000
"""Bytes that are kept of what a command says; the rest is read and dropped, so that it can finish."""
_LAST_WORDS = 0.5
"""Seconds in which the output may still come after the command's end: a child in the background can hold it open."""


class Said(msgspec.Struct, frozen=True):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


async def run_shell(line: str, told: bytes = b"", *, folder: str | os.PathLike[str] | None = None) -> Said:
    """Run a line; what it is told comes on its standard input. Whoever cancels this ends it and its children."""
    out, err = _Heard(), _Heard()
    with anyio.CancelScope(shield=True):  # half started, nobody could end it
        process = await anyio.open_process(line, cwd=folder, start_new_session=True)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_tell, process.stdin, told)
            group.start_soon(out.listen, process.stdout)
            group.start_soon(err.listen, process.stderr)
            code = await process.wait()
            group.cancel_scope.deadline = anyio.current_time() + _LAST_WORDS
    finally:
        if process.returncode is None:
            _kill(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return Said(code, out.text, err.text)


class _Heard:
    def __init__(self) -> None:
        self._bytes = bytearray()

    async def listen(self, stream: AsyncIterable[bytes]) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for piece in stream:
                self._bytes += piece[: _HEARD - len(self._bytes)]

    @property
    def text(self) -> str:
        return self._bytes.decode(errors="replace").strip()


async def _tell(stream: ByteSendStream, said: bytes) -> None:
    """A command need not listen."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await stream.send(said)
        await stream.aclose()


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
