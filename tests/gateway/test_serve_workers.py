"""`holdfast serve --workers`: processes on one port and one store, of which any may answer any request."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from raw_http import RawClient, RawMessage, RawUpstream, run_upstream

from holdfast import SessionService, SQLiteStore

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
CONVERSATIONS, TURNS = 12, 8
_REPLY = {"role": "assistant", "content": "Aye."}
_USAGE = {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}


class Workers:
    """The program, its upstream and its store."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, upstream: RawUpstream, store: Path) -> None:
        self.process, self.url, self.upstream, self.store = process, url, upstream, store

    @property
    def children(self) -> set[int]:
        """The processes of its workers."""
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return set(map(int, text.split()))

    async def get(self, path: str) -> str:
        return (await self._send(RawMessage(f"GET {path} HTTP/1.1".encode(), [(b"Host", b"localhost")]))).body.decode()

    async def ask(self, messages: list[Any]) -> RawMessage:
        """Sends a request on a connection of its own: any worker may answer it."""
        raw = json.dumps({"model": "m", "messages": messages}).encode()
        head = [(b"Host", b"localhost"), (b"Content-Length", b"%d" % len(raw))]
        return await self._send(RawMessage(b"POST /v1/chat/completions HTTP/1.1", head, raw))

    async def _send(self, message: RawMessage) -> RawMessage:
        client = await RawClient.connect(self.url)
        try:
            return await asyncio.wait_for(client.send(message.to_bytes()), 60)
        finally:
            client.close()

    async def counts(self) -> dict[str, int]:
        """Requests by worker, as far as the workers that answered tell."""
        seen = {}
        for _ in range(40):
            for worker, count in re.findall(
                r'requests_total\{worker="(\d)".*"unchanged"\} (\d+)', await self.get("/metrics")
            ):
                seen[worker] = int(count)
        return seen


async def answer(request: RawMessage, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.005)
    body = json.dumps({"choices": [{"index": 0, "message": _REPLY}], "usage": _USAGE}).encode()
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )


@asynccontextmanager
async def served(folder: Path, count: int = 2) -> AsyncIterator[Workers]:
    """Starts the program; it ends by a signal, without an error."""
    async with run_upstream(answer) as upstream:
        store = folder / "s.db"
        command = ["serve", "--upstream", upstream.url, "--port", "0", "--store", f"sqlite:///{store}"]
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
        environ = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")} | home
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast", *command, "--workers", str(count)),
            env=environ,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            url = (await process.stdout.readline()).decode().split()[-1]
            yield Workers(process, url, upstream, store)
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                assert await asyncio.wait_for(process.wait(), 60) == 0
        finally:
            if process.returncode is None:
                process.kill()


def turns(name: int, count: int) -> list[Any]:
    """The messages of a conversation at its request of this number."""
    spoken = [[{"role": "user", "content": f"Ship {name}, question {at}"}, _REPLY] for at in range(count + 1)]
    return [message for pair in spoken for message in pair][:-1]


async def check(workers: Workers, last: int) -> None:
    """Each conversation is one session with every message once."""
    async with SessionService(SQLiteStore(workers.store)) as sessions:
        found = await sessions.list()
        assert len(found) == CONVERSATIONS
        logs = []
        for session in found:
            assert await sessions.verify(session.id) == []
            logs.append([event.body["message"] for event in await sessions.events(session.id, kind="message")])
        assert sorted(logs, key=str) == sorted((turns(name, last) for name in range(CONVERSATIONS)), key=str)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise TimeoutError


async def test_conversation_through_several_workers_is_one_session(tmp_path: Path) -> None:
    """Also where a request is sent twice at once, as a client does that retries."""

    async def converse(workers: Workers, name: int) -> None:
        for turn in range(TURNS):
            replies = await asyncio.gather(*(workers.ask(turns(name, turn)) for _ in range(1 + turn % 2)))
            assert {reply.get(b"x-holdfast-outcome") for reply in replies} == {b"unchanged"}

    async with served(tmp_path) as workers:
        await asyncio.gather(*(converse(workers, name) for name in range(CONVERSATIONS)))
        counts = await workers.counts()
        assert len(counts) == 2 and min(counts.values()) > 0
    await check(workers, TURNS - 1)


async def test_worker_that_is_killed_is_started_anew_while_the_others_serve(tmp_path: Path) -> None:
    async with served(tmp_path) as workers:
        await asyncio.gather(*(workers.ask(turns(name, 0)) for name in range(CONVERSATIONS)))
        killed, *_ = before = sorted(workers.children)
        os.kill(killed, signal.SIGKILL)
        for name in range(CONVERSATIONS):
            assert (await workers.ask(turns(name, 1))).get(b"x-holdfast-outcome") == b"unchanged"
        await until(lambda: len(workers.children) == len(before) and killed not in workers.children)
        await asyncio.gather(*(workers.ask(turns(name, 2)) for name in range(CONVERSATIONS)))
    await check(workers, 2)


async def test_workers_finish_running_requests_and_stop_with_their_parent(tmp_path: Path) -> None:
    """On SIGTERM; they also stop when the parent is killed."""
    async with served(tmp_path) as workers:
        running = [asyncio.ensure_future(workers.ask(turns(name, 0))) for name in range(CONVERSATIONS)]
        await until(lambda: len(workers.upstream.requests) == CONVERSATIONS)
    assert {(await reply).get(b"x-holdfast-outcome") for reply in running} == {b"unchanged"}
    await check(workers, 0)
    async with served(tmp_path) as workers:
        await workers.get("/healthz")
        children = workers.children
        workers.process.kill()
        await workers.process.wait()
        await until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
