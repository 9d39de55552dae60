"""A server of one answer a request, as raw bytes, and what it does to the connection afterwards."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

End = Literal["close", "reset", "hang"]
HEAD = "HTTP/1.1 {} X\r\nContent-Type: {}\r\nConnection: close\r\n{}\r\n"


class Fault(NamedTuple):
    """Bytes to send, and how the connection ends."""

    data: bytes = b""
    end: End = "close"
    delay: float = 0.0
    """Seconds before the first byte."""


def status(code: int, body: str, kind: str = "application/json", **headers: str) -> Fault:
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return Fault((HEAD.format(code, kind, more) + body).encode())


def error(code: int, message: str, name: str = "server_error", **headers: str) -> Fault:
    return status(code, json.dumps({"error": {"message": message, "type": name, "code": name}}), **headers)


def stream(*lines: str, end: End = "close", delay: float = 0.0, kind: str = "text/event-stream") -> Fault:
    """Server-sent events without a length: the body ends with the connection."""
    body = "".join(f"data: {line}\n\n" for line in lines)
    return Fault((HEAD.format(200, kind, "") + body).encode(), end, delay)


def chunked(*lines: str, rest: str = "", end: End = "close") -> Fault:
    """Server-sent events in chunks, without the last one."""
    pieces = [f"data: {line}\n\n" for line in lines]
    body = "".join(f"{len(piece.encode()):x}\r\n{piece}\r\n" for piece in pieces)
    return Fault((HEAD.format(200, "text/event-stream", "Transfer-Encoding: chunked\r\n") + body + rest).encode(), end)


def chunk(finish: str | None = None, **delta: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


def call(id: str, name: str, arguments: str, index: int = 0) -> dict[str, Any]:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def reply(text: str, finish: str = "stop", **delta: Any) -> Fault:
    half = len(text) // 2
    return stream(chunk(content=text[:half]), chunk(content=text[half:]), chunk(finish, **delta), "[DONE]")


@contextmanager
def serve(answers: Sequence[Fault] | Callable[[bytes], Fault]) -> Iterator[tuple[int, list[bytes]]]:
    """Gives each request the next answer, and all others the last; yields the port and the requests."""
    listener, requests = socket.create_server(("127.0.0.1", 0)), list[bytes]()

    def run() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    def answer(client: socket.socket) -> None:
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                if not (piece := client.recv(65_536)):
                    return
                data += piece
                if data[:1] == b"\x16":  # TLS
                    client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    client.close()
                    return
            head, _, body = data.partition(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
            )
            while len(body) < length:
                body += client.recv(65_536)
        except (OSError, StopIteration):
            client.close()
            return
        fault = answers(body) if callable(answers) else answers[min(len(requests), len(answers) - 1)]
        requests.append(body)
        time.sleep(fault.delay)
        try:
            client.sendall(fault.data)
            if fault.end == "hang":
                client.recv(1)
            elif fault.end == "reset":
                time.sleep(0.05)  # what was sent arrives before
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        client.close()

    threading.Thread(target=run, daemon=True).start()
    try:
        yield listener.getsockname()[1], requests
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
