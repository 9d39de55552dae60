"""Large requests are decided about in a process of their own, within a bound of memory and time."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gateway_harness import RunningGateway, run_gateway
from raw_http import RawClient, RawMessage, reply_with, run_upstream

from holdfast import SessionService, SQLiteStore
from holdfast.gateway import large_requests
from holdfast.io import http_client

pytestmark = pytest.mark.anyio
MOST_AT_ONCE = 2**19
"""Most bytes that a loop reads from a connection at once, and what may wait before."""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
REFUSAL = b'{"error": {"message": "prompt is too long: 900000 tokens > 20000 maximum"}}'
TOO_LONG = b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n%b" % (len(REFUSAL), REFUSAL)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests share their machine; the process imports this file."""
    monkeypatch.setattr(large_requests, "WAIT_SECONDS", 120.0)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def open_sessions(path: Path) -> SessionService:
    return SessionService(SQLiteStore(path), preset="holdfast", window=20_000)


def messages(count: int) -> list[Any]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": f"{at}: the tide turns at noon. " * 400} for at in range(count)]


async def send(
    running: RunningGateway, body: dict[str, Any], path: bytes = b"/v1/chat/completions", **encoding: bytes
) -> RawMessage:
    raw = encoding.get("packed") or json.dumps(body).encode()
    head = [(b"Host", b"localhost"), (b"Content-Length", b"%d" % len(raw))]
    if encoding:
        head.append((b"Content-Encoding", b"gzip"))
    client = await RawClient.connect(running.url)
    try:
        return await client.send(RawMessage(b"POST %b HTTP/1.1" % path, head, raw).to_bytes())
    finally:
        client.close()


async def test_large_conversation_is_compacted_in_the_same_store(tmp_path: Path) -> None:
    """A prompt that does not fit is compacted, and the next request extends what was sent."""
    opening = partial(open_sessions, tmp_path / "s.db")
    async with opening() as sessions, run_upstream(reply_with(OK)) as upstream:
        async with run_gateway(upstream.url, sessions=sessions, window=20_000, open_sessions=opening) as running:
            first = await send(running, {"model": "m", "messages": messages(121)})
            assert first.get(b"x-holdfast-outcome") == b"compacted"
            assert len(upstream.requests[0].body) < 100_000
            longer = [*messages(121), {"role": "assistant", "content": "Aye."}, {"role": "user", "content": "Go on."}]
            second = await send(running, {"model": "m", "messages": longer})
            assert second.get(b"x-holdfast-session") == first.get(b"x-holdfast-session")
            sent = [json.loads(request.body)["messages"] for request in upstream.requests]
            assert sent[1][: len(sent[0])] == sent[0] and sent[1][-1]["content"] == "Go on."
        [session] = await sessions.list()
        assert len(await sessions.events(session.id, kind="message")) == 123
        assert await sessions.verify(session.id) == []


