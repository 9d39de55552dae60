"""Both ends of the gateway as raw sockets: what was sent and what arrived, byte for byte."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

END = b"\r\n\r\n"


@dataclass
class RawMessage:
    """A request or a reply: first line, headers in their order, and the body without its framing."""

    first: bytes
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    def get(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def without(self, *names: bytes) -> list[tuple[bytes, bytes]]:
        return [(key, value) for key, value in self.headers if key.lower() not in names]

    def to_bytes(self, *, chunks: Sequence[bytes] | None = None) -> bytes:
        """Returns the message on the wire; with `chunks`, its body in chunked encoding."""
        body = self.body if chunks is None else b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"
        return b"\r\n".join([self.first, *(key + b": " + value for key, value in self.headers)]) + END + body


async def read_message(reader: asyncio.StreamReader, *, has_body: bool = True) -> RawMessage:
    """Reads one message; raises IncompleteReadError if it breaks off."""
    lines = (await reader.readuntil(END))[:-4].split(b"\r\n")
    message = RawMessage(lines[0], [(name, value) for name, _, value in (line.partition(b": ") for line in lines[1:])])
    if not has_body:
        return message
    if b"chunked" in (message.get(b"transfer-encoding") or b""):
        while size := int(await reader.readuntil(b"\r\n"), 16):
            message.body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    elif (length := message.get(b"content-length")) is not None:
        message.body = await reader.readexactly(int(length))
    elif message.first.startswith(b"HTTP/"):
        message.body = await reader.read()
    return message


Answer = Callable[[RawMessage, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class RawUpstream:
    """A provider that answers as its script writes; keeps the requests as they arrived."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[RawMessage] = []
        self.url = ""
        self.connections = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                message = await read_message(reader)
                self.requests.append(message)
                await self.answer(message, reader, writer)
                await writer.drain()
        writer.close()

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def run_upstream(answer: Answer) -> AsyncIterator[RawUpstream]:
    """Runs an upstream in this event loop."""
    upstream = RawUpstream(answer)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, limit=2**20)
    upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield upstream
    finally:
        server.close()
        upstream.close()
        await asyncio.sleep(0)


def reply_with(*pieces: bytes, pause: float = 0.0) -> Answer:
    """Returns a script that writes these pieces, each on its own."""

    async def answer(_request: RawMessage, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return answer


def chat_request(
    text: str, *, path: bytes = b"/v1/chat/completions", headers: Sequence[tuple[bytes, bytes]] = ()
) -> bytes:
    """Returns a call of OpenAI Chat with one message."""
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": text}]}).encode()
    given = [(b"Host", b"localhost"), (b"Content-Length", b"%d" % len(body)), *headers]
    return RawMessage(b"POST %b HTTP/1.1" % path, given, body).to_bytes()


class RawClient:
    """A connection to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, url: str, *, receive_buffer: int | None = None) -> RawClient:
        host, _, port = url.removeprefix("http://").partition(":")
        sock = socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
        except OSError:
            sock.close()
            raise
        reader, writer = await asyncio.open_connection(sock=sock, limit=2**20 if receive_buffer is None else 2**10)
        return cls(reader, writer)

    async def send(self, data: bytes, *, has_body: bool = True) -> RawMessage:
        """Sends these bytes and reads the reply."""
        self.writer.write(data)
        return await read_message(self.reader, has_body=has_body)

    def close(self) -> None:
        self.writer.transport.abort()
