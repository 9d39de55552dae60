"""A client for a proxy: connections to servers, kept open, and replies whose headers stay byte for byte."""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import NamedTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httptools

from .access_keys import is_loopback
from .http_messages import BodyStream, HeaderLines, Headers, Pieces, join_head

Body = bytes | Pieces | BodyStream | None
_PIECE = 2**18
"""Bytes of a body that are written at once, with its head."""
_IDLE_SECONDS = 15.0
"""How long an unused connection is kept: upstreams close theirs after a minute and more."""
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_NO_CONTENT = (204, 304)


class UpstreamFailure(Exception):
    """An upstream without a valid reply; the message has nothing that it sent."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind)
        self.kind = kind
        self.message = message


def _disconnected() -> UpstreamFailure:
    return UpstreamFailure("upstream_disconnected", "The upstream closed the connection before it replied.")


def _malformed() -> UpstreamFailure:
    return UpstreamFailure("upstream_malformed", "The reply of the upstream is not valid HTTP.")


class Route(NamedTuple):
    """Where a connection leads: host and port, with TLS or without, through a proxy or directly."""

    host: str
    port: int
    is_tls: bool
    proxy: str = ""

    @property
    def authority(self) -> str:
        """Host and port, as a `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_tls else 80) else f"{host}:{self.port}"

    @property
    def is_plain_proxy(self) -> bool:
        """Whether a proxy forwards the requests itself, and needs the whole address in their first line."""
        return bool(self.proxy) and not self.is_tls

    def for_proxy(self) -> tuple[str, HeaderLines]:
        """Returns what a proxy that forwards the requests itself needs before their target, and as headers."""
        user = self.proxy_header()
        return f"http://{self.authority}", [(b"Proxy-Authorization", user)] if user else []

    def proxy_header(self) -> bytes:
        """Returns the value of `Proxy-Authorization`, empty if the proxy has no user."""
        parts = urlsplit(self.proxy)
        user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        return b"Basic " + base64.b64encode(user.encode()) if parts.username else b""


def find_route(address: str) -> Route:
    """Returns the route to an address, through the proxy that the environment names for it (`HTTPS_PROXY`)."""
    parts = urlsplit(address)
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    proxy = ""
    if not is_loopback(host) and not proxy_bypass(host):
        proxy = getproxies().get(parts.scheme) or getproxies().get("all") or ""
    return Route(host, _port_of(parts), is_tls, proxy)


def _port_of(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def length_of(body: Body) -> int | None:
    """Returns the number of bytes of a body; None if it still arrives, or there is none."""
    return sum(map(len, body)) if isinstance(body, list) else len(body) if isinstance(body, bytes) else None


class UpstreamReply:
    """A reply whose body may still arrive."""

    def __init__(self, status: int, reason: str, headers: Headers, connection: UpstreamConnection) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self.connection = connection
        self.content = BodyStream(connection.hold)


class HttpConnections:
    """Connections to upstreams: an unused one is used again."""

    def __init__(self, connect_seconds: float, idle_seconds: float) -> None:
        self._connect_seconds, self._idle_seconds = connect_seconds, idle_seconds
        self._unused: dict[Route, list[UpstreamConnection]] = {}
        self._tls: ssl.SSLContext | None = None

    def close(self) -> None:
        """Closes the unused connections."""
        for connections in self._unused.values():
            for connection in connections:
                connection.close()
        self._unused.clear()

    async def request(self, route: Route, method: str, head: bytes, body: Body) -> UpstreamReply:
        """Sends a request; returns the beginning of the reply, whose connection is to be given back."""
        connection = self._take(route)
        if connection is not None:
            try:
                return await connection.exchange(method, head, body)
            except UpstreamFailure as problem:
                if method not in _SAFE_METHODS or isinstance(body, BodyStream) or problem.kind != _GONE:
                    raise
        return await (await self._connect(route)).exchange(method, head, body)

    def _take(self, route: Route) -> UpstreamConnection | None:
        unused = self._unused.get(route)
        while unused:
            connection = unused.pop()
            if connection.is_usable:
                return connection
            connection.close()
        return None

    def give_back(self, connection: UpstreamConnection) -> None:
        """Keeps a connection whose reply was read whole; closes any other."""
        if connection.can_be_kept:
            connection.unused_since = asyncio.get_running_loop().time()
            self._unused.setdefault(connection.route, []).append(connection)
        else:
            connection.close()

    async def _connect(self, route: Route) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        place, tls = (route.host, route.port), route.is_tls
        if route.proxy:
            parts = urlsplit(route.proxy)
            place, tls = (parts.hostname or "", _port_of(parts)), parts.scheme == "https"
        try:
            async with asyncio.timeout(self._connect_seconds):
                _, connection = await loop.create_connection(
                    lambda: UpstreamConnection(route, self._idle_seconds),
                    *place,
                    ssl=self._tls_context() if tls else None,
                )
                if route.proxy and route.is_tls:
                    await self._open_tunnel(connection)
        except TimeoutError:
            raise
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            raise UpstreamFailure("upstream_unreachable", f"The upstream cannot be reached ({reason}).") from None
        return connection

    async def _open_tunnel(self, connection: UpstreamConnection) -> None:
        route = connection.route
        host = f"{route.host}:{route.port}"
        lines = [(b"Host", host.encode())]
        if user := route.proxy_header():
            lines.append((b"Proxy-Authorization", user))
        reply = await connection.exchange("CONNECT", join_head(f"CONNECT {host} HTTP/1.1", lines), None)
        if reply.status != 200:
            connection.close()
            why = f"its proxy answered {reply.status}"
            raise UpstreamFailure("upstream_unreachable", f"The upstream cannot be reached ({why}).")
        await connection.start_tls(self._tls_context())

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


_GONE = _disconnected().kind


class UpstreamConnection(asyncio.Protocol):
    """One connection: a request, its reply, and then the next."""

    def __init__(self, route: Route, idle_seconds: float) -> None:
        self.route = route
        self.reply: UpstreamReply | None = None
        self.unused_since = 0.0
        self._idle_seconds = idle_seconds
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._begun: asyncio.Future[None] | None = None
        """Done when the reply has begun."""
        self._sender: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._reason, self._lines = b"", list[tuple[bytes, bytes]]()
        self._status = 0
        self._method = ""
        self._ends_with_connection = self._is_complete = self._keeps_alive = False
        self._last_bytes = 0.0
        self._watch: asyncio.TimerHandle | None = None

    # -- for the pool ----------------------------------------------------------------------------------

    @property
    def is_usable(self) -> bool:
        is_open = self._transport is not None and not self._transport.is_closing()
        return is_open and self._loop.time() - self.unused_since < _IDLE_SECONDS

    @property
    def can_be_kept(self) -> bool:
        """Whether request and reply are complete, and the upstream keeps the connection open."""
        is_open = self._transport is not None and not self._transport.is_closing()
        return is_open and self._is_complete and self._sender is None and self._keeps_alive

    def close(self) -> None:
        """Ends the connection at once."""
        if self._sender is not None:
            self._sender.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def exchange(self, method: str, head: bytes, body: Body) -> UpstreamReply:
        """Sends a request and waits until its reply begins; closes the connection if none does."""
        if self._transport is None:
            raise _disconnected()
        self._begun, self._method, self.reply = self._loop.create_future(), method, None
        self._is_complete = self._ends_with_connection = False
        self._last_bytes = self._loop.time()
        if self._watch is None:
            self._watch = self._loop.call_later(self._idle_seconds, self._check_silence)
        if isinstance(body, list) and sum(map(len, body)) <= _PIECE:
            body = b"".join(body)
        if isinstance(body, BodyStream | list):
            self._transport.write(head)
            self._sender = self._loop.create_task(
                self._send(body, is_chunked=b"\r\nTransfer-Encoding: chunked" in head)
            )
            self._sender.add_done_callback(self._on_sent)
        else:
            self._transport.write(head + body if body else head)
        try:
            await self._begun
        except BaseException:
            self.close()
            raise
        assert self.reply is not None
        return self.reply

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Continues with TLS after a proxy has opened a tunnel."""
        assert self._transport is not None
        self._parser = httptools.HttpResponseParser(self)
        transport = await self._loop.start_tls(self._transport, self, context, server_hostname=self.route.host)
        self._transport = cast("asyncio.Transport", transport)  # those of uvloop are of another class

    async def _send(self, body: Pieces | BodyStream, *, is_chunked: bool) -> None:
        if isinstance(body, list):
            for piece in body:
                await self._write(piece)
                await asyncio.sleep(0)  # the upstream may take them all as fast as they come
            return
        while True:
            async with asyncio.timeout(self._idle_seconds):
                chunk = await body.read_any()
            if is_chunked:
                await self._write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            elif chunk:
                await self._write(chunk)
            if not chunk:
                return

    async def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
        if self._drained is not None:
            async with asyncio.timeout(self._idle_seconds):
                await self._drained

    def _on_sent(self, task: asyncio.Task[None]) -> None:
        self._sender = None
        self._last_bytes = self._loop.time()
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._fail(problem if isinstance(problem, TimeoutError) else _disconnected())

    def _fail(self, problem: Exception) -> None:
        if self._begun is not None and not self._begun.done():
            self._begun.set_exception(problem)
        elif self.reply is not None:
            self.reply.content.end(problem)
        if self._transport is not None:
            self._transport.abort()

    def _check_silence(self) -> None:
        """Ends an exchange in which nothing arrives, unless the proxy itself does not read."""
        self._watch = None
        if self._transport is None or self._is_complete:
            return
        is_waiting = self.reply is not None and self.reply.content.is_held
        wait = self._idle_seconds
        if not is_waiting and self._sender is None:
            wait += self._last_bytes - self._loop.time()
            if wait <= 0:
                self._fail(TimeoutError())
                return
        self._watch = self._loop.call_later(wait, self._check_silence)

    # -- the transport ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # those of uvloop are of another class

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._watch is not None:
            self._watch.cancel()
        if self._sender is not None:
            self._sender.cancel()
        self.resume_writing()
        if self._is_complete or self._begun is None:
            return
        if self.reply is not None and self._ends_with_connection and exc is None:
            self.reply.content.end()
        else:
            self._fail(_disconnected())

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def hold(self, on: bool) -> None:
        """Pauses or resumes reading."""
        if self._transport is None or self._transport.is_closing():
            return
        if on:
            self._transport.pause_reading()
        else:
            self._last_bytes = self._loop.time()
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self._begun is None or self._is_complete:  # nobody asked
            self.close()
            return
        self._last_bytes = self._loop.time()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            if self._method != "CONNECT":
                self._fail(_malformed())
        except httptools.HttpParserError:
            self._fail(_malformed())

    # -- the parser ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._reason, self._lines = b"", []

    def on_status(self, status: bytes) -> None:
        self._reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status < 200 or self._begun is None or self._begun.done():
            return
        self._keeps_alive = self._parser.should_keep_alive()
        headers = Headers(self._lines)
        reason = self._reason.decode(errors="surrogateescape")
        self.reply = UpstreamReply(self._status, reason, headers, self)
        if self._method == "HEAD":
            self._is_complete = True
            self.reply.content.end()
            if self._transport is not None:
                self._transport.close()
        else:
            has_end = self._status in _NO_CONTENT or "Content-Length" in headers
            self._ends_with_connection = not has_end and "chunked" not in headers.get("Transfer-Encoding").lower()
        self._begun.set_result(None)

    def on_body(self, body: bytes) -> None:
        if not self._is_complete and self.reply is not None:
            self.reply.content.feed(body)

    def on_message_complete(self) -> None:
        if self._status >= 200 and not self._is_complete and self.reply is not None:
            self._is_complete = True
            self.reply.content.end()
