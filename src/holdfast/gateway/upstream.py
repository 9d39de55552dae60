"""Forwards requests to the upstream and replies to the client: byte for byte, in both directions at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..errors import InvalidInput
from ..io.access_keys import has_key
from ..io.http_client import Body, HttpConnections, Route, UpstreamFailure, UpstreamReply, find_route, length_of
from ..io.http_messages import BodyStream, HeaderLines, join_head
from ..io.http_server import HttpRequest
from ..models.calls import Failure
from .client_keys import CREDENTIALS, has_key_parameter, header_without_keys, query_without_keys
from .options import GatewayOptions
from .protocols import WireProtocol
from .replies import StreamOpening, refused_as_too_long

if TYPE_CHECKING:
    from .answers import ReplyEdit

HEADER_PREFIX = "x-holdfast-"
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    b" upgrade expect".split()
)
_NEEDED = frozenset((b"host", b"content-length"))
_KEY_HEADERS = {"anthropic": b"x-api-key", "gemini": b"x-goog-api-key"}
"""Where a provider looks for its key, if not in `Authorization`."""
_OF_THE_BYTES = frozenset((b"content-length", b"content-encoding", b"content-md5", b"digest", b"etag"))
_CORS = b"access-control-"
_MAX_ERROR = 2**20
"""Bytes of an error reply that are read."""
_OPENING_SECONDS = 2.0
"""Longest time that the first events of a stream are held back."""


class Upstream:
    """Connections to the configured upstreams; no other address is ever contacted, but a proxy of the environment."""

    def __init__(self, options: GatewayOptions) -> None:
        self.options = options
        self._pool = HttpConnections(options.connect_timeout, options.idle_timeout)
        self._routes: dict[str, tuple[Route, str]] = {}
        """Route and path of each address."""

    def close(self) -> None:
        """Closes the connections that are not used."""
        self._pool.close()

    @asynccontextmanager
    async def send(
        self,
        request: HttpRequest,
        format: str,
        body: Body,
        *,
        rewritten: bool = False,
        changed: Mapping[str, str | None] | None = None,
    ) -> AsyncIterator[UpstreamReply]:
        """Sends a request to the upstream of its format; a reply that is not read whole closes the connection.

        `changed` has other values of headers by their names in lower case; None drops a header.
        """
        base = self.options.upstream_for(format)
        if base not in self._routes:
            self._routes[base] = find_route(base), urlsplit(base).path.rstrip("/")
        route, path = self._routes[base]
        head = self._head(
            request, format, route, path + self._target(request, path), body, changed or {}, rewritten=rewritten
        )
        reply = await self._pool.request(route, request.method, head, body)
        try:
            yield reply
        finally:
            self._pool.give_back(reply.connection)

    def _target(self, request: HttpRequest, base_path: str) -> str:
        """Returns the client's path and query after the upstream's own path, without repeating a version."""
        target, last = request.target, base_path.rpartition("/")[2]
        if last and target.startswith(f"/{last}/"):
            target = target.removeprefix(f"/{last}")
        path, mark, query = target.partition("?")
        kept = query_without_keys(query, self.options.keys, self.options.upstream_key)
        return target if kept == query else f"{path}{mark}{kept}".removesuffix("?")

    def _head(
        self,
        request: HttpRequest,
        format: str,
        route: Route,
        target: str,
        body: Body,
        changed: Mapping[str, str | None],
        *,
        rewritten: bool,
    ) -> bytes:
        """Returns request line and headers: the client's in their order, without those of connection and gateway."""
        held = None if self.options.upstream_key is None else self.options.upstream_key.encode()
        dropped = _HOP_BY_HOP | _connection_options(request.headers.lines) | {name.encode() for name in changed}
        if rewritten:
            dropped |= {b"content-encoding", b"content-md5", b"digest"}
        size = length_of(body)
        length = None if size is None else str(size).encode()
        headers: list[tuple[bytes, bytes]] = []
        has_length, host = False, route.authority.encode()
        has_provider_key = has_key_parameter(target.partition("?")[2])
        if "Host" not in request.headers:
            headers.append((b"Host", host))
        for name, value in request.headers.lines:
            key = name.lower()
            if key in dropped or key.startswith(HEADER_PREFIX.encode()):
                continue
            if key == b"host":
                value = host
            elif key == b"content-length":
                has_length, value = True, value if length is None else length
            elif key in CREDENTIALS and held is not None:
                has_provider_key, value = True, CREDENTIALS[key] + held
            elif (kept := header_without_keys(name, value, self.options.keys)) is not None:
                value = kept
            else:
                continue
            headers.append((name, value))
        headers += [(name.encode(), value.encode()) for name, value in changed.items() if value is not None]
        if not has_length and length is not None:
            headers.append((b"Content-Length", length))
        if not has_length and isinstance(body, BodyStream):
            headers.append((b"Transfer-Encoding", b"chunked"))
        if held is not None and not has_provider_key:
            name = _KEY_HEADERS.get(format, b"Authorization")
            headers.append((name, CREDENTIALS[name.lower()] + held))
        address, own = route.for_proxy() if route.is_plain_proxy else ("", [])
        return join_head(f"{request.method} {address}{target} HTTP/1.1", [*headers, *own])


