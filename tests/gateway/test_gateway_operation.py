"""The command `holdfast serve` as operators run it: pages, logs, reload, drain, a kill in the middle of a session."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway_harness import ClientConversation, run_gateway
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from raw_http import RawClient, RawMessage, chat_request, read_message, run_upstream
from test_gateway_compaction import STEPS, WINDOW, result, task

from holdfast import MemoryStore, SessionService, SQLiteStore
from holdfast.gateway.tracing import RequestTracer
from holdfast.hooks import Hooks, Telemetry
from holdfast.models.openai import OpenAIChat
from providers import ProviderServer

pytestmark = pytest.mark.anyio
KEYS = {"a" * 20: "ann", "b" * 20: "bob"}
SECRET = "sk-provider-0123456789abcdef"
PROMPT = "The harbour master's secret is kelp."


class Command:
    """A running `holdfast serve`."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process, self.url, self._log = process, url, ""

    async def wait_for_log(self, words: str) -> None:
        """Reads the log until a line has these words."""
        assert self.process.stderr is not None
        line = ""
        while words not in line:
            line = (await asyncio.wait_for(self.process.stderr.readline(), 30)).decode()
            assert line, self._log
            self._log += line

    async def stop(self, number: int) -> tuple[int, str]:
        """Sends a signal; returns exit code and log."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await self.wait()

    async def wait(self) -> tuple[int, str]:
        """Returns exit code and log when the process has ended."""
        _, log = await asyncio.wait_for(self.process.communicate(), 30)
        assert self.process.returncode is not None
        return self.process.returncode, self._log + log.decode()


@asynccontextmanager
async def serve(*options: str) -> AsyncIterator[Command]:
    command = (sys.executable, "-m", "holdfast", "serve", "--port", "0", *options)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
        assert "http://" in line, await process.communicate()
        yield Command(process, line.split()[-1])
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def get(url: str, key: str = "", accept: str = "*/*") -> tuple[int, str, str]:
    def fetch() -> tuple[int, str, str]:
        request = urllib.request.Request(url, headers={"x-holdfast-key": key, "Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                return reply.status, reply.read().decode(), reply.headers["Content-Type"]
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode(), ""

    return await asyncio.to_thread(fetch)


async def ask(url: str, key: str, text: str) -> tuple[bytes, dict[bytes, bytes]]:
    client = await RawClient.connect(url)
    headers = [(b"x-holdfast-key", key.encode()), (b"Authorization", f"Bearer {SECRET}".encode())]
    reply = await client.send(chat_request(text, headers=headers))
    client.close()
    return reply.first, dict(reply.headers)


async def test_keys_logs_and_upstreams_of_a_running_gateway(tmp_path: Path) -> None:
    """Reload by SIGHUP, JSON logs without content or keys, and nothing of a key in the store."""
    keys, upstreams = tmp_path / "keys", tmp_path / "upstreams"
    keys.write_text("".join(f"{key} {owner}\n" for key, owner in KEYS.items()))
    with ProviderServer("Aye.") as first, ProviderServer("No.") as second:
        upstreams.write_text(f"# all\n{first.anthropic_url}\n")
        files = ("--key-file", str(keys), "--upstream", f"@{upstreams}", "--store", f"{tmp_path}/s.db")
        async with serve(*files, "--log", "json") as running:
            status, sent = await ask(running.url, "a" * 20, PROMPT)
            assert b" 200 " in status and first.requests[-1].headers["authorization"] == f"Bearer {SECRET}"
            assert "x-holdfast-key" not in first.requests[-1].headers
            _, other = await ask(running.url, "b" * 20, PROMPT)
            assert sent[b"x-holdfast-session"] != other[b"x-holdfast-session"]
            assert b" 401 " in (await ask(running.url, "wrong" * 5, PROMPT))[0]
            page = await get(running.url, "a" * 20, "application/json")
            assert [one["id"] for one in json.loads(page[1])["sessions"]] == [sent[b"x-holdfast-session"].decode()]
            keys.write_text(f"{'c' * 20} cid\n")
            upstreams.write_text(f"{second.anthropic_url}\n")
            running.process.send_signal(signal.SIGHUP)
            async with asyncio.timeout(30):
                while b" 401 " not in (await ask(running.url, "a" * 20, PROMPT))[0]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            asked = len(first.requests)
            assert b" 200 " in (await ask(running.url, "c" * 20, PROMPT))[0]
            assert len(first.requests) == asked and len(second.requests) == 1
            keys.write_text("broken")
            running.process.send_signal(signal.SIGHUP)
            await running.wait_for_log("stay as they were")
            assert b" 200 " in (await ask(running.url, "c" * 20, PROMPT))[0]
            code, log = await running.stop(signal.SIGTERM)
        lines = [json.loads(line) for line in log.splitlines()]
        requests = [line for line in lines if line["event"] == "request"]
        assert code == 0 and {line["owner"] for line in requests if line["status"] == 200 and "owner" in line} == {
            "ann",
            "bob",
            "cid",
        }
        assert any("stay as they were" in line.get("message", "") for line in lines)
        stored = b"".join(file.read_bytes() for file in tmp_path.glob("s.db*"))  # noqa: ASYNC240
        for secret in (SECRET, "a" * 20, "b" * 20, "c" * 20):
            assert secret not in log and secret.encode() not in stored
        assert "kelp" not in log and b"kelp" in stored


async def test_running_stream_finishes_after_sigterm_and_new_requests_are_refused(tmp_path: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def answer(_: RawMessage, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"9\r\ndata: 1\n\n\r\n")
        begun.set()
        await go_on.wait()
        writer.write(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")

    async with run_upstream(answer) as upstream, serve("--upstream", upstream.url, "--store", "memory:") as running:
        idle = await RawClient.connect(running.url)
        client = await RawClient.connect(running.url)
        client.writer.write(chat_request("Ahoy."))
        await asyncio.wait_for(begun.wait(), 20)
        running.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            while True:
                try:
                    (await RawClient.connect(running.url)).close()
                    await asyncio.sleep(0.01)
                except ConnectionRefusedError:
                    break
        try:
            idle.writer.write(chat_request("Me, too."))
            refused = await read_message(idle.reader)
            assert b" 503 " in refused.first
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # closed before it was sent
        go_on.set()
        reply = await asyncio.wait_for(read_message(client.reader), 20)
        assert reply.body == b"data: 1\n\ndata: 2\n\n"
        assert len(upstream.requests) == 1
        client.close()
        idle.close()
        assert (await running.wait())[0] == 0


async def test_session_continues_after_the_gateway_was_killed(tmp_path: Path) -> None:
    """SIGKILL in the middle of a compacted session: the next requests extend the last one before the kill.

    A compaction in the background may come between the two; then the session is begun again.
    """
    for attempt in range(8):
        if await continue_after_kill(tmp_path / f"{attempt}.db"):
            return
    pytest.fail("there was always a compaction between the two requests")


async def continue_after_kill(store: Path) -> bool:
    """Runs a session through two gateways; returns whether no compaction came between the requests around the kill."""
    options = ("--store", str(store), "--window", str(WINDOW))
    sent: list[list[Any]] = []
    rounds: list[int] = []
    with ProviderServer(task, window=WINDOW) as server:
        conversation: ClientConversation | None = None
        for steps in (range(1, 21), range(21, STEPS + 2)):
            async with serve("--upstream", server.anthropic_url, *options) as running:
                model = OpenAIChat("harbor", base_url=f"{running.url}/v1", api_key="sk-harbor")
                if conversation is None:
                    conversation = ClientConversation(model)
                    conversation.say("Read all berths in order.")
                conversation.model = model
                for number in steps:
                    reply = await conversation.step([result(number)] if number <= STEPS else [])
                    sent.append(server.requests[-1].body["messages"])
                    if number in (19, 21):
                        rounds.append(await last_round(store))
                await running.stop(signal.SIGKILL)
    assert conversation is not None and reply.text == "All berths are read." and server.refused == []
    before, after = sent[19], sent[20]
    assert len(json.dumps(before)) < len(json.dumps(conversation.messages[:40]))
    assert after[: len(before)] == before or rounds[0] < rounds[1]
    async with SessionService(SQLiteStore(store)) as sessions:
        [session] = await sessions.list()
        assert await sessions.verify(session.id) == []
    return rounds[0] == rounds[1]


async def last_round(store: Path) -> int:
    async with SessionService(SQLiteStore(store)) as sessions:
        [session] = await sessions.list()
        return await sessions.round(session.id)


async def test_pages_tell_what_the_gateway_does_for_whom() -> None:
    """Status page, metrics and readiness; a model's name is shown escaped."""
    with ProviderServer(task, window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW, keys=KEYS, upstream_key=SECRET) as running:
            model = OpenAIChat("<script>alert(1)</script>", base_url=f"{running.url}/v1", api_key="a" * 20)
            client = ClientConversation(model)
            client.say("Read all berths in order.")
            for number in range(1, STEPS + 2):
                await client.step([result(number)] if number <= STEPS else [])
            assert {request.headers.get("authorization") for request in server.requests} == {f"Bearer {SECRET}"}
            _, page, kind = await get(running.url, "a" * 20)
            assert kind.startswith("text/html") and "ann" in page and "<script" not in page
            assert "&lt;script&gt;" in page
            status = json.loads((await get(running.url, "a" * 20, "application/json"))[1])
            assert status["counts"]["tokens_saved"] > WINDOW and len(status["compactions"]) >= 2
            other = json.loads((await get(running.url, "b" * 20, "application/json"))[1])
            assert other["sessions"] == other["compactions"] == [] and other["counts"]["requests"] == 0
            assert (await get(running.url))[0] == 401 and (await get(f"{running.url}/healthz"))[0] == 200
            assert (await get(f"{running.url}/readyz", "b" * 20))[0] == 200
            _, metrics, _ = await get(f"{running.url}/metrics", "a" * 20)
            numbers = dict(re.findall(r"^(holdfast_\S+) (\S+)$", metrics, re.MULTILINE))
            assert float(numbers['holdfast_gateway_compactions_total{outcome="compacted"}']) >= 2
            assert float(numbers["holdfast_gateway_added_seconds_count"]) == STEPS + 1
            assert float(numbers["holdfast_gateway_tokens_saved_total"]) == status["counts"]["tokens_saved"]
            assert float(numbers['holdfast_gateway_replies_total{status="200"}']) >= STEPS + 1


async def test_requests_and_the_compactions_they_wait_for_are_spans_of_the_clients_trace() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    sessions = SessionService(MemoryStore(), hooks=Hooks(listen=Telemetry(provider)))
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with ProviderServer(window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, sessions=sessions, window=WINDOW) as running:
            running.gateway._tracer = RequestTracer(provider)
            roles = itertools.cycle(("user", "assistant"))
            messages: Any = [{"role": next(roles), "content": PROMPT * 150} for _ in range(9)]
            stream = await running.openai().chat.completions.create(
                model="m",
                messages=messages,
                stream=True,
                extra_headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"},
            )
            assert [chunk async for chunk in stream]
    compaction, request = exporter.get_finished_spans()
    assert (request.name, compaction.name) == ("POST /v1/chat/completions", "compact")
    assert compaction.parent is not None and compaction.parent.span_id == request.context.span_id
    assert format(request.context.trace_id, "032x") == trace
    attributes = dict(request.attributes or {})
    assert attributes["http.response.status_code"] == 200 and attributes["holdfast.outcome"] == "compacted"
    assert int(attributes["holdfast.tokens_before"]) > int(attributes["holdfast.tokens_after"])
    assert "kelp" not in json.dumps(attributes)
