"""What others wait for while a large body passes through the gateway, and the memory that it takes."""

from __future__ import annotations

import base64
import itertools
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.gateway import chat_request, connect, run_gateway, run_python, time_request
from benchmarks.measure import Options, Ratio


def run(options: Options) -> Iterator[Ratio]:
    for name, body in _large_bodies(quick=options.quick):
        yield from _large(name, body)


def _large_bodies(*, quick: bool) -> Iterator[tuple[str, bytes]]:
    text, noise = "The tide turns at noon. ", base64.b64encode(os.urandom(3_750_000)).decode()
    for size in (5,) if quick else (5, 20, 60):
        yield f"{size} MB of text", _chat([_user(text * (size * 1_000_000 // 24))])
    yield "5 MB of base64", _chat([_user(noise)])
    roles = ("user", "assistant")
    yield "100,000 messages", _chat([{"role": roles[at % 2], "content": f"m{at}"} for at in range(100_000)])


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _chat(messages: list[dict[str, str]]) -> bytes:
    return json.dumps({"model": "m", "messages": messages}).encode()


def _large(name: str, body: bytes) -> Iterator[Ratio]:
    """What others wait for while a large body passes, and before; the process for it has started."""
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    raw, warm = (head % (b"/v1/messages", len(one)) + one for one in (body, _chat([_user("Ahoy. " * 300_000)])))
    health, number = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", itertools.count()

    def ask_others() -> None:
        waits.append(time_request(other, health))
        posts.append(time_request(small, chat_request(500, text=f"{next(number)} ")))

    with ExitStack() as stack:
        upstream, another = (stack.enter_context(run_python("benchmarks.gateway", "upstream")) for _ in range(2))
        own = ("--upstream", f"anthropic=http://127.0.0.1:{another.port}")
        gateway = stack.enter_context(run_gateway(upstream.port, *own))
        large, other, small = (stack.enter_context(connect(gateway.port)) for _ in range(3))
        waits, posts = list[float](), list[float]()
        time_request(large, warm)
        time.sleep(1)
        for _ in range(120):
            ask_others()
            time.sleep(0.005)
        seconds = {"/healthz, idle": max(waits[20:]), "a new conversation, idle": max(posts[20:])}
        waits, posts, before = [], [], gateway.family_bytes
        peak = before
        sending = threading.Thread(target=time_request, args=(large, raw))
        sending.start()
        while sending.is_alive():
            ask_others()
            peak = max(peak, gateway.family_bytes)
            time.sleep(0.005)
    for what, times in (("/healthz", waits), ("a new conversation", posts)):
        seconds[what] = max(times)
        yield Ratio(f"{what} while {name} passes", "slowest / 100 ms", max(times) / 0.1, 1.0, seconds=seconds)
    yield Ratio(f"memory for {name}", "bytes / those of the body", (peak - before) / len(body), 6.0)
