"""Counts the files that each common flow enters, and its moves between files; fails if a flow enters too many.

A move is a call from a function in one file of Holdfast to a function in another. Each flow runs once to warm up caches
and imports, then once more while all threads are observed. `--json` prints the figures as JSON, `--files FLOW` the
files of one flow with the moves into each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import anyio

import holdfast
from holdfast import MemoryStore, SessionService, SlidingWindow, TokenCount, TurnCount, any_of, compact
from holdfast.gateway import Gateway, GatewayOptions
from holdfast.transcripts.examples import example_path

PACKAGE = f"{Path(holdfast.__file__).parent}/"
BOUNDS = {
    "compact, nothing due": 22,
    "compact, ledger": 45,
    "append": 20,
    "service.compact": 38,
    "gateway request": 30,
    "gateway, behind it": 34,
}
"""The most files that each flow may enter."""
BEHIND = ("Rewriter._write_behind", "Decisions.finish")
"""Tasks of the gateway that a request does not wait for before it is forwarded."""


class Flow(NamedTuple):
    """What was observed while a flow ran."""

    files: set[str]
    moves: Counter[tuple[str, str]]
    behind: Flow | None = None
    """What ran in tasks beside it."""

    @property
    def moved(self) -> int:
        """Number of moves between files."""
        return sum(self.moves.values())


class Observer:
    """Records calls in every thread that starts after it was installed."""

    def __init__(self) -> None:
        self._flow: Flow | None = None
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)

    @contextmanager
    def observe(self, *, splits: bool = False) -> Iterator[Flow]:
        """Records what runs inside the block; with `splits`, apart from the tasks in `BEHIND`."""
        behind = Flow(set(), Counter()) if splits else None
        self._flow = flow = Flow(set(), Counter(), behind)
        try:
            yield flow
        finally:
            self._flow = None

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> None:
        flow = self._flow
        if flow is None or event != "call":
            return
        path = frame.f_code.co_filename
        if not path.startswith(PACKAGE) or frame.f_code.co_name == "<module>":
            return
        if flow.behind is not None and _runs_behind():
            flow = flow.behind
        flow.files.add(path)
        caller = frame.f_back
        if caller is not None and (start := caller.f_code.co_filename) != path and start.startswith(PACKAGE):
            flow.moves[start, path] += 1


def _runs_behind() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and getattr(task.get_coro(), "__qualname__", "") in BEHIND


def observe_calls(observer: Observer, work: Callable[[], object]) -> Flow:
    """Returns what the second of two runs does."""
    work()
    with observer.observe() as flow:
        work()
    return flow


async def observe_awaits(observer: Observer, work: Callable[[], Awaitable[object]], *, splits: bool = False) -> Flow:
    """Returns what the second of two runs does."""
    await work()
    with observer.observe(splits=splits) as flow:
        await work()
    return flow


async def observe_sessions(observer: Observer, messages: list[Any]) -> dict[str, Flow]:
    """An append to an open session, and a compaction by a window."""
    async with SessionService(MemoryStore()) as sessions:
        for name in ("a", "b", "c"):
            await sessions.create(id=name)
            await sessions.append(name, messages)
        message = {"role": "user", "content": "Which berth is free?"}
        appended = await observe_awaits(observer, lambda: sessions.append("a", message))
        trigger, strategy, names = any_of(TurnCount(2), TokenCount(1_000)), SlidingWindow(10), iter(("b", "c"))
        compacted = await observe_awaits(observer, lambda: sessions.compact(next(names), trigger, strategy))
        return {"append": appended, "service.compact": compacted}


UPSTREAM_REPLY = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-test",
    "content": [{"type": "text", "text": "Berth N3."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 900, "output_tokens": 9},
}


async def observe_gateway(observer: Observer) -> Flow:
    """A request of a known conversation that is forwarded as it is."""
    from aiohttp import ClientSession, web

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response(UPSTREAM_REPLY)

    application = web.Application()
    application.router.add_post("/v1/messages", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    upstream = f"http://127.0.0.1:{runner.addresses[0][1]}"
    gateway = Gateway(
        GatewayOptions(upstreams={"": upstream}, port=0), SessionService(MemoryStore(), preset="holdfast")
    )
    ports: list[int] = []
    started, stop = anyio.Event(), anyio.Event()

    def on_start(port: int) -> None:
        ports.append(port)
        started.set()

    history: list[Any] = [{"role": "user", "content": "The plan of the harbour."}]

    async with anyio.create_task_group() as group, ClientSession() as client:
        group.start_soon(gateway.run, stop, on_start)
        await started.wait()

        async def request() -> None:
            body = {"model": "claude-test", "max_tokens": 100, "messages": history}
            headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
            address = f"http://127.0.0.1:{ports[0]}/v1/messages"
            async with client.post(address, json=body, headers=headers) as reply:
                reply.raise_for_status()
                content = (await reply.json())["content"]
            await anyio.sleep(0.2)  # what the gateway does after its reply
            history.append({"role": "assistant", "content": content})
            history.append({"role": "user", "content": "And now?"})

        await request()
        flow = await observe_awaits(observer, request, splits=True)
        stop.set()
    await runner.cleanup()
    return flow


def observe_all() -> dict[str, Flow]:
    """Returns what was observed of each flow."""
    logging.disable(logging.CRITICAL)
    observer = Observer()
    messages = json.loads(example_path("support").read_text(encoding="utf-8"))["messages"]
    flows = {
        "compact, nothing due": observe_calls(observer, lambda: compact(messages, budget=1_000_000)),
        "compact, ledger": observe_calls(observer, lambda: compact(messages, budget=2_000)),
    }
    flows |= anyio.run(observe_sessions, observer, messages)
    flows["gateway request"] = gateway = anyio.run(observe_gateway, observer)
    assert gateway.behind is not None
    return flows | {"gateway, behind it": gateway.behind}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--files", metavar="FLOW", choices=BOUNDS, help="print the files of one flow")
    arguments = parser.parse_args()
    flows = observe_all()
    exceeded = [name for name, flow in flows.items() if len(flow.files) > BOUNDS[name]]
    if arguments.json:
        figures = {
            name: {"files": len(flow.files), "moves": flow.moved, "bound": BOUNDS[name]} for name, flow in flows.items()
        }
        print(json.dumps(figures, indent=2))
    elif arguments.files:
        print_files(flows[arguments.files])
    else:
        for name, flow in flows.items():
            over = f"; {len(flow.files) - BOUNDS[name]} too many" if name in exceeded else ""
            print(f"{name:<22}{len(flow.files):>4} files (at most {BOUNDS[name]}){flow.moved:>8,} moves{over}")
    return 1 if exceeded else 0


def print_files(flow: Flow) -> None:
    """Prints each file with the files that it was entered from."""
    for path in sorted(flow.files):
        sources = {start: count for (start, end), count in flow.moves.items() if end == path}
        shown = ", ".join(f"{start.removeprefix(PACKAGE)} {count}" for start, count in sorted(sources.items()))
        print(f"{path.removeprefix(PACKAGE)}: {shown}")


if __name__ == "__main__":
    sys.exit(main())
