"""A request that only extends its conversation is forwarded first and written behind, before its reply ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from gateway_harness import run_gateway
from raw_http import RawClient, RawMessage, reply_with, run_upstream

from holdfast import MemoryStore, SessionService
from holdfast.errors import StoreError
from holdfast.gateway import rewriting
from holdfast.sessions.origin import listed_events

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
TURNS = ["One.", "Aye.", "Two.", "Aye aye.", "Three.", "Aye, aye, aye.", "Four."]


class SlowStore(MemoryStore):
    """A store whose appends wait, or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.fails = False

    async def append(self, *arguments: Any, **named: Any) -> Any:
        await self.may_write.wait()
        if self.fails:
            raise StoreError("the disk is full")
        return await super().append(*arguments, **named)


def request(turns: int) -> bytes:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(TURNS[:turns])]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    head = [(b"Host", b"localhost"), (b"Content-Length", b"%d" % len(body))]
    return RawMessage(b"POST /v1/chat/completions HTTP/1.1", head, body).to_bytes()


async def stored(sessions: SessionService) -> list[str]:
    [session] = await sessions.list()
    assert await sessions.verify(session.id) == []
    return [event.body["message"]["content"] for event in await sessions.events(session.id, kind="message")]


async def test_request_is_upstream_before_the_log_has_it_and_its_reply_ends_after() -> None:
    store = SlowStore()
    sessions = SessionService(store)
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url, sessions=sessions) as running:
        client = await RawClient.connect(running.url)
        await client.send(request(1))
        store.may_write.clear()
        reply = asyncio.ensure_future(client.send(request(3)))
        async with asyncio.timeout(20):
            while len(upstream.requests) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert await stored(sessions) == TURNS[:1] and not reply.done()
        store.may_write.set()
        assert (await asyncio.wait_for(reply, 20)).get(b"x-holdfast-outcome") == b"unchanged"
        assert await stored(sessions) == TURNS[:3]
        client.close()


async def test_next_request_waits_for_the_messages_of_the_last_one() -> None:
    """A client that left before its reply and asks again: nothing is doubled, and nothing is missing."""
    store = SlowStore()
    sessions = SessionService(store)
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url, sessions=sessions) as running:
        client = await RawClient.connect(running.url)
        await client.send(request(1))
        store.may_write.clear()
        client.writer.write(request(3))
        async with asyncio.timeout(20):
            while len(upstream.requests) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        client.close()
        again = await RawClient.connect(running.url)
        reply = asyncio.ensure_future(again.send(request(5)))
        await asyncio.sleep(0.05)
        store.may_write.set()
        await asyncio.wait_for(reply, 20)
        assert await stored(sessions) == TURNS[:5]
        again.close()


async def test_what_could_not_be_written_comes_with_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "_RETRY_STORE_SECONDS", 0.0)
    store = SlowStore()
    sessions = SessionService(store)
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url, sessions=sessions) as running:
        client = await RawClient.connect(running.url)
        await client.send(request(1))
        store.fails = True
        assert (await client.send(request(3))).get(b"x-holdfast-outcome") == b"unchanged"
        assert running.gateway.metrics.failures["unwritten"] == 1
        assert (await client.send(request(5))).get(b"x-holdfast-outcome") == b"failed"
        store.fails = False
        assert (await client.send(request(7))).get(b"x-holdfast-outcome") == b"unchanged"
        assert await stored(sessions) == TURNS
        client.close()


async def test_large_addition_is_counted_before_it_is_forwarded() -> None:
    """What may not fit by its bytes is decided with the store's answer: the prompt that arrives has room."""
    sessions = SessionService(MemoryStore())
    async with (
        run_upstream(reply_with(OK)) as upstream,
        run_gateway(upstream.url, sessions=sessions, window=2_000) as running,
    ):
        client = await RawClient.connect(running.url)
        messages: list[Any] = [{"role": "user", "content": "Read the log."}]
        outcomes = []
        for number in range(4):
            body = json.dumps({"model": "m", "messages": messages}).encode()
            head = [(b"Host", b"localhost"), (b"Content-Length", b"%d" % len(body))]
            reply = await client.send(RawMessage(b"POST /v1/chat/completions HTTP/1.1", head, body).to_bytes())
            outcomes.append(reply.get(b"x-holdfast-outcome"))
            messages += [{"role": "assistant", "content": f"Aye {number}."}]
            messages += [{"role": "user", "content": f"{number}: the tide turns at noon. " * 150}]
        assert b"compacted" in outcomes and len(upstream.requests[-1].body) < len(body)
        client.close()


class RacingStore(MemoryStore):
    """A store in which another writer is faster once: just before an append of some words."""

    def __init__(self, words: str, others: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self.words, self.others = words, others

    async def append(self, session_id: str, events: Any, **named: Any) -> Any:
        if self.words and any(self.words in str(event.body) for event in events):
            self.words = ""
            await self.others()
        return await super().append(session_id, events, **named)


async def test_edited_list_is_a_fork_though_another_replica_writes_what_was_edited_away() -> None:
    """The append has a condition: one made for an older log is decided about again (S3)."""

    async def others() -> None:
        await first.send(request(5))

    store = RacingStore("Two, edited.", others)
    async with (
        run_upstream(reply_with(OK)) as upstream,
        run_gateway(upstream.url, sessions=SessionService(store)) as one,
        run_gateway(upstream.url, sessions=SessionService(store)) as two,
    ):
        first, second = await RawClient.connect(one.url), await RawClient.connect(two.url)
        await first.send(request(1))
        messages = [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Aye."}]
        body = json.dumps({"model": "m", "messages": [*messages, {"role": "user", "content": "Two, edited."}]}).encode()
        head = [(b"Host", b"localhost"), (b"Content-Length", b"%d" % len(body))]
        await second.send(RawMessage(b"POST /v1/chat/completions HTTP/1.1", head, body).to_bytes())
        sessions = SessionService(store)
        logs = {
            tuple(event.body["message"]["content"] for event in await listed_events(sessions, record.id))
            for record in await sessions.list()
        }
        assert logs == {tuple(TURNS[:5]), ("One.", "Aye.", "Two, edited.")}
        first.close()
        second.close()
