"""Faults of upstream, client, store and gateway: the client gets what it would have got directly, or better."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway_harness import ClientConversation, run_gateway
from raw_http import Answer, RawClient, RawMessage, chat_request, reply_with, run_upstream
from test_gateway_compaction import STEPS, WINDOW, result, task

from holdfast import MemoryStore, PostgresStore, SessionService, SQLiteStore
from holdfast.errors import StoreError
from holdfast.gateway import rewriting
from providers import ProviderServer
from servers.server import Server

pytestmark = pytest.mark.anyio
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
FRAME = b'16\r\ndata: {"choices":[]}\n\n\r\n'
ROUNDS = 5


def error_reply(status: int, *headers: bytes) -> bytes:
    body = b'{"error": {"message": "no"}}'
    lines = (b"HTTP/1.1 %d No" % status, b"Content-Length: %d" % len(body), *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def then_abort(*pieces: bytes) -> Answer:
    send = reply_with(*pieces, pause=0.01)

    async def answer(request: RawMessage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await send(request, reader, writer)
        writer.transport.abort()

    return answer


async def never(_request: RawMessage, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def stalls(_request: RawMessage, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(STREAM + FRAME)
    await asyncio.sleep(60)


UPSTREAM_FAULTS: dict[str, tuple[Answer, Any, str]] = {
    "429": (reply_with(error_reply(429, b"Retry-After: 7")), None, ""),
    "500": (reply_with(error_reply(500)), None, ""),
    "529": (reply_with(error_reply(529)), None, ""),
    "garbage in a stream": (reply_with(STREAM + b"5\r\n\x00\xff{{\n\r\n0\r\n\r\n"), None, ""),
    "slow": (reply_with(*(bytes([byte]) for byte in STREAM + FRAME + b"0\r\n\r\n")), None, ""),
    "reset before the first event": (then_abort(STREAM), b"502", "upstream_disconnected"),
    "reset before the reply": (then_abort(), b"502", "upstream_disconnected"),
    "garbage in place of HTTP": (then_abort(b"\x16\x03\x01 what?\r\n\r\n"), b"502", "upstream_malformed"),
    "reset in a stream": (then_abort(STREAM, FRAME), "broken", "stream_broken"),
    "shorter than it says": (then_abort(error_reply(200)[:-3]), "broken", "stream_broken"),
    "no answer": (never, b"504", "upstream_timeout"),
    "half-open in a stream": (stalls, "broken", "stream_broken"),
}
"""The fault, the status through the gateway if it is not the upstream's own, and the counted kind of failure."""


async def outcome_of(url: str) -> tuple[Any, ...]:
    client = await RawClient.connect(url)
    try:
        reply = await asyncio.wait_for(client.send(chat_request("Ahoy.")), 30)
        headers = [one for one in reply.headers if not one[0].startswith(b"x-holdfast-")]
        return reply.first, headers, reply.body
    except (asyncio.IncompleteReadError, ConnectionError):
        return ("broken",)
    finally:
        client.close()


@pytest.mark.parametrize("fault", UPSTREAM_FAULTS)
async def test_fault_of_the_upstream_reaches_the_client_as_it_is(fault: str) -> None:
    answer, status, kind = UPSTREAM_FAULTS[fault]
    idle = 0.6 if answer in (never, stalls) else 60.0
    async with run_upstream(answer) as upstream, run_gateway(upstream.url, idle_timeout=idle) as running:
        expected = await outcome_of(upstream.url) if status is None else None
        got = await asyncio.gather(*(outcome_of(running.url) for _ in range(ROUNDS)))
        metrics = running.gateway.metrics
        if expected is not None:
            assert got == [expected] * ROUNDS
        elif status == "broken":
            assert got == [("broken",)] * ROUNDS
        else:
            assert [one[0].split()[1] for one in got] == [status] * ROUNDS
        assert dict(metrics.failures) == ({kind: ROUNDS} if kind else {})
        assert metrics.requests["openai-chat", "unchanged"] == ROUNDS and metrics.active == 0


async def test_upstream_that_cannot_be_reached_is_explained() -> None:
    async with run_upstream(never) as upstream:
        address = upstream.url
    async with run_gateway(address) as running:
        first, _, body = await outcome_of(running.url)
        assert b" 502 " in first and json.loads(body)["error"]["type"] == "upstream_unreachable"


