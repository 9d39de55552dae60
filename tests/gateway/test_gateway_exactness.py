"""What arrives is what was sent: headers in their order, bodies and replies byte for byte."""

from __future__ import annotations

import asyncio
import resource

import pytest
from exactness import PATHS, exchanges, running_check
from gateway_harness import run_gateway
from hypothesis import given
from raw_http import RawClient, RawMessage, chat_request, read_message, run_upstream

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
FRAME = b'data: {"choices":[]}\n\n'
AT_ONCE = 20.0
"""Seconds: far below every time-out of the gateway, but tests share their machine."""
CHUNK = b"%x\r\n%b\r\n" % (len(FRAME), FRAME)


def test_requests_and_replies_arrive_as_they_were_sent() -> None:
    with running_check() as check:
        for protocol in PATHS:
            given(exchanges(protocol))(check)()


@pytest.mark.anyio
async def test_upload_is_streamed_as_it_arrives() -> None:
    """The first part of an upload is upstream before the client has sent the second."""
    arrived = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"first")
        arrived.set()
        await reader.readuntil(b"second")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with run_gateway(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as running:
        client = await RawClient.connect(running.url)
        head = RawMessage(b"POST /v1/files HTTP/1.1", [(b"Host", b"localhost"), (b"Content-Length", b"11")])
        client.writer.write(head.to_bytes() + b"first")
        await asyncio.wait_for(arrived.wait(), AT_ONCE)
        reply = await client.send(b"second")
        assert reply.body == b"ok"
        client.close()
    server.close()


@pytest.mark.anyio
@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/files"])
async def test_client_that_leaves_ends_the_call_upstream_at_once(path: bytes) -> None:
    """Before the reply, in its opening, and in the middle of a stream."""
    begun, ended = asyncio.Queue[bool](), asyncio.Queue[bool]()
    for opening in (b"", STREAM, STREAM + CHUNK * 3):

        async def answer(
            _: RawMessage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, opening: bytes = opening
        ) -> None:
            writer.write(opening)
            await begun.put(True)
            await reader.read(1)
            await ended.put(True)

        async with run_upstream(answer) as upstream, run_gateway(upstream.url) as running:
            client = await RawClient.connect(running.url)
            client.writer.write(chat_request("Ahoy.", path=path))
            await begun.get()
            if CHUNK in opening:
                await client.reader.readuntil(b"data:")
            client.close()
            await asyncio.wait_for(ended.get(), AT_ONCE)


@pytest.mark.anyio
async def test_stream_that_breaks_upstream_breaks_for_the_client_at_once() -> None:
    async def answer(_: RawMessage, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + CHUNK * 2)
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()

    async with run_upstream(answer) as upstream, run_gateway(upstream.url) as running:
        client = await RawClient.connect(running.url)
        client.writer.write(chat_request("Ahoy."))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asyncio.wait_for(read_message(client.reader), AT_ONCE)
        client.close()


@pytest.mark.anyio
async def test_slow_reader_does_not_fill_memory() -> None:
    """An upstream with 200 MB to say is held back while the client reads nothing."""
    sent = 0

    async def answer(_: RawMessage, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(STREAM)
        piece = CHUNK * 4_000
        for _ in range(2_000):
            writer.write(piece)
            await writer.drain()
            sent += len(piece)

    async with run_upstream(answer) as upstream, run_gateway(upstream.url) as running:
        running.sessions.estimator.measure_text("Ahoy.")  # loads its vocabulary, which is no part of the stream
        client = await RawClient.connect(running.url, receive_buffer=4_096)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        client.writer.write(chat_request("Ahoy."))
        last = -1
        while sent != last or not sent:
            last = sent
            await asyncio.sleep(0.2)
        assert sent < 20 * 2**20
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1_024
        client.close()
