"""Prompt cache and bill of a long session, direct and through the gateway.

A session of 300 requests from real transcripts (HOLDFAST_SESSIONS, or else the bundled examples) goes to an upstream
that caches each prompt and finds the longest common beginning again, as providers do. Prices are the catalog's.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import msgspec

from benchmarks.marked_cache import MarkedCache, with_marked_replies, with_thinking, without_marks_of_edited
from benchmarks.measure import Options, Ratio
from holdfast import MemoryStore, SessionService
from holdfast.gateway import Gateway, GatewayOptions
from holdfast.tokens import Usage
from holdfast.tokens.catalog import prices_of
from holdfast.transcripts import read_transcript

REQUESTS = 300
WINDOWS = (200_000, 100_000)
MARKED_WINDOW = 60_000
MODELS = ("claude-sonnet-4-5", "gpt-5", "deepseek-chat")
HIT_RATE_AIM = 0.99
"""Hit rate between compactions, as a share of the direct one."""
_BLOCK = 128
"""Tokens that a cache entry is a multiple of."""


class CachingUpstream:
    """Counts tokens, a quarter of the characters, and how many of them begin an earlier prompt of the session."""

    def __init__(self) -> None:
        self.calls: list[Usage] = []
        self._last: list[bytes] = []

    def take(self, messages: Sequence[Any], output: int) -> Usage:
        """Returns the usage of a call: input, and cached input."""
        prompt = [msgspec.json.encode(message) for message in messages]
        common = 0
        for one, other in zip(prompt, self._last, strict=False):
            if one != other:
                common += next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
                break
            common += len(one)
        self._last = prompt
        cached = common // 4 // _BLOCK * _BLOCK
        usage = Usage(input=sum(map(len, prompt)) // 4 - cached, cache_read=cached, output=output)
        self.calls.append(usage)
        return usage

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                usage = self.take(body["messages"], body["max_tokens"])
                counts = {"input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read, "output_tokens": 1}
                reply = json.dumps({"type": "message", "role": "assistant", "content": [], "usage": counts}).encode()
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(reply)
                writer.write(head + reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def run(options: Options) -> Iterator[Ratio]:
    messages = _messages()
    if not messages:
        print("no session in Anthropic's format, set HOLDFAST_SESSIONS: left out", file=sys.stderr)
        return
    for window in WINDOWS[: 1 if options.quick else None]:
        yield from asyncio.run(_compare(messages, window))
    yield asyncio.run(_compare_marks(messages))


def _messages() -> list[Any]:
    """The messages of the longest sessions in Anthropic's format, one after the other."""
    folder = os.environ.get("HOLDFAST_SESSIONS")
    spec = find_spec("holdfast.transcripts.examples")
    folders = [folder] if folder else list(spec.submodule_search_locations or () if spec else ())
    files = [path for place in folders for path in Path(place).rglob("*.jsonl*")]
    found = [one.messages for one in map(read_transcript, files) if one.format == "anthropic"]
    return [message for one in sorted(found, key=len, reverse=True) for message in one]