async def test_large_request_that_is_refused_as_too_long_is_recovered(tmp_path: Path) -> None:
    """The process knows the decision: it makes the smaller request, too."""

    async def answer(request: RawMessage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reply_with(TOO_LONG if len(request.body) > 500_000 else OK)(request, reader, writer)

    opening = partial(open_sessions, tmp_path / "s.db")
    async with opening() as sessions, run_upstream(answer) as upstream:
        sessions.window = None
        async with run_gateway(
            upstream.url, sessions=sessions, window=10**9
        ) as running:  # the process: its usual window
            reply = await send(running, {"model": "m", "messages": messages(121)})
            assert b" 200 " in reply.first and len(upstream.requests[-1].body) < 500_000


async def test_message_that_no_model_reads_is_forwarded_as_it_is() -> None:
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url) as running:
        text = "The tide turns at noon. " * (large_requests.MOST_TEXT // 24 + 10)
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        assert (await send(running, body)).get(b"x-holdfast-outcome") == b"too_large"
        assert json.loads(upstream.requests[0].body) == body
        assert running.gateway.metrics.requests["openai-chat", "too_large"] == 1


async def test_large_body_passes_in_the_pieces_that_arrived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the process and to the upstream, and back from the process: no step of the event loop has it whole."""
    asked, forwarded = list[int](), list[int]()
    decide, write = large_requests.LargeRequests.decide, http_client.UpstreamConnection._write

    async def note_pieces(self: Any, call: Any, sent: list[bytes]) -> Any:
        asked.extend(map(len, sent))
        return await decide(self, call, sent)

    async def note_write(self: Any, data: bytes) -> None:
        forwarded.append(len(data))
        await write(self, data)

    monkeypatch.setattr(large_requests.LargeRequests, "decide", note_pieces)
    monkeypatch.setattr(http_client.UpstreamConnection, "_write", note_write)
    opening = partial(open_sessions, tmp_path / "s.db")
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'iVBORw0KGgo=' * 200_000}"}}
    how: Any = {"window": 20_000, "open_sessions": opening}
    async with (
        opening() as sessions,
        run_upstream(reply_with(OK)) as upstream,
        run_gateway(upstream.url, sessions=sessions, **how) as running,
    ):
        for history, outcome in ((messages(2), b"unchanged"), (messages(100), b"compacted")):
            asked.clear()
            forwarded.clear()
            body = {"model": "m", "messages": [*history, {"role": "user", "content": [picture]}]}
            reply = await send(running, body)
            assert reply.get(b"x-holdfast-outcome") == outcome
            assert sum(asked) == len(json.dumps(body)) and max(asked) <= MOST_AT_ONCE
            assert sum(forwarded) == len(upstream.requests[-1].body) > 2_000_000
            assert max(forwarded) <= MOST_AT_ONCE


async def test_vendor_protocol_is_performed_in_the_process() -> None:
    """Its replies come from there, and so do its refusals; an edited reply is edited by what comes from there."""
    content = [{"type": "tool_result", "tool_use_id": "t1", "content": "The tide turns at noon. " * 60_000}]
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
    dialog = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": [call]}]
    dialog += [{"role": "user", "content": content}]
    trigger = {"type": "input_tokens", "value": 1}
    edit = {"type": "clear_tool_uses_20250919", "trigger": trigger, "keep": {"type": "tool_uses", "value": 0}}
    message = b'{"type": "message", "usage": {"input_tokens": 5, "output_tokens": 1}, "content": []}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(message)
    async with run_upstream(reply_with(head + message)) as upstream, run_gateway(upstream.url) as running:
        compacted = await send(running, {"model": "m", "input": messages(121)}, b"/v1/responses/compact")
        assert json.loads(compacted.body)["output"][-1]["type"] == "compaction"
        given = [{"type": "compaction_trigger"}, *messages(121)]
        refused = await send(running, {"model": "m", "input": given}, b"/v1/responses")
        assert b" 400 " in refused.first and b"must be the final input item" in refused.body
        assert refused.get(b"x-holdfast-outcome") == b"refused" and not upstream.requests
        asked = {"model": "m", "max_tokens": 9, "messages": dialog, "context_management": {"edits": [edit]}}
        edited = json.loads((await send(running, asked, b"/v1/messages")).body)
        assert edited["context_management"]["applied_edits"][0]["cleared_tool_uses"] == 1
        assert len(upstream.requests[0].body) < 10_000


async def test_small_body_that_is_large_when_it_is_unpacked_goes_to_the_process() -> None:
    """It is forwarded packed, as it came."""
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url) as running:
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 2_000_000}"}}
        body = {"model": "m", "messages": [{"role": "user", "content": [picture]}]}
        packed = gzip.compress(json.dumps(body).encode())
        assert len(packed) < large_requests.LARGE_BYTES
        assert (await send(running, {}, packed=packed)).get(b"x-holdfast-outcome") == b"unchanged"
        assert upstream.requests[0].body == packed
        large: Any = running.gateway._large
        assert large._process is not None


async def test_request_does_not_wait_for_a_process_that_is_stuck_or_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is forwarded as it is; the next one starts another process."""
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url) as running:
        large: Any = running.gateway._large
        body = {"model": "m", "messages": messages(101)}
        assert (await send(running, body)).get(b"x-holdfast-outcome") in (b"compacted", b"unchanged")
        with monkeypatch.context() as patch:
            patch.setattr(large_requests, "WAIT_SECONDS", 0.2)
            patch.setattr(large_requests, "WORK_SECONDS", 0.1)
            os.kill(large._process.pid, signal.SIGSTOP)
            assert (await send(running, body)).get(b"x-holdfast-outcome") == b"too_large"
            assert await asyncio.wait_for(large._process.wait(), 20) != 0
        assert (await send(running, body)).get(b"x-holdfast-outcome") in (b"compacted", b"unchanged")
        os.kill(large._process.pid, signal.SIGSTOP)
        pending = asyncio.ensure_future(send(running, body))
        await asyncio.sleep(0.2)
        os.kill(large._process.pid, signal.SIGKILL)
        assert (await asyncio.wait_for(pending, 20)).get(b"x-holdfast-outcome") == b"too_large"
        assert {len(request.body) for request in upstream.requests} and running.gateway.metrics.active == 0


async def test_process_ends_with_its_gateway() -> None:
    """Also while it works, or cannot: it ends when the gateway's end of the pipe is closed."""
    async with run_upstream(reply_with(OK)) as upstream, run_gateway(upstream.url) as running:
        await send(running, {"model": "m", "messages": messages(101)})
        process: Any = running.gateway._large._process
        process.stdin.transport.abort()
        assert await asyncio.wait_for(process.wait(), 30) == 0
