"""`previous_response_id`: requests that name the reply before them in place of the conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from gateway_harness import RunningGateway, run_gateway
from raw_http import RawClient, RawMessage, RawUpstream, run_upstream

from holdfast import MemoryStore, SessionService
from holdfast.messages import decode_one

pytestmark = pytest.mark.anyio
WINDOW = 4_000
TEXT = "The tide turns at noon, and berth N3 is free. " * 20


class ResponsesUpstream:
    """Answers each request with a reply of its own; one that stores them refuses the names of others."""

    def __init__(self, *, stores: bool = True, streams: bool = False) -> None:
        self.stores, self.streams = stores, streams
        self.replies = 0

    async def answer(self, request: RawMessage, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(request.body)
        known = [f"resp_{number}" for number in range(1, self.replies + 1)] if self.stores else []
        if (named := asked.get("previous_response_id")) is not None and named not in known:
            error = {"message": f"Previous response with id '{named}' not found.", "param": "previous_response_id"}
            return self._send(writer, b"400 Bad Request", json.dumps({"error": error}).encode())
        self.replies += 1
        part = {"type": "output_text", "text": f"Reply {self.replies}.", "annotations": []}
        message = {"type": "message", "id": f"msg_{self.replies}", "role": "assistant", "content": [part]}
        reply = {"id": f"resp_{self.replies}", "object": "response", "status": "completed", "output": [message]}
        reply["usage"] = {"input_tokens": 20, "output_tokens": 4, "total_tokens": 24}
        if not self.streams:
            return self._send(writer, b"200 OK", json.dumps(reply).encode())
        begun = reply | {"status": "in_progress", "output": [], "usage": None}
        events = [{"type": "response.created", "response": begun}, {"type": "response.completed", "response": reply}]
        data = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)
        return self._send(writer, b"200 OK", data, b"text/event-stream")

    @staticmethod
    def _send(writer: asyncio.StreamWriter, status: bytes, body: bytes, kind: bytes = b"application/json") -> None:
        head = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (status, kind, len(body))
        writer.write(head + body)


class Chain:
    """A client that sends only what is new."""

    def __init__(self, running: RunningGateway, upstream: RawUpstream, service: SessionService) -> None:
        self.running, self.upstream, self.sessions = running, upstream, service
        self.named: str | None = None

    async def say(self, given: Any, **fields: Any) -> str:
        """Sends a request that names the last reply; returns the outcome."""
        name = {} if self.named is None else {"previous_response_id": self.named}
        raw = json.dumps({"model": "m", "input": given, **name, **fields}).encode()
        head = [(b"Host", b"localhost"), (b"Content-Length", b"%d" % len(raw))]
        self.raw = raw
        client = await RawClient.connect(self.running.url)
        try:
            reply = await client.send(RawMessage(b"POST /v1/responses HTTP/1.1", head, raw).to_bytes())
        finally:
            client.close()
        assert b" 200 " in reply.first, reply
        self.named = "resp_" + reply.body.rpartition(b'"resp_')[2].partition(b'"')[0].decode()
        return (reply.get(b"x-holdfast-outcome") or b"").decode()

    @property
    def sent(self) -> Any:
        """The newest request that the upstream got."""
        return json.loads(self.upstream.requests[-1].body)

    async def texts(self) -> list[str]:
        """The messages of the only session."""
        [session] = await self.sessions.list()
        events = await self.sessions.events(session.id, kind="message")
        return [decode_one(event.body["message"], "openai-responses").text for event in events]


@asynccontextmanager
async def running_chain(**how: Any) -> AsyncIterator[Chain]:
    async with (
        SessionService(MemoryStore()) as service,
        run_upstream(ResponsesUpstream(**how).answer) as upstream,
        run_gateway(upstream.url, sessions=service, window=WINDOW) as running,
    ):
        yield Chain(running, upstream, service)


def user(text: str) -> list[Any]:
    return [{"type": "message", "role": "user", "content": text}]


@pytest.mark.parametrize("streams", [False, True])
async def test_request_that_names_a_reply_continues_its_session(streams: bool) -> None:
    """It is forwarded byte for byte; the log has the conversation."""
    async with running_chain(streams=streams) as chain:
        assert await chain.say("Which berth is free?", stream=streams) == "unchanged"
        assert await chain.say(user("And the next?"), stream=streams) == "unchanged"
        assert chain.upstream.requests[-1].body == chain.raw
        assert await chain.say("Thanks.", stream=streams) == "unchanged"
        assert chain.upstream.requests[-1].body == chain.raw
        assert await chain.texts() == ["Which berth is free?", "Reply 1.", "And the next?", "Reply 2.", "Thanks."]


async def test_compacted_context_is_sent_in_place_of_the_name() -> None:
    """The provider then has what was sent: the next request is forwarded as it is."""
    async with running_chain() as chain:
        outcomes = [await chain.say(f"{number}: {TEXT}", instructions="Be brief.") for number in range(40)]
        assert outcomes.count("compacted") >= 2 and set(outcomes) == {"unchanged", "compacted"}
        at = outcomes.index("compacted")
        assert outcomes[at + 1] == "unchanged"
        first, second = (json.loads(request.body) for request in chain.upstream.requests[at : at + 2])
        assert "previous_response_id" not in first and first["instructions"] == "Be brief."
        assert first["input"][-1]["content"].startswith(f"{at}:") and len(first["input"]) < 2 * at
        assert second["previous_response_id"] == f"resp_{at + 1}"
        assert len(await chain.texts()) >= 79


async def test_upstream_that_stores_nothing_gets_the_conversation() -> None:
    """After its refusal, and from then on at once."""
    async with running_chain(stores=False) as chain:
        assert await chain.say([{"role": "developer", "content": "Be brief."}, *user("Which berth?")]) == "unchanged"
        assert await chain.say("And the next?") == "continued"
        assert len(chain.upstream.requests) == 3
        roles = [(item["role"], item["content"]) for item in chain.sent["input"] if item["role"] != "assistant"]
        assert roles == [("developer", "Be brief."), ("user", "Which berth?"), ("user", "And the next?")]
        assert chain.sent["input"][2]["content"][0]["text"] == "Reply 1."
        assert await chain.say("Thanks.") == "continued"
        assert len(chain.upstream.requests) == 4 and len(chain.sent["input"]) == 6


async def test_reply_that_was_not_to_be_stored_is_not_named_to_the_upstream() -> None:
    async with running_chain() as chain:
        await chain.say("Which berth?", store=False)
        assert await chain.say("And the next?", store=False) == "continued"
        assert "previous_response_id" not in chain.sent and len(chain.sent["input"]) == 3


async def test_name_of_another_reply_passes_as_it_is() -> None:
    async with running_chain() as chain:
        await chain.say("Which berth?")
        chain.running.gateway._decisions._chains._replies.clear()
        assert await chain.say("And the next?") == "other"
        assert chain.upstream.requests[-1].body == chain.raw


async def test_reply_that_is_named_twice_has_two_continuations() -> None:
    """The second is a fork of the session."""
    async with running_chain() as chain:
        await chain.say("Which berth?")
        first = chain.named
        await chain.say("And the next?")
        chain.named = first
        assert await chain.say("And the last?") == "unchanged"
        assert chain.upstream.requests[-1].body == chain.raw
        one, other = await chain.sessions.list()
        assert {one.parent, other.parent} == {None, one.id if other.parent else other.id}
