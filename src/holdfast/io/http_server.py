"""A server for a proxy: HTTP/1.1 whose requests and replies keep their headers byte for byte."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote

import httptools
import msgspec

from .http_messages import BodyStream, HeaderLines, Headers, join_head

_MAX_HEADERS, _MAX_LINE, _MAX_HEAD = 128, 65_536, 2**18
_LINGER_SECONDS = 1.0
"""How long a client may go on sending after it was refused: a closed connection would take the reply with it."""
_NO_CONTENT = (204, 304)
_JSON = "application/json; charset=utf-8"


class HttpReply(msgspec.Struct):
    """A reply of the proxy itself."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Mapping[str, str] = {}) -> HttpReply:
        """Returns a reply with a JSON body."""
        return cls(status, msgspec.json.encode(value), {"Content-Type": _JSON, **headers})


class HttpRequest:
    """A request as it was sent, and the way back to its client."""

    def __init__(self, connection: _Connection, method: str, target: str, headers: Headers, version: str) -> None:
        self.method = method
        self.target = target
        """Path and query as sent."""
        self.path, _, self.query = target.partition("?")
        if "%" in self.path:
            self.path = unquote(self.path)
        self.headers = headers
        self.version = version
        self.body = BodyStream(connection.hold)
        self.has_body = "Content-Length" in headers or "Transfer-Encoding" in headers
        self.keeps_alive = True
        self.facts: dict[str, str] = {}
        """What the log says of the request, without its content."""
        self.status = 0
        """Status of the reply that was begun."""
        self._connection = connection
        self._head = b""
        self._is_chunked = self._without_body = self.is_answered = False

    def begin(self, status: int, reason: str, lines: HeaderLines) -> None:
        """Begins the reply with these headers and those of the connection; it is sent with the first bytes."""
        own: list[tuple[bytes, bytes]] = []
        self._without_body = self.method == "HEAD" or status in _NO_CONTENT
        has_length = any(name.lower() == b"content-length" for name, _ in lines)
        if not has_length and not self._without_body:
            self._is_chunked = self.version != "1.0"
            if self._is_chunked:
                own.append((b"Transfer-Encoding", b"chunked"))
            else:
                self.keeps_alive = False
        if self._connection.is_closing or (self.has_body and not self.body.ended):
            self.keeps_alive = False
        if self.keeps_alive != (self.version != "1.0"):
            own.append((b"Connection", b"keep-alive" if self.keeps_alive else b"close"))
        self.status = status
        self._head = join_head(f"HTTP/{self.version} {status} {reason}", [*lines, *own])

    async def write(self, data: bytes) -> None:
        """Sends the next bytes of the reply, after those of its head."""
        if self._without_body:
            data = b""
        elif data and self._is_chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        head, self._head = self._head, b""
        if head or data:
            await self._connection.write(head + data if head else data)

    async def finish(self, data: bytes = b"") -> None:
        """Ends the reply with these bytes."""
        if self._is_chunked:
            data = (b"%x\r\n%b\r\n" % (len(data), data) if data else b"") + b"0\r\n\r\n"
            self._is_chunked = False
        self.is_answered = True
        await self.write(data)

    async def send(self, reply: HttpReply) -> None:
        """Sends a reply of the proxy itself."""
        named = {"Server": "holdfast", "Date": formatdate(usegmt=True)} | reply.headers
        if reply.status not in _NO_CONTENT:
            named["Content-Length"] = str(len(reply.body))
        lines = [(name.encode(), value.encode()) for name, value in named.items()]
        self.begin(reply.status, HTTPStatus(reply.status).phrase, lines)
        await self.finish(reply.body)

    def abort(self) -> None:
        """Breaks the connection off."""
        self.is_answered = True
        self._connection.abort()


Handler = Callable[[HttpRequest], Awaitable[None]]


