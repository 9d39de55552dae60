"""Random requests and replies of each protocol, and what may differ on the other side of the gateway: the framing."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import zstandard
from anyio.from_thread import start_blocking_portal
from gateway_harness import run_gateway
from hypothesis import strategies as st
from raw_http import RawClient, RawMessage, RawUpstream, reply_with, run_upstream

PATHS = {
    "openai-chat": (b"/v1/chat/completions", "messages"),
    "openai-responses": (b"/v1/responses", "input"),
    "anthropic": (b"/v1/messages?beta=true", "messages"),
    "gemini": (b"/v1beta/models/m:streamGenerateContent?alt=sse", "contents"),
}
OTHER_PATHS = (
    (b"POST", b"/v1/messages/count_tokens"),
    (b"POST", b"/v1/responses/input_tokens"),
    (b"POST", b"/v1/files?purpose=a%20b&&c=%2F"),
    (b"PUT", b"/v1//odd;path=1/%E2%9C%93?"),
    (b"DELETE", b"/v1/files/f-1"),
    (b"GET", b"/v1/models?limit=5"),
    (b"HEAD", b"/v1/models"),
    (b"PATCH", b"/v1/x?a=[1]&b={}"),
)
FRAMING = (b"content-length", b"transfer-encoding", b"connection", b"host")
_NAMES = st.sampled_from(
    [b"X-Beta", b"x-beta", b"anthropic-beta", b"OpenAI-Beta", b"Set-Cookie", b"aCcEpT", b"Via", b"x_under", b"X-Tag"]
)
_VALUES = st.one_of(
    st.sampled_from([b"", b"a,b", b"caf\xe9", b"\xff\xfe", "✓".encode(), b"a\tb", b'W/"1"', b"Basic eDp5"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30).map(str.encode),
)
_HEADERS = st.lists(st.tuples(_NAMES, _VALUES), max_size=6)
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20), st.just("</s>\u2028")
)
_JSON = st.recursive(
    _SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(st.text(max_size=6), below, max_size=3)),
    max_leaves=6,
)
_SPACING = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: "), ("\r\n,", " :")])
_CODINGS = {b"gzip": gzip.compress, b"zstd": zstandard.ZstdCompressor().compress, b"": lambda body: body}


@dataclass
class Exchange:
    """A request, the reply to it, and how both are cut into pieces."""

    request: RawMessage
    reply: RawMessage
    request_chunks: list[bytes] | None
    reply_chunks: list[bytes] | None
    reply_cuts: list[int]

    @property
    def is_empty(self) -> bool:
        """Whether the reply has no body, whatever its headers say."""
        return self.request.first.startswith(b"HEAD") or self.reply.first[9:12] in (b"204", b"304")


@st.composite
def _request_bodies(draw: Any, messages: str) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))  # type: ignore[no-any-return]
    contents = draw(st.sampled_from([_JSON, st.text(max_size=40)]))
    content = [{"role": draw(st.sampled_from(["user", "assistant"])), "content": draw(contents)} for _ in range(3)]
    fields = {draw(st.text(max_size=5)): draw(_JSON), messages: content, "stream": True, "unknown_field": draw(_JSON)}
    comma, colon = draw(_SPACING)
    text = json.dumps(fields, separators=(comma, colon), ensure_ascii=draw(st.booleans()))
    odd = draw(st.sampled_from(["", ' "x" : 1.0e+2,"x":-0.0, ', '\n"n":123456789012345678901234567890,']))
    return ("{" + odd + text[1:] + draw(st.sampled_from(["", "\n", "  "]))).encode(errors="surrogatepass")


@st.composite
def _reply_bodies(draw: Any) -> tuple[bytes, bytes]:
    """Returns content type and body."""
    match draw(st.integers(0, 3)):
        case 0:
            return b"application/octet-stream", draw(st.binary(max_size=2_000))
        case 1:
            return b"application/json; charset=utf-8", json.dumps(draw(_JSON), indent=draw(st.integers(0, 3))).encode()
    events = draw(st.lists(_JSON, max_size=8))
    end = draw(st.sampled_from([b"\n\n", b"\r\n\r\n"]))
    frames = [b"event: x\ndata: " + json.dumps(event).encode() + end for event in events]
    return b"text/event-stream", b": ping\n\n" + b"".join(frames) + draw(st.sampled_from([b"", b"data: [DONE]\n\n"]))


@st.composite
def exchanges(draw: Any, protocol: str) -> Exchange:
    """Draws an exchange of this protocol; one in four is another call of its API."""
    path, messages = PATHS[protocol]
    method, target = (b"POST", path) if draw(st.integers(0, 3)) else draw(st.sampled_from(OTHER_PATHS))
    request = RawMessage(b"%b %b HTTP/1.1" % (method, target), [(b"hOST", b"localhost"), *draw(_HEADERS)])
    request_chunks = None
    if method not in (b"GET", b"HEAD"):
        coding = draw(st.sampled_from(sorted(_CODINGS)))
        request.body = _CODINGS[coding](draw(_request_bodies(messages)))
        if coding:
            request.headers.append((b"content-ENCODING", coding))
        if draw(st.booleans()):
            request.headers.insert(1, (b"Content-length", b"%d" % len(request.body)))
        else:
            request_chunks = draw(_pieces(request.body))
            request.headers.append((b"transfer-encoding", b"chunked"))
    status = draw(
        st.sampled_from(
            [b"200 OK", b"200 ", b"201 Odd Reason", b"204 No Content", b"304 Not Modified"] * 2
            + [b"400 Bad", b"404 Gone Fishing", b"429 Slow", b"500 Oops", b"529 Busy", b"599 X"]
        )
    )
    kind, body = draw(_reply_bodies())
    coding = draw(st.sampled_from(sorted(_CODINGS)))
    reply = RawMessage(b"HTTP/1.1 " + status, [(b"content-TYPE", kind), *draw(_HEADERS)], _CODINGS[coding](body))
    if coding:
        reply.headers.append((b"content-encoding", coding))
    exchange = Exchange(request, reply, request_chunks, None, [])
    if exchange.is_empty:
        reply.body = b""
        return exchange
    match draw(st.integers(0, 2)):
        case 0:
            reply.headers.append((b"Content-Length", b"%d" % len(reply.body)))
        case 1:
            reply.headers.append((b"Transfer-Encoding", b"chunked"))
            exchange.reply_chunks = draw(_pieces(reply.body))
        case _:
            reply.headers.append((b"Connection", b"close"))
    exchange.reply_cuts = draw(st.lists(st.integers(0, len(reply.to_bytes(chunks=exchange.reply_chunks))), max_size=4))
    return exchange


@st.composite
def _pieces(draw: Any, body: bytes) -> list[bytes]:
    cuts = sorted({0, len(body), *draw(st.lists(st.integers(0, len(body)), max_size=5))})
    return [body[start:end] for start, end in pairwise(cuts)]


class ExactnessCheck:
    """A gateway between a raw client and a raw upstream."""

    def __init__(self, upstream: RawUpstream, url: str) -> None:
        self.upstream, self.url = upstream, url

    async def check(self, exchange: Exchange) -> None:
        """Sends the request; asserts that each side receives what the other sent."""
        wire = exchange.reply.to_bytes(chunks=exchange.reply_chunks)
        cuts = sorted({0, len(wire), *exchange.reply_cuts})
        pieces = [wire[start:end] for start, end in pairwise(cuts)]
        send = reply_with(*pieces)

        async def answer(request: RawMessage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await send(request, reader, writer)
            if (b"Connection", b"close") in exchange.reply.headers:
                writer.close()

        self.upstream.answer = answer
        self.upstream.requests.clear()
        client = await RawClient.connect(self.url)
        try:
            sent = exchange.request.to_bytes(chunks=exchange.request_chunks)
            got = await asyncio.wait_for(client.send(sent, has_body=not exchange.is_empty), 20)
        finally:
            client.close()
        [arrived] = self.upstream.requests
        assert arrived.first == exchange.request.first
        assert arrived.without(*FRAMING) == exchange.request.without(*FRAMING)
        assert arrived.body == exchange.request.body
        assert got.first == exchange.reply.first
        headers = [one for one in got.without(*FRAMING) if not one[0].startswith(b"x-holdfast-")]
        assert headers == exchange.reply.without(*FRAMING)
        assert got.body == exchange.reply.body
        if exchange.request_chunks is None:
            assert arrived.get(b"content-length") == exchange.request.get(b"content-length")
        if (length := exchange.reply.get(b"content-length")) is not None:
            assert got.get(b"content-length") == length


@contextmanager
def running_check() -> Iterator[Any]:
    """Yields a function that checks one exchange; the servers run in another thread."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(run_upstream(reply_with(b""))) as upstream,
        portal.wrap_async_context_manager(run_gateway(upstream.url)) as running,
    ):
        one = ExactnessCheck(upstream, running.url)
        yield lambda exchange: portal.call(one.check, exchange)