def _requests(messages: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yields for each request how many messages it has, and the tokens of its reply."""
    replies = [at for at, message in enumerate(messages) if message["role"] == "assistant" and at]
    for at in replies[:REQUESTS]:
        yield at, len(msgspec.json.encode(messages[at])) // 4


async def _compare(messages: Sequence[Any], window: int) -> Iterator[Ratio]:
    direct, through = CachingUpstream(), CachingUpstream()
    compacted: list[bool] = []
    async with _gateway(through, window) as url, aiohttp.ClientSession() as client:
        rounds = 0
        for count, output in _requests(messages):
            direct.take(messages[:count], output)
            body = {"model": "m", "max_tokens": output, "messages": messages[:count]}
            async with client.post(f"{url}/v1/messages", json=body) as reply:
                await reply.read()
                before, rounds = rounds, int(reply.headers.get("x-holdfast-tokens-after", "0") != "0")
                compacted.append(bool(rounds and (not before or through.calls[-1].cache_read < _read(through, -2))))
    between = [at for at, new in enumerate(compacted) if not new and at]
    rates = [_hit_rate([one.calls[at] for at in between]) for one in (direct, through)]
    yields = [
        Ratio(
            f"cache hits between compactions, {window // 1_000}k",
            f"hit rate through the gateway ({rates[1]:.1%}) / direct ({rates[0]:.1%}); {sum(compacted)} compactions "
            f"in {len(compacted)} requests",
            rates[1] / rates[0],
            HIT_RATE_AIM,
            "at least",
        )
    ]
    for model in MODELS:
        bills = [sum(_price(call, model) for call in one.calls) for one in (direct, through)]
        yields.append(
            Ratio(
                f"bill of {len(compacted)} requests, {window // 1_000}k, {model}",
                f"through the gateway ({bills[1]:.2f} USD) / direct ({bills[0]:.2f} USD)",
                bills[1] / bills[0],
                1.0,
            )
        )
    return iter(yields)


class MarkedUpstream(CachingUpstream):
    """Counts each request as it comes, and as it came if an edited reply had lost its mark."""

    def __init__(self) -> None:
        super().__init__()
        self.kept, self.lost = MarkedCache(), MarkedCache()

    def take(self, messages: Sequence[Any], output: int) -> Usage:
        self.kept.take(messages)
        self.lost.take(without_marks_of_edited(messages))
        return super().take(messages, output)


async def _compare_marks(messages: Sequence[Any]) -> Ratio:
    """A client that marks its two newest replies, each of which thinks: the first after a compaction are edited."""
    upstream = MarkedUpstream()
    thinking = [with_thinking(message, number) for number, message in enumerate(messages)]
    async with _gateway(upstream, MARKED_WINDOW) as url, aiohttp.ClientSession() as client:
        for count, output in _requests(thinking):
            sent = with_marked_replies(thinking[:count])
            async with client.post(
                f"{url}/v1/messages", json={"model": "m", "max_tokens": output, "messages": sent}
            ) as reply:
                await reply.read()
    kept, lost = (sum(_price(call, MODELS[0]) for call in cache.calls) for cache in (upstream.kept, upstream.lost))
    rates = [_hit_rate(cache.calls) for cache in (upstream.kept, upstream.lost)]
    return Ratio(
        "prompts of a client that marks its replies",
        f"marks kept ({kept:.2f} USD, hit rate {rates[0]:.1%}) / lost with the thinking of edited replies "
        f"({lost:.2f} USD, {rates[1]:.1%}), window of {MARKED_WINDOW // 1_000}k",
        kept / lost,
        1.0,
    )


def _read(upstream: CachingUpstream, at: int) -> int:
    return upstream.calls[at].cache_read if len(upstream.calls) >= -at else 0


def _hit_rate(calls: Sequence[Usage]) -> float:
    read = sum(call.cache_read for call in calls)
    return read / (read + sum(call.input + call.cache_write for call in calls))


def _price(call: Usage, model: str) -> float:
    prices = prices_of(model)
    assert prices is not None
    if prices.cache_write is not None and not call.cache_write:
        call = msgspec.structs.replace(call, input=0, cache_write=call.input)
    price = prices.price(call)
    assert price is not None
    return price


@asynccontextmanager
async def _gateway(upstream: CachingUpstream, window: int) -> AsyncIterator[str]:
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    options = GatewayOptions(upstreams={"": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}, port=0)
    gateway = Gateway(options, SessionService(MemoryStore(), preset="holdfast", window=window))
    stop, started, ports = anyio.Event(), anyio.Event(), list[int]()

    def on_start(port: int) -> None:
        ports.append(port)
        started.set()

    async with anyio.create_task_group() as group:
        group.start_soon(gateway.run, stop, on_start)
        await started.wait()
        yield f"http://127.0.0.1:{ports[0]}"
        stop.set()
    server.close()