class HttpServer:
    """Listens, and calls a handler for each request."""

    def __init__(self, handler: Handler, refuse: Callable[[int, str, str], HttpReply], *, idle_seconds: float) -> None:
        """`refuse` makes the reply to what is no valid request; `idle_seconds` is the longest wait for a head."""
        self.handler = handler
        self.refuse = refuse
        self.idle_seconds = idle_seconds
        self.connections: set[_Connection] = set()
        self.is_draining = False
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, listening: socket.socket | None = None) -> int:
        """Listens on an address, or on a socket that other processes have, too; returns the port."""
        loop = asyncio.get_running_loop()
        place: dict[str, Any] = {"host": host, "port": port} if listening is None else {"sock": listening}
        self._server = await loop.create_server(lambda: _Connection(self), backlog=1_024, **place)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self, drain_seconds: float) -> None:
        """Takes no connection more; running requests have so many seconds to finish."""
        self.is_draining = True
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.close_if_idle()
        if running := [one.task for one in self.connections if one.task is not None]:
            await asyncio.wait(running, timeout=drain_seconds)
        tasks = [one.task for one in self.connections if one.task is not None]
        for connection in list(self.connections):
            connection.abort()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Connection(asyncio.Protocol):
    """One client: its requests are answered in their order."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None
        self._target, self._lines = b"", list[tuple[bytes, bytes]]()
        self._request: HttpRequest | None = None
        """The request whose body arrives."""
        self._requests: deque[HttpRequest] = deque()
        """Requests that wait for the one that is answered."""
        self._holds = 0
        self._drained: asyncio.Future[None] | None = None
        self._head_bytes = 0
        self._refusal: tuple[int, str, str] | None = None
        self._is_discarding = False
        self._idle_since = self._loop.time()

    # -- the transport ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # those of uvloop are of another class
        self._server.connections.add(self)
        self._loop.call_later(self._server.idle_seconds, self._check_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._requests.clear()
        if self._request is not None:
            self._request.body.end(ConnectionResetError())
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if self.task is not None:
            self.task.cancel()
        self._transport = None

    def _check_idle(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        wait = self._server.idle_seconds
        if self.task is None:
            wait += self._idle_since - self._loop.time()
            if wait <= 0:
                self._transport.close()
                return
        self._loop.call_later(wait, self._check_idle)

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    async def write(self, data: bytes) -> None:
        """Sends bytes, and waits while the client is slow to take them."""
        if self._transport is None:
            raise ConnectionResetError
        self._transport.write(data)
        if self._drained is not None:
            await self._drained

    def hold(self, on: bool) -> None:
        """Pauses or resumes reading."""
        self._holds += 1 if on else -1
        if self._transport is None or self._transport.is_closing():
            return
        if on and self._holds == 1:
            self._transport.pause_reading()
        elif not on and not self._holds:
            self._transport.resume_reading()

    @property
    def is_closing(self) -> bool:
        return self._server.is_draining or self._is_discarding

    def close_if_idle(self) -> None:
        if self.task is None and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # -- the parser ------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._is_discarding:
            return
        if self._request is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._is_discarding = True  # what follows is another protocol: the request is answered, and no more
        except httptools.HttpParserError:
            self._refuse(400, "invalid_request", "This is no valid HTTP request.")
        if self._request is None and self._head_bytes > _MAX_HEAD:
            self._refuse(431, "too_large", f"The headers of a request have at most {_MAX_HEAD:,} bytes.")

    def on_message_begin(self) -> None:
        self._target, self._lines = b"", []

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        if self._is_discarding:
            return
        headers = Headers(self._lines)
        method, target = self._parser.get_method().decode(), self._target.decode(errors="surrogateescape")
        version = "1.0" if self._parser.get_http_version() == "1.0" else "1.1"
        request = self._request = HttpRequest(self, method, target, headers, version)
        request.keeps_alive = self._parser.should_keep_alive()
        longest = max((len(name) + len(value) for name, value in self._lines), default=0)
        if len(self._lines) > _MAX_HEADERS or max(longest, len(target)) > _MAX_LINE:
            self._refuse(431, "too_large", f"A request has at most {_MAX_HEADERS} headers of {_MAX_LINE:,} bytes.")
            return
        if len(headers.getall("Host")) > 1:
            self._refuse(400, "invalid_request", "The request has two Host headers.")
            return
        if headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
            self._refuse(400, "invalid_request", "The transfer encoding of the request is not chunked.")
            return
        if version == "1.1" and headers.get("Expect").lower() == "100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self.task is None:
            self._start(request)
        else:
            self._requests.append(request)
            self.hold(True)

    def on_body(self, body: bytes) -> None:
        if self._request is not None:
            self._request.body.feed(body)

    def on_message_complete(self) -> None:
        if self._request is not None:
            self._request.body.end()
            self._request = None

    # -- requests --------------------------------------------------------------------------------------

    def _refuse(self, status: int, kind: str, message: str) -> None:
        """Answers what is no valid request, after those before it, and closes the connection."""
        if self._refusal is not None or self._is_discarding:
            return
        self._is_discarding = True
        self._refusal = status, kind, message
        if self._request is not None:
            self._request.body.end(ConnectionResetError())
        if self.task is None:
            self._start(None)

    def _start(self, request: HttpRequest | None) -> None:
        self.task = self._loop.create_task(self._serve(request))

    async def _serve(self, request: HttpRequest | None) -> None:
        """Answers a request, and those that have arrived meanwhile."""
        try:
            while request is not None:
                await self._server.handler(request)
                if not request.keeps_alive or not request.is_answered or not request.body.ended or self.is_closing:
                    break
                request = self._requests.popleft() if self._requests else None
                if request is not None:
                    self.hold(False)
            if self._refusal is not None and (request is None or not request.is_answered):
                last = HttpRequest(self, "GET", "", Headers(()), "1.1")
                await last.send(self._server.refuse(*self._refusal))
                request = last
            if request is not None:
                self._close(request)
        except ConnectionResetError:
            self.abort()
        finally:
            self.task = None
            self._idle_since = self._loop.time()

    def _close(self, last: HttpRequest) -> None:
        """Closes the connection after its last reply; what the client still sends is not read."""
        if self._transport is None:
            return
        if last.is_answered and last.body.ended and not self._is_discarding:
            self._transport.close()
            return
        self._is_discarding = True
        self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._loop.call_later(_LINGER_SECONDS, self.abort)