async def test_client_that_leaves_is_counted_and_frees_its_place() -> None:
    async with run_upstream(never) as upstream, run_gateway(upstream.url, max_requests=1) as running:
        for _ in range(ROUNDS):
            client = await RawClient.connect(running.url)
            client.writer.write(chat_request("Ahoy."))
            before = len(upstream.requests)
            async with asyncio.timeout(20):
                while len(upstream.requests) == before or not running.gateway.metrics.active:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            first, _, _ = await outcome_of(running.url)
            assert b" 503 " in first
            client.close()
            async with asyncio.timeout(20):
                while running.gateway.metrics.active:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
        assert running.gateway.metrics.failures["client_gone"] == ROUNDS


class BrokenStore(MemoryStore):
    """A store that can be down, or hang."""

    fault: str = ""
    broken: tuple[str, ...] = ("session", "read", "append", "create", "sessions", "forks")
    asked = 0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name in ("fault", "broken") or name not in self.broken or not self.fault:
            return found
        self.asked += 1
        return self._fail if self.fault == "down" else self._hang

    async def _fail(self, *_args: Any, **_named: Any) -> None:
        raise StoreError("the disk is full: sk-secret-of-the-store")

    async def _hang(self, *_args: Any, **_named: Any) -> None:
        await asyncio.sleep(60)


