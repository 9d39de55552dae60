"""A server on 127.0.0.1 that speaks all four protocols, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import cast

from . import anthropic, gemini, openai_chat, openai_responses
from .connection import Connection
from .dialect import Dialect
from .faults import Answer, Cut, Garbage, Overflow, RateLimited, Stall, Status, StreamError, begun
from .request import Request
from .say import Say

Script = Answer | Sequence[Answer] | Callable[[Request], Answer]
_PATHS: dict[str, ModuleType] = {
    "/v1/chat/completions": openai_chat,
    "/v1/responses": openai_responses,
    "/v1/messages": anthropic,
}


class ProviderServer:
    """Answers by its script while it is entered. With `key`, no other key is let in.

    With `window`, a prompt of more tokens gets the provider's own error. Tokens are a quarter of the characters in
    messages, system prompt and tools, in the usage that is reported, too.
    """

    def __init__(
        self,
        script: Script = "a reply",
        *,
        key: str | None = None,
        models: Sequence[str] = ("first",),
        window: int | None = None,
    ) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.refused: list[str] = []
        """What was wrong with requests that the provider would not have taken."""
        self.overflowed = 0
        """Prompts that were larger than the window."""
        self._key = key
        self._models = models
        self.window = window
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> ProviderServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    gemini_url = anthropic_url

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = cast("asyncio.Task[None]", asyncio.current_task())
            tasks.add(task)
            try:
                await self._converse(Connection(reader, writer))
            except asyncio.CancelledError:
                return
            finally:
                tasks.discard(task)

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        self.port: int = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _converse(self, connection: Connection) -> None:
        try:
            while (received := await connection.receive()) is not None:
                method, path, headers, body = received
                await self._answer(connection, method, path, headers, body)
                await connection.rest()
                if headers.get("connection", "").lower() == "close":
                    break
        except ConnectionError:
            return
        finally:
            await connection.close()

    async def _answer(
        self, connection: Connection, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> None:
        dialect = _dialect(path)
        if method == "GET" and path == "/v1/models":
            self.requests.append(Request("models", path, headers))
            listed = [{"id": model, "object": "model", "created": 1, "owned_by": "tests"} for model in self._models]
            await connection.answer(200, {"object": "list", "data": listed})
            return
        if dialect is None or method != "POST":
            await connection.answer(404, {"error": {"message": f"Unknown request URL: {method} {path}."}})
            return
        request = Request(dialect.name, path, headers, number=len(self.requests))
        self.requests.append(request)
        answer = self._refusal(dialect, request, body) or self._scripted(request)
        try:
            await self._perform(connection, dialect, request, answer)
        except ConnectionError:
            request.disconnected.set()
            raise

    def _refusal(self, dialect: Dialect, request: Request, body: bytes) -> Status | None:
        try:
            request.body = json.loads(body)
        except ValueError:
            return Status(400, "We could not parse the JSON body of your request.")
        if not isinstance(request.body, dict):
            return Status(400, "The request body is not an object.")
        if dialect.name == "gemini":
            request.body.setdefault("model", request.path.rpartition("/")[2].partition(":")[0])
        dialect.read(request)
        if (given := dialect.key(request)) is None or (self._key is not None and given != self._key):
            return Status(401, "Incorrect API key provided.", "invalid_api_key" if "openai" in dialect.name else None)
        refusal = dialect.refuse(request)
        if refusal is not None:
            self.refused.append(refusal.message)
        elif self.window is not None and request.size > self.window:
            self.overflowed += 1
            return dialect.overflow(Overflow(self.window, request.size))
        return refusal

    def _scripted(self, request: Request) -> Answer:
        if isinstance(self.script, Sequence) and not isinstance(self.script, str):
            asked = sum(earlier.protocol != "models" for earlier in self.requests) - 1
            return self.script[min(asked, len(self.script) - 1)]
        return self.script(request) if callable(self.script) else self.script

    async def _perform(self, connection: Connection, dialect: Dialect, request: Request, answer: Answer) -> None:
        match answer:
            case Overflow():
                await self._perform(connection, dialect, request, dialect.overflow(answer))
            case RateLimited():
                wait = {"retry-after": f"{answer.retry_after:g}"}
                await self._perform(connection, dialect, request, Status(429, "Rate limit reached.", headers=wait))
            case Status():
                body = dialect.error(answer.status, answer.message, answer.code) if answer.body is None else answer.body
                await connection.answer(answer.status, body, answer.headers)
            case Garbage():
                await connection.open_stream()
                await connection.send(answer.data)
                await connection.end_stream()
            case Stall(after=None):
                await self._wait(connection, request, None)
            case Stall() | Cut() | StreamError():
                await self._break_off(connection, dialect, request, answer)
            case _:
                said = Say(answer) if isinstance(answer, str) else answer
                if await self._speak(connection, dialect, request, said, None):
                    for frame in dialect.closing(request, said):
                        await connection.send(frame)
                    await connection.end_stream()

    async def _break_off(
        self, connection: Connection, dialect: Dialect, request: Request, fault: Stall | Cut | StreamError
    ) -> None:
        if not await self._speak(connection, dialect, request, begun(fault), fault.after):
            return
        match fault:
            case Stall():
                await self._wait(connection, request, None)
            case StreamError():
                await connection.send(dialect.broken(fault))
                await connection.end_stream()
            case Cut(clean=True):
                await connection.end_stream()
            case Cut():
                connection.hang_up()

    async def _speak(
        self, connection: Connection, dialect: Dialect, request: Request, said: Say, most: int | None
    ) -> bool:
        """Send the pieces; false if the client left meanwhile."""
        await connection.open_stream()
        for frame in dialect.opening(request, said):
            await connection.send(frame)
        for piece in said.parts()[:most]:
            if await self._wait(connection, request, said.delay):
                return False
            for frame in dialect.piece(request, said, piece):
                await connection.send(frame)
            request.sent += 1
        return True

    async def _wait(self, connection: Connection, request: Request, seconds: float | None) -> bool:
        gone = await connection.hears_hang_up(seconds)
        if gone:
            request.disconnected.set()
        return gone


def _dialect(path: str) -> Dialect | None:
    if ":streamGenerateContent" in path:
        return cast("Dialect", gemini)
    return cast("Dialect | None", _PATHS.get(path.partition("?")[0]))