def check_target(request: HttpRequest, keys: Collection[str]) -> None:
    """Raises InvalidInput for a target that could lead out of the upstream (another form, dots in its path), or that
    has a key in its path.
    """
    path = request.target.partition("?")[0]
    if not path.startswith("/"):
        raise InvalidInput("The request target must be a path: this gateway is no proxy for other hosts.")
    if "." in path or "%2" in path:
        segments = path.lower().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace("\\", "/")
        if any(segment in (".", "..") for segment in segments.split("/")):
            raise InvalidInput("The path of the request has dot segments: send it without.")
    if has_key(path, keys):
        raise InvalidInput("The path of the request has a key of this gateway: send it in x-holdfast-key.")


def _connection_options(headers: HeaderLines) -> frozenset[bytes]:
    """Returns the header names that belong to one connection only; framing and host cannot be among them."""
    values = (value for name, value in headers if name.lower() == b"connection")
    return frozenset(word.strip().lower() for value in values for word in value.split(b",")) - _NEEDED


def begin_reply(request: HttpRequest, reply: UpstreamReply, added: Mapping[str, str], *, edited: bool = False) -> None:
    """Begins a reply with the upstream's headers, and ours after them; an edited body has another length."""
    dropped = _HOP_BY_HOP | _connection_options(reply.headers.lines)
    if edited:
        dropped |= _OF_THE_BYTES
    lines = [(name, value) for name, value in reply.headers.lines if name.lower() not in dropped]
    if any(name.startswith("Access-Control-") for name in added):
        lines = [line for line in lines if not line[0].lower().startswith(_CORS)]
    lines += [(name.encode(), value.encode()) for name, value in added.items()]
    request.begin(reply.status, reply.reason, lines)


async def open_reply(reply: UpstreamReply, protocol: WireProtocol) -> tuple[list[bytes], Failure | None]:
    """Reads as much of a reply as is needed to see that the prompt was not too long."""
    encoding = reply.headers.get("Content-Encoding")
    chunks: list[bytes] = []
    if reply.status >= 400:
        while sum(map(len, chunks)) < _MAX_ERROR and (chunk := await reply.content.read_any()):
            chunks.append(chunk)
        return chunks, refused_as_too_long(reply.status, b"".join(chunks), encoding)
    if "text/event-stream" in reply.headers.get("Content-Type"):
        opening = StreamOpening(protocol, encoding)
        with suppress(TimeoutError):
            async with asyncio.timeout(_OPENING_SECONDS):
                while chunk := await reply.content.read_any():
                    chunks.append(chunk)
                    if (result := opening.feed(chunk)) is not False:
                        return chunks, result if isinstance(result, Failure) else None
    return chunks, None


async def copy_reply(
    request: HttpRequest,
    reply: UpstreamReply,
    opening: list[bytes],
    on_chunk: Callable[[bytes], None] = lambda chunk: None,
    edited: ReplyEdit | None = None,
    before_end: Callable[[], Awaitable[object]] | None = None,
) -> bool:
    """Copies the reply as it arrives; one that breaks off upstream breaks off for the client, too, and is False.

    `before_end` is awaited before the last bytes are sent.
    """

    async def write(chunk: bytes) -> None:
        on_chunk(chunk)
        await request.write(chunk if edited is None else edited.feed(chunk))

    content = reply.content
    try:
        for chunk in opening:
            await write(chunk)
        while True:
            if not content.has_waiting:
                await request.write(b"")  # the head, at least
            chunk = await content.read_any()
            if content.is_whole:
                break
            await write(chunk)
    except (UpstreamFailure, TimeoutError):
        request.abort()
        return False
    if chunk:
        on_chunk(chunk)
    if before_end is not None:
        await before_end()
    rest = chunk if edited is None else edited.feed(chunk) + edited.finish()
    await request.finish(rest)
    return True