@pytest.mark.parametrize(("fault", "format"), [("down", "openai-chat"), ("hangs", "anthropic")])
async def test_task_finishes_while_the_store_fails(
    fault: str, format: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """From the tenth step on there is no store: requests that overflow are compacted by themselves."""
    store = BrokenStore()
    with ProviderServer(task, window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, sessions=SessionService(store), window=WINDOW) as running:
            client = ClientConversation(running.model(format))
            client.say("Read all berths in order.")
            for number in range(1, STEPS + 2):
                if number > 10:
                    store.fault = fault
                    monkeypatch.setattr(rewriting, "_STORE_SECONDS", 0.05)
                reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read." and server.refused == []
            metrics = running.gateway.metrics
            assert metrics.requests[format, "failed"] == STEPS + 1 - 10 == metrics.failures["decision"]
            assert metrics.requests[format, "recovered"] == server.overflowed > 0
            assert "sk-secret" not in caplog.text and "berth" not in caplog.text


@pytest.mark.parametrize("format", ["anthropic", "openai-responses"])
async def test_task_finishes_while_others_redact_and_delete_and_the_store_fails(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was redacted is not sent again; a deleted or expired session begins anew; each failure lasts two steps."""
    monkeypatch.setattr(rewriting, "_RETRY_STORE_SECONDS", 0.0)
    monkeypatch.setattr(rewriting, "_STORE_SECONDS", 0.3)
    secret, store = "kelp-4711-harbour", BrokenStore()
    admin = SessionService(store)
    with ProviderServer(task, window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, sessions=SessionService(store), window=WINDOW) as running:
            client = ClientConversation(running.model(format))
            client.say(f"Read all berths in order; the password is {secret}.")
            redacted = deleted = 0
            for number in range(1, STEPS + 2):
                store.fault = "down" if number in (4, 5, 20, 21) else ""
                if number == 9:
                    redacted = len(server.requests)
                    for record in await admin.list():
                        await admin.redact_text(record.id, secret)
                if number in (14, 15, 24):
                    deleted = deleted or len(server.requests)
                    for record in await admin.list():
                        await admin.delete(record.id)
                reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read." and server.refused == []
            assert all(secret not in json.dumps(one.body) for one in server.requests[redacted:deleted])
            for record in await admin.list():
                assert await admin.verify(record.id) == []


async def test_store_that_failed_is_not_waited_for_with_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    store = BrokenStore()
    monkeypatch.setattr(rewriting, "_STORE_SECONDS", 0.05)
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url, sessions=SessionService(store)) as running:
            client, requests = ClientConversation(running.model("openai-chat")), running.gateway.metrics.requests

            async def ask(retry_after: float) -> int:
                monkeypatch.setattr(rewriting, "_RETRY_STORE_SECONDS", retry_after)
                client.say("Ahoy.")
                await client.step()
                return store.asked

            store.fault = "hangs"
            assert await ask(0.0) == 1
            assert await ask(600.0) == 2
            assert await ask(600.0) == await ask(600.0) == 2
            assert requests == {("openai-chat", "failed"): 4}


@pytest.mark.parametrize("call", ["session", "read", "append"])
async def test_store_that_hangs_delays_a_request_only_so_long(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever call hangs, also for a conversation that is in memory, and for one that is compacted."""
    monkeypatch.setattr(rewriting, "_STORE_SECONDS", 0.1)
    monkeypatch.setattr(rewriting, "_RETRY_STORE_SECONDS", 0.0)
    store = BrokenStore()
    store.broken = (call,)
    with ProviderServer(task, window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, sessions=SessionService(store), window=WINDOW) as running:
            client = ClientConversation(running.model("openai-chat"))
            client.say("Read all berths in order.")
            async with asyncio.timeout(50):
                for number in range(1, STEPS + 2):
                    store.fault = "hangs" if number in (2, STEPS) else ""
                    reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read." and server.refused == []


class SlowStore(MemoryStore):
    """A store that takes its time, and never answers about one session."""

    stuck = ""

    async def append(self, session_id: str, *given: Any, **named: Any) -> Any:
        await asyncio.sleep(60 if session_id == self.stuck else 0.02)
        return await super().append(session_id, *given, **named)


async def test_session_that_hangs_fails_no_other_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is left alone only if it answers nobody."""
    monkeypatch.setattr(rewriting, "_STORE_SECONDS", 4.0)
    monkeypatch.setattr(rewriting, "_RETRY_STORE_SECONDS", 600.0)
    store = SlowStore()
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url, sessions=SessionService(store)) as running:
            stuck, other = (ClientConversation(running.model("openai-chat")) for _ in range(2))
            metrics, asked = running.gateway.metrics, 0

            async def ask(client: ClientConversation, text: str) -> None:
                client.say(text)
                await client.step()

            await ask(stuck, "Ahoy.")
            [session] = await running.sessions.list()
            store.stuck = session.id
            waiting = asyncio.ensure_future(ask(stuck, "Aye?"))  # forwarded first
            async with asyncio.timeout(60):
                while not metrics.failures["unwritten"]:
                    await ask(other, f"Question {asked}.")
                    asked += 1
            await waiting
            await ask(other, "And now?")
            assert metrics.requests == {("openai-chat", "unchanged"): asked + 3}


async def test_requests_that_wait_for_their_turn_do_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "_STORE_SLOTS", 1)
    monkeypatch.setattr(rewriting, "_STORE_SECONDS", 1.5)
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url, sessions=SessionService(SlowStore())) as running:
            clients = [ClientConversation(running.model("openai-chat")) for _ in range(60)]
            for number, client in enumerate(clients):
                client.say(f"Ship {number}.")
            await asyncio.gather(*(client.step() for client in clients))
            assert running.gateway.metrics.requests == {("openai-chat", "unchanged"): 60}


async def test_locked_or_full_database_delays_no_request_and_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "_RETRY_STORE_SECONDS", 0.0)
    path = tmp_path / "s.db"
    async with SessionService(SQLiteStore(path)) as sessions:
        with ProviderServer("Aye.") as server:
            async with run_gateway(server.anthropic_url, sessions=sessions) as running:
                client = ClientConversation(running.model("openai-chat"))
                client.say("One.")
                await client.step()
                other = sqlite3.connect(path, isolation_level=None)
                other.execute("BEGIN EXCLUSIVE")
                client.say("Two.")
                with monkeypatch.context() as patch:
                    patch.setattr(rewriting, "_STORE_SECONDS", 0.1)
                    await client.step()
                other.execute("ROLLBACK")
                other.close()
                pages = await sessions.store._writer.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
                await _allow_pages(sessions, pages)
                client.say("Three. " + "x" * 50_000)
                await client.step()
                await _allow_pages(sessions, 100_000)
                client.say("Four.")
                await client.step()
                metrics = running.gateway.metrics
                assert metrics.failures["unwritten"] + metrics.failures["decision"] == 2
                assert metrics.failures["unwritten"] >= 1
                [session] = await sessions.list()
                events = await sessions.events(session.id, kind="message")
                assert [event.body["message"]["content"][:4] for event in events][::2] == [
                    "One.",
                    "Two.",
                    "Thre",
                    "Four",
                ]
                assert await sessions.verify(session.id) == []


async def test_task_finishes_while_postgres_is_killed_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: str, postgres_server: Server
) -> None:
    """Without its server the session is not lost: it continues with all messages when the server is there again."""
    monkeypatch.setattr(rewriting, "_RETRY_STORE_SECONDS", 0.1)
    sessions = SessionService(PostgresStore(postgres, tenant=str(tmp_path)))
    with monkeypatch.context() as down, ProviderServer(task, window=WINDOW) as server:
        async with sessions, run_gateway(server.anthropic_url, sessions=sessions, window=WINDOW) as running:
            client = ClientConversation(running.model("openai-chat"))
            client.say("Read all berths in order.")
            for number in range(1, STEPS + 2):
                if number == 10:
                    await asyncio.to_thread(postgres_server.kill)
                    down.setattr(rewriting, "_STORE_SECONDS", 0.3)
                elif number == 20:
                    await asyncio.to_thread(postgres_server.start)
                    down.undo()
                    await asyncio.sleep(0.2)
                reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read." and server.refused == []
            assert running.gateway.metrics.requests["openai-chat", "failed"] >= 10
            [session] = await sessions.list()
            events = await sessions.events(session.id, kind="message")
            assert sum("berth-" in json.dumps(event.body) for event in events) == STEPS
            assert await sessions.verify(session.id) == []


async def test_clock_that_jumps_changes_nothing() -> None:
    now = [1_800_000_000.0]
    sessions = SessionService(MemoryStore(), clock=lambda: now[0])
    with ProviderServer(task, window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, sessions=sessions, window=WINDOW) as running:
            client = ClientConversation(running.model("openai-chat"))
            client.say("Read all berths in order.")
            for number in range(1, STEPS + 2):
                now[0] += {10: 86_400, 15: -2 * 86_400}.get(number, 1)
                reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read." and server.refused == [] and server.overflowed == 0
            [session] = await sessions.list()
            assert len(await sessions.events(session.id, kind="compaction")) >= 2
            assert await sessions.verify(session.id) == []


async def _allow_pages(sessions: SessionService, pages: int) -> None:
    store: Any = sessions.store
    await store._writer.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())


async def test_summarizer_that_hangs_delays_a_request_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "PREPARE_SECONDS", 0.5)
    monkeypatch.setattr(rewriting, "_BACKGROUND_SECONDS", 0.2)

    async def hangs(*_args: Any, **_named: Any) -> Any:
        await asyncio.sleep(60)

    sessions = SessionService(MemoryStore(), summarizer=hangs)
    with ProviderServer(task, window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, sessions=sessions, window=WINDOW, preset="pi") as running:
            client = ClientConversation(running.model("openai-chat"))
            client.say("Read all berths in order.")
            for number in range(1, STEPS + 2):
                reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read." and server.refused == []
            assert running.gateway.metrics.requests["openai-chat", "recovered"] == server.overflowed


@asynccontextmanager
async def two_replicas(
    upstream: str, open_sessions: Callable[[], SessionService]
) -> AsyncIterator[list[ClientConversation]]:
    async with (
        open_sessions() as one,
        open_sessions() as two,
        run_gateway(upstream, sessions=one, window=WINDOW) as first,
        run_gateway(upstream, sessions=two, window=WINDOW) as second,
    ):
        yield [ClientConversation(running.model("anthropic")) for running in (first, second)]


@pytest.fixture(params=["sqlite", "postgres"])
def open_sessions(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], SessionService]:
    """Returns a function that opens one store for each replica."""
    if request.param == "sqlite":
        return lambda: SessionService(SQLiteStore(tmp_path / "s.db"))
    address = request.getfixturevalue("postgres")
    return lambda: SessionService(PostgresStore(address, tenant=str(tmp_path)))


async def test_session_continues_at_any_replica(open_sessions: Callable[[], SessionService]) -> None:
    """Each step goes to the other replica: one session, nothing twice, nothing lost, compacted where it is due."""
    with ProviderServer(task, window=WINDOW) as server:
        async with two_replicas(server.anthropic_url, open_sessions) as clients:
            clients[0].say("Read all berths in order.")
            for number in range(1, STEPS + 2):
                client, other = clients[number % 2], clients[1 - number % 2]
                client.messages = client.messages if len(client.messages) > len(other.messages) else other.messages
                reply = await client.step([result(number)] if number <= STEPS else [])
        assert reply.text == "All berths are read." and server.refused == [] and server.overflowed <= 1
    async with open_sessions() as sessions:
        [session] = await sessions.list()
        events = await sessions.events(session.id, kind="message")
        assert sum("berth-" in json.dumps(event.body) for event in events) == STEPS
        assert len(await sessions.events(session.id, kind="compaction")) >= 2
        assert await sessions.verify(session.id) == []
