"""Forwards requests to the upstream and replies to the client: byte for byte, in both directions at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import aiohttp
from aiohttp import payload, web
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from ..errors import InvalidInput
from ..io.access_keys import has_key
from ..models import scrub
from ..models.calls import Failure
from .client_keys import CREDENTIALS, has_key_parameter, header_without_keys, query_without_keys
from .options import GatewayOptions
from .protocols import WireProtocol
from .replies import StreamOpening, refused_as_too_long

if TYPE_CHECKING:
    from .vendor_compaction import EditedReply

Body = bytes | aiohttp.StreamReader | None
HEADER_PREFIX = "x-holdfast-"
_Headers = Sequence[tuple[bytes, bytes]]
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    b" upgrade expect".split()
)
_NEEDED = frozenset((b"host", b"content-length"))
_KEY_HEADERS = {"anthropic": b"x-api-key", "gemini": b"x-goog-api-key"}
"""Where a provider looks for its key, if not in `Authorization`."""
_AUTOMATIC = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
_OF_THE_BYTES = frozenset((b"content-length", b"content-encoding", b"content-md5", b"digest", b"etag"))
_CORS = b"access-control-"
_NO_CONTENT = (204, 304)
_PIECE = 2**20
"""Bytes of a body that are written at once."""
_MAX_ERROR = 2**20
"""Bytes of an error reply that are read."""
_OPENING_SECONDS = 2.0
"""Longest time that the first events of a stream are held back."""


class Upstream:
    """Connections to the configured upstreams; no other address is ever contacted."""

    def __init__(self, options: GatewayOptions) -> None:
        self.options = options
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=self.options.connect_timeout, sock_read=self.options.idle_timeout
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_AUTOMATIC,
            max_line_size=65_536,
            max_field_size=65_536,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def send(
        self,
        request: web.BaseRequest,
        format: str,
        body: Body,
        *,
        rewritten: bool = False,
        changed: Mapping[str, str | None] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request to the upstream of its format; a reply that is not read whole closes the connection.

        `changed` has other values of headers by their names in lower case; None drops a header.
        """
        assert self._session is not None
        base = self.options.upstream_for(format)
        target = self._target(request, base)
        head = self._head(request, format, URL(base), target, body, changed or {}, rewritten=rewritten)
        length = str(len(body)) if isinstance(body, bytes) else request.headers.get("Content-Length")
        response = await self._session.request(
            request.method,
            URL(base + target, encoded=True),
            headers=None if length is None else {"Content-Length": length},
            data=_ForwardedBody(head, body, self.options.idle_timeout),
            allow_redirects=False,
        )
        try:
            yield response
        finally:
            if not response.content.at_eof():
                response.close()
            response.release()

    def _target(self, request: web.BaseRequest, base: str) -> str:
        """Returns the upstream's own path and the client's after it, without repeating a version."""
        path = request.raw_path
        last = urlsplit(base).path.rpartition("/")[2]
        if last and path.startswith(f"/{last}/"):
            path = path.removeprefix(f"/{last}")
        path, mark, query = path.partition("?")
        kept = query_without_keys(query, self.options.keys, self.options.upstream_key)
        return path + mark + query if kept == query else f"{path}?{kept}".removesuffix("?")

    def _head(
        self,
        request: web.BaseRequest,
        format: str,
        base: URL,
        target: str,
        body: Body,
        changed: Mapping[str, str | None],
        *,
        rewritten: bool,
    ) -> bytes:
        """Returns request line and headers: the client's in their order, without those of connection and gateway."""
        held = None if self.options.upstream_key is None else self.options.upstream_key.encode()
        dropped = _HOP_BY_HOP | _connection_options(request.raw_headers) | {name.encode() for name in changed}
        if rewritten:
            dropped |= {b"content-encoding", b"content-md5", b"digest"}
        is_streamed = isinstance(body, aiohttp.StreamReader)
        length = None if is_streamed or body is None else str(len(body)).encode()  # type: ignore[arg-type]
        headers: list[tuple[bytes, bytes]] = []
        has_length, host = False, (base.host_port_subcomponent or "").encode()
        has_provider_key = has_key_parameter(target.partition("?")[2])
        if "Host" not in request.headers:
            headers.append((b"Host", host))
        for name, value in request.raw_headers:
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
        if not has_length and is_streamed:
            headers.append((b"Transfer-Encoding", b"chunked"))
        if held is not None and not has_provider_key:
            name = _KEY_HEADERS.get(format, b"Authorization")
            headers.append((name, CREDENTIALS[name.lower()] + held))
        path = base.raw_path.rstrip("/") + target
        return _join_head(f"{request.method} {path} HTTP/1.1", headers)


def check_target(request: web.BaseRequest, keys: Collection[str]) -> None:
    """Raises InvalidInput for a target that could lead out of the upstream (another form, dots in its path), or that
    has a key in its path.
    """
    path = request.raw_path.partition("?")[0]
    if not path.startswith("/"):
        raise InvalidInput("The request target must be a path: this gateway is no proxy for other hosts.")
    if "." in path or "%2" in path:
        segments = path.lower().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace("\\", "/")
        if any(segment in (".", "..") for segment in segments.split("/")):
            raise InvalidInput("The path of the request has dot segments: send it without.")
    if has_key(path, keys):
        raise InvalidInput("The path of the request has a key of this gateway: send it in x-holdfast-key.")


def _connection_options(headers: _Headers) -> frozenset[bytes]:
    """Returns the header names that belong to one connection only; framing and host cannot be among them."""
    values = (value for name, value in headers if name.lower() == b"connection")
    return frozenset(word.strip().lower() for value in values for word in value.split(b",")) - _NEEDED


