"""HTTP server on 127.0.0.1 for all four protocols, in its own thread."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, cast

from tests.providers import anthropic, gemini, openai_chat, openai_responses
from tests.providers.binding import ThoughtRecord
from tests.providers.connection import Connection
from tests.providers.faults import (
    Answer,
    Cut,
    Garbage,
    Overflow,
    RateLimited,
    Stall,
    Status,
    StreamError,
    partial_reply,
)
from tests.providers.protocol import ProviderProtocol
from tests.providers.reply import Say
from tests.providers.request import Request
from tests.providers.whole_replies import whole_reply

from judge import unread

Script = Answer | Sequence[Answer] | Callable[[Request], Answer]
_PATHS: dict[str, ModuleType] = {
    "/v1/chat/completions": openai_chat,
    "/v1/responses": openai_responses,
    "/v1/messages": anthropic,
    "/v1/messages/count_tokens": anthropic,
}


class ProviderServer:
    """Answers by its script inside a `with` block. With `key`, other keys are refused.

    With `window`, a prompt of more tokens gets the provider's own error. Tokens are a quarter of the characters in
    messages, system prompt and tools, also in the reported usage. With `binds_thinking`, reasoning is valid only in the
    conversation in which it was made, as with Anthropic's preserved thinking.
    """

    def __init__(
        self,
        script: Script = "a reply",
        *,
        key: str | None = None,
        models: Sequence[str] = ("first",),
        window: int | None = None,
        binds_thinking: bool = False,
    ) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.refused: list[str] = []
        """Errors of invalid requests."""
        self.overflowed = 0
        """Number of prompts over the window."""
        self.cut_unread: list[str] = []
        """Complaints about requests in which a result that no reply has followed is cut although it fits (H10)."""
        self._key = key
        self._models = models
        self.window = window
        self._thoughts = ThoughtRecord() if binds_thinking else None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> ProviderServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        assert not self.cut_unread or exc[0] is not None, self.cut_unread

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

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = cast("asyncio.Task[None]", asyncio.current_task())
            tasks.add(task)
            try:
                await self._serve_connection(Connection(reader, writer))
            except asyncio.CancelledError:
                return
            finally:
                tasks.discard(task)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self.port: int = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve_connection(self, connection: Connection) -> None:
        try:
            while (received := await connection.receive()) is not None:
                method, path, headers, body = received
                await self._answer(connection, method, path, headers, body)
                await connection.stop_watching()
                if connection.closes:
                    break
        except ConnectionError:
            return
        finally:
            await connection.close()

    async def _answer(
        self, connection: Connection, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> None:
        protocol = _protocol_for(path)
        if method == "GET" and path == "/v1/models":
            self.requests.append(Request("models", path, headers))
            size = {} if self.window is None else {"context_length": self.window}
            about = {"object": "model", "created": 1, "owned_by": "tests", **size}
            listed = [{"id": model, **about} for model in self._models]
            await connection.answer(200, {"object": "list", "data": listed})
            return
        if protocol is None or method != "POST":
            await connection.answer(404, {"error": {"message": f"Unknown request URL: {method} {path}."}})
            return
        request = Request(protocol.name, path, headers, raw=body, number=len(self.requests))
        self.requests.append(request)
        answer = self._refusal(protocol, request, body) or self._scripted(request)
        try:
            await self._perform(connection, protocol, request, answer)
        except ConnectionError:
            request.disconnected.set()
            raise

    def _read(self, protocol: ProviderProtocol, request: Request, body: bytes) -> Status | None:
        """Reads the body into the request; refuses what is no JSON object, or has no key."""
        try:
            request.body = json.loads(body)
        except ValueError:
            return Status(400, "We could not parse the JSON body of your request.")
        if not isinstance(request.body, dict):
            return Status(400, "The request body is not an object.")
        if protocol.name == "gemini":
            request.body.setdefault("model", request.path.rpartition("/")[2].partition(":")[0])
        protocol.read(request)
        if (given := protocol.key(request)) is None or (self._key is not None and given != self._key):
            return Status(401, "Incorrect API key provided.", "invalid_api_key" if "openai" in protocol.name else None)
        return None

    def _refusal(self, protocol: ProviderProtocol, request: Request, body: bytes) -> Status | None:
        if (unreadable := self._read(protocol, request, body)) is not None:
            return unreadable
        refusal = protocol.refuse(request)
        if refusal is None and self._thoughts is not None and (complaint := self._thoughts.complaint(request)):
            refusal = Status(400, complaint)
        self._judge_unread(protocol, request)
        if refusal is not None:
            self.refused.append(refusal.message)
        elif self.window is not None and request.size > self.window:
            self.overflowed += 1
            return protocol.overflow(Overflow(self.window, request.size))
        return refusal

    def _judge_unread(self, protocol: ProviderProtocol, request: Request) -> None:
        messages = next((request.body[name] for name in ("messages", "input", "contents") if name in request.body), [])
        if isinstance(messages, list) and all(isinstance(message, dict) for message in messages):
            self.cut_unread += unread.complaints(messages, protocol.name, size=request.size, window=self.window)

    def _scripted(self, request: Request) -> Answer:
        if isinstance(self.script, Sequence) and not isinstance(self.script, str):
            index = sum(earlier.protocol != "models" for earlier in self.requests) - 1
            return self.script[min(index, len(self.script) - 1)]
        return self.script(request) if callable(self.script) else self.script

    async def _perform(
        self, connection: Connection, protocol: ProviderProtocol, request: Request, answer: Answer
    ) -> None:
        match answer:
            case Overflow():
                await self._perform(connection, protocol, request, protocol.overflow(answer))
            case RateLimited():
                wait = {"retry-after": f"{answer.retry_after:g}"}
                await self._perform(connection, protocol, request, Status(429, "Rate limit reached.", headers=wait))
            case Status():
                body = (
                    protocol.error(answer.status, answer.message, answer.code) if answer.body is None else answer.body
                )
                await connection.answer(answer.status, body, answer.headers)
            case Garbage():
                await connection.open_stream()
                await connection.send(answer.data)
                await connection.end_stream()
            case Stall(after=None):
                await self._wait(connection, request, None)
            case Stall() | Cut() | StreamError():
                await self._send_partial(connection, protocol, request, answer)
            case _:
                reply = Say(answer) if isinstance(answer, str) else answer
                replies_whole = protocol.name in ("anthropic", "openai-responses")
                if self._thoughts is not None and replies_whole:
                    self._thoughts.remember(request, reply, _whole(protocol, request, reply))
                if request.path.endswith("/count_tokens"):
                    await connection.answer(200, {"input_tokens": request.size})
                elif replies_whole and request.body.get("stream") is not True:
                    await connection.answer(200, _whole(protocol, request, reply))
                elif await self._send_pieces(connection, protocol, request, reply, None):
                    for frame in protocol.closing(request, reply):
                        await connection.send(frame)
                    await connection.end_stream()

    async def _send_partial(
        self, connection: Connection, protocol: ProviderProtocol, request: Request, fault: Stall | Cut | StreamError
    ) -> None:
        if not await self._send_pieces(connection, protocol, request, partial_reply(fault), fault.after):
            return
        match fault:
            case Stall():
                await self._wait(connection, request, None)
            case StreamError():
                await connection.send(protocol.broken(fault))
                await connection.end_stream()
            case Cut(clean=True):
                await connection.end_stream()
            case Cut():
                connection.abort()

    async def _send_pieces(
        self, connection: Connection, protocol: ProviderProtocol, request: Request, reply: Say, limit: int | None
    ) -> bool:
        """Sends the pieces; returns false if the client disconnected."""
        await connection.open_stream()
        for frame in protocol.opening(request, reply):
            await connection.send(frame)
        parts = reply.parts()
        for number, piece in enumerate(parts[:limit]):
            if await self._wait(connection, request, reply.delay if number else 0):
                return False
            while reply.held is not None and number == len(parts) - 1 and not reply.held.is_set():
                if await self._wait(connection, request, 0.02):
                    return False
            for frame in protocol.piece(request, reply, piece):
                await connection.send(frame)
            request.sent += 1
        return True

    async def _wait(self, connection: Connection, request: Request, seconds: float | None) -> bool:
        disconnected = await connection.wait_for_disconnect(seconds)
        if disconnected:
            request.disconnected.set()
        return disconnected


def _whole(protocol: ProviderProtocol, request: Request, reply: Say) -> Any:
    """The reply as it is sent to a client that does not stream."""
    pieces = (frame for piece in reply.parts() for frame in protocol.piece(request, reply, piece))
    frames = [*protocol.opening(request, reply), *pieces, *protocol.closing(request, reply)]
    return whole_reply(protocol.name, frames)


def _protocol_for(path: str) -> ProviderProtocol | None:
    if ":streamGenerateContent" in path:
        return cast("ProviderProtocol", gemini)
    return cast("ProviderProtocol | None", _PATHS.get(path.partition("?")[0]))
