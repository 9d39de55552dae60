"""CPU-bound work in a process of its own: explaining and previewing a compaction does not slow other requests."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from ..compaction import PRESETS
from ..errors import HoldfastError, InvalidInput
from ..messages.json_text import decodable
from ..sessions import CompactionPreview, Explanation, SessionService

_MAX_REPLY = 64 * 2**20
_MAX_EXPLAINED = 8


class PreviewOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compaction to try."""

    strategy: str | None = None
    preset: str | None = None
    budget: int | None = None
    at: str | None = None
    """Event id; None is now."""


@decodable
class WorkRequest(msgspec.Struct, frozen=True):
    """One line to the process."""

    method: str
    session_id: str
    arguments: dict[str, Any]


@decodable
class WorkReply(msgspec.Struct, frozen=True):
    """One line from the process: the result as JSON, or why there is none."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""


class StoreWorker:
    """Explains and previews in another process, which opens the store itself; in this one for a store in memory."""

    def __init__(self, sessions: SessionService, url: str | None) -> None:
        self._sessions, self._url = sessions, url
        preset = sessions.preset.name if sessions.preset is not None else None
        self._service_options = {"preset": preset if preset in PRESETS else None, "window": sessions.window}
        self._turn = anyio.Lock()
        self._process: Process | None = None
        self._explained: dict[tuple[str, str, int], Explanation] = {}

    async def start(self) -> None:
        """Starts the process before it is needed: its imports take longer than the work."""
        if self._url is not None:
            async with self._turn:
                await self._running()

    async def close(self) -> None:
        """Ends the process."""
        if (process := self._process) is not None:
            self._process = None
            with suppress(ProcessLookupError):
                process.kill()
            await process.aclose()

    async def explain(self, session_id: str, compaction: str, mark: int) -> Explanation:
        """Explains a compaction; the last few are kept until a redaction, which moves the session's mark."""
        key = (session_id, compaction, mark)
        if key not in self._explained:
            found = await self._run("explain", session_id, {"compaction": compaction})
            if len(self._explained) >= _MAX_EXPLAINED:
                del self._explained[next(iter(self._explained))]
            self._explained[key] = msgspec.json.decode(found, type=Explanation)
        return self._explained[key]

    async def preview(self, session_id: str, options: PreviewOptions) -> CompactionPreview:
        """Tries a compaction; nothing is written."""
        found = await self._run("preview", session_id, msgspec.structs.asdict(options))
        return msgspec.json.decode(found, type=CompactionPreview)

    async def _run(self, method: str, session_id: str, arguments: dict[str, Any]) -> bytes | msgspec.Raw:
        request = WorkRequest(method, session_id, arguments)
        if self._url is None:
            return await answer(self._sessions, request)
        async with self._turn:
            process = await self._running()
            assert process.stdin is not None and process.stdout is not None
            try:
                await process.stdin.send(msgspec.json.encode(request) + b"\n")
                line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", _MAX_REPLY)
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                await self.close()
                raise InvalidInput("The process for previews ended: try again.") from None
            except BaseException:  # given up: its answer must not be taken for that of the next request
                with anyio.CancelScope(shield=True):
                    await self.close()
                raise
        reply = msgspec.json.decode(line, type=WorkReply)
        if reply.error:
            raise InvalidInput(reply.error)
        return reply.result

    async def _running(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            options = msgspec.json.encode(self._service_options).decode()
            command = [sys.executable, "-m", "holdfast.web.worker_process", options]
            self._process = await anyio.open_process(command, stdin=subprocess.PIPE, stderr=None)
            assert self._process.stdin is not None
            await self._process.stdin.send(f"{self._url}\n".encode())  # may have a password: not in the command
        return self._process


async def answer(sessions: SessionService, request: WorkRequest) -> bytes:
    """Runs one request on a service; returns the result as JSON."""
    if request.method == "explain":
        return msgspec.json.encode(await sessions.explain(request.session_id, **request.arguments))
    return msgspec.json.encode(await sessions.preview(request.session_id, **request.arguments))


async def reply_to(sessions: SessionService, line: bytes) -> bytes:
    """Answers a line of the inspector's process with a line."""
    try:
        result = await answer(sessions, msgspec.json.decode(line, type=WorkRequest))
    except HoldfastError as problem:
        return msgspec.json.encode(WorkReply(error=str(problem))) + b"\n"
    return msgspec.json.encode(WorkReply(msgspec.Raw(result))) + b"\n"