def _join_head(first: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    lines = (first.encode(errors="surrogateescape"), *(name + b": " + value for name, value in headers))
    return b"\r\n".join(lines) + b"\r\n\r\n"


# The library encodes headers as UTF-8 and spells known names its own way: its serialized head is replaced.


def _set_head(writer: Any, head: bytes) -> None:
    writer._headers_buf = head


class _ForwardedBody(payload.Payload):
    """A body with the head that is sent before it; a streamed one is sent as it arrives.

    A client that stops sending is not waited for longer than `idle` seconds.
    """

    def __init__(self, head: bytes, body: Body, idle: float) -> None:
        super().__init__(body)
        self._size = None if isinstance(body, aiohttp.StreamReader) else len(body or b"")
        self._head, self._idle = head, idle

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        raise TypeError("a forwarded body is not decoded")

    async def write(self, writer: AbstractStreamWriter) -> None:
        _set_head(writer, self._head)
        if not isinstance(self._value, aiohttp.StreamReader):
            for start in range(0, self._size or 0, _PIECE):
                await writer.write(self._value[start : start + _PIECE])
            return
        while True:
            async with asyncio.timeout(self._idle):
                chunk = await self._value.readany()
            if not chunk:
                return
            await writer.write(chunk)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        await self.write(writer)


async def begin_reply(
    request: web.BaseRequest, response: aiohttp.ClientResponse, added: Mapping[str, str], *, edited: bool = False
) -> ForwardedReply:
    """Sends status and headers of the upstream's reply, and ours after them; an edited body has another length."""
    dropped = _HOP_BY_HOP | _connection_options(response.raw_headers)
    if edited:
        dropped |= _OF_THE_BYTES
    reply = ForwardedReply(status=response.status, reason=response.reason)
    reply.forwarded = [(name, value) for name, value in response.raw_headers if name.lower() not in dropped]
    reply.forwarded += [((HEADER_PREFIX + name).encode(), value.encode()) for name, value in added.items()]
    has_body = request.method != "HEAD" and response.status not in _NO_CONTENT
    length = None if edited else response.headers.get("Content-Length")
    if length is not None:
        reply.headers["Content-Length"] = length
    elif has_body and request.version >= aiohttp.HttpVersion11:
        reply.enable_chunked_encoding()
    await reply.prepare(request)
    return reply


class ForwardedReply(web.StreamResponse):
    """A reply with exactly the upstream's headers, and those of the connection to the client."""

    forwarded: Sequence[tuple[bytes, bytes]] = ()
    facts: Mapping[str, str] = {}
    """What the log says of the request, without its content."""

    async def _write_headers(self) -> None:
        writer, request = self._payload_writer, self._req
        assert writer is not None and request is not None
        own = [
            (name.encode(), value.encode())
            for name, value in self.headers.items()
            if name in ("Transfer-Encoding", "Connection", "Vary") or _is_cors(name.encode())
        ]
        if any(_is_cors(name) for name, _ in own):
            self.forwarded = [header for header in self.forwarded if not _is_cors(header[0])]
        await writer.write_headers("", CIMultiDict())
        version = request.version
        first = f"HTTP/{version.major}.{version.minor} {self.status} {self.reason}"
        _set_head(writer, _join_head(first, [*self.forwarded, *own]))
        writer.send_headers()


def _is_cors(name: bytes) -> bool:
    return name.lower().startswith(_CORS)


async def open_reply(response: aiohttp.ClientResponse, protocol: WireProtocol) -> tuple[list[bytes], Failure | None]:
    """Reads as much of a reply as is needed to see that the prompt was not too long."""
    encoding = response.headers.get("Content-Encoding", "")
    if response.status >= 400:
        content = await response.content.read(_MAX_ERROR)
        while len(content) < _MAX_ERROR and (more := await response.content.read(_MAX_ERROR - len(content))):
            content += more
        return [content], refused_as_too_long(response.status, content, encoding)
    chunks: list[bytes] = []
    if "text/event-stream" in response.headers.get("Content-Type", ""):
        opening = StreamOpening(protocol, encoding)
        with suppress(TimeoutError):
            async with asyncio.timeout(_OPENING_SECONDS):
                while chunk := await response.content.readany():
                    chunks.append(chunk)
                    if (result := opening.feed(chunk)) is not False:
                        return chunks, result if isinstance(result, Failure) else None
    return chunks, None


async def copy_reply(
    request: web.Request,
    response: aiohttp.ClientResponse,
    reply: web.StreamResponse,
    opening: list[bytes],
    on_chunk: Callable[[bytes], None] = lambda chunk: None,
    edited: EditedReply | None = None,
) -> bool:
    """Copies the reply as it arrives; one that breaks off upstream breaks off for the client, too, and is False."""

    async def write(chunk: bytes) -> None:
        on_chunk(chunk)
        await reply.write(chunk if edited is None else edited.feed(chunk))

    try:
        for chunk in opening:
            await write(chunk)
        while chunk := await response.content.readany():
            await write(chunk)
        await reply.write_eof(b"" if edited is None else edited.finish())
        return True
    except (aiohttp.ClientError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        return False


def upstream_problem(problem: aiohttp.ClientError) -> tuple[str, str]:
    """Returns kind and message of a failure of the upstream, without anything that it sent."""
    match problem:
        case aiohttp.ClientConnectorError():
            reason = problem.os_error.strerror or type(problem.os_error).__name__
            return "upstream_unreachable", f"The upstream cannot be reached ({scrub(reason)})."
        case aiohttp.ClientOSError() | aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return "upstream_disconnected", "The upstream closed the connection before it replied."
    return "upstream_malformed", "The reply of the upstream is not valid HTTP."
