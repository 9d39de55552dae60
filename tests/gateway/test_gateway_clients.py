"""What published clients send beside their conversation, and how they name it: `python -m tests.clients` runs them."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
import zstandard
from gateway_harness import RunningGateway, run_gateway
from raw_http import RawClient, RawMessage, reply_with, run_upstream

from client_lists import aider_requests
from holdfast import MemoryStore, SessionService
from holdfast.messages import Json
from providers import ProviderServer

pytestmark = pytest.mark.anyio
TASK = "Read the log of berth 4."
PATHS = {
    "gemini": "/v1beta/models/harbor:streamGenerateContent?alt=sse",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
TITLE = "You are a title generator. You output ONLY a thread title. Nothing else."


async def post(running: RunningGateway, format: str, body: Json, headers: dict[str, str]) -> str:
    """Sends a request as a client would, and returns its outcome."""
    sent = headers | {"Authorization": "Bearer sk-harbor", "anthropic-version": "2023-06-01"}
    given: Any = {"json": body if format == "gemini" else body | {"model": "harbor", "stream": True}}
    async with (
        aiohttp.ClientSession() as client,
        client.post(running.url + PATHS[format], headers=sent, **given) as reply,
    ):
        assert reply.status == 200, await reply.text()
        await reply.read()
        return reply.headers["x-holdfast-outcome"]


async def first_texts(running: RunningGateway) -> list[str]:
    """Returns the first message of each session."""
    events = [await running.sessions.events(session.id) for session in await running.sessions.list()]
    return sorted(json.dumps(found[0].body["message"]) for found in events)


async def test_title_of_opencode_is_no_session_in_any_protocol() -> None:
    asked = "Generate a title for this conversation:\n"
    users: list[Json] = [{"role": "user", "content": asked}, {"role": "user", "content": TASK}]
    bodies: dict[str, Json] = {
        "openai-chat": {"messages": [{"role": "system", "content": TITLE}, *users]},
        "openai-responses": {"input": [{"role": "developer", "content": TITLE}, *users]},
        "anthropic": {
            "system": [{"type": "text", "text": TITLE}],
            "messages": [{"role": "user", "content": asked + TASK}],
            "max_tokens": 500,
        },
    }
    with ProviderServer("Berth 4") as server:
        async with run_gateway(server.anthropic_url) as running:
            for format, body in bodies.items():
                assert await post(running, format, body, {"x-session-id": "ses_1"}) == "side_call"
            assert server.refused == [] and await running.sessions.list() == []


async def test_words_of_a_side_call_in_a_prompt_or_a_message_are_no_side_call() -> None:
    system = "You are a coder. Another agent will review your work. Create a structured summary at the end."
    texts = [
        "Write a title generator for the harbour's log.",
        "Summarize the conversation of the pilots, as a structured summary.",
        "It needs a context compaction: generate a short title for each thread.",
    ]
    messages: list[Json] = [{"role": "system", "content": system}]
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            for text in texts:
                messages.append({"role": "user", "content": text})
                assert await post(running, "openai-chat", {"messages": messages}, {}) == "unchanged"
                messages.append({"role": "assistant", "content": "Aye."})
            [session] = await running.sessions.list()
            assert len(await running.sessions.events(session.id, kind="message")) == 5


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
async def test_side_call_is_known_by_its_form(format: str) -> None:
    """No tools, another system prompt, and the conversation's list or one message under the conversation's name."""
    tool: Json = {"name": "run", "description": "Runs.", "input_schema": {"type": "object"}}
    if format == "openai-chat":
        function = {"name": "run", "description": "Runs.", "parameters": {"type": "object"}}
        tool = {"type": "function", "function": function}
    talk: list[Json] = [{"role": "user", "content": TASK}, {"role": "assistant", "content": "Aye."}]

    def body(system: str, messages: list[Json], **more: Any) -> Json:
        if format == "anthropic":
            return {"system": system, "messages": messages, "max_tokens": 500, **more}
        return {"messages": [{"role": "system", "content": system}, *messages], **more}

    key = {"x-session-id": "ses_1"}
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            for messages in (talk[:1], [*talk, {"role": "user", "content": "And berth 5."}]):
                assert await post(running, format, body("Sail.", messages, tools=[tool]), key) == "unchanged"
            asked = {"role": "user", "content": "Now in three words."}
            whole = [*messages, {"role": "assistant", "content": "Aye."}, asked]
            for messages in ([asked], whole[:2] + whole[-1:], whole):
                outcome = await post(running, format, body("Name it.", messages), key)
                assert outcome == ("side_call" if messages != whole[:2] + whole[-1:] else "unchanged")
            [root, *forks] = await running.sessions.list()
            assert not forks or all(one.parent for one in (root, *forks)[:1])


@pytest.mark.parametrize("named", ["system", "user"])
async def test_conversations_that_begin_with_the_same_words_are_different_sessions(named: str) -> None:
    """By their system prompt or the end user; each goes on in its own session, also after a restart."""
    sessions = SessionService(MemoryStore())
    ok = reply_with(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    async with run_upstream(ok) as upstream:
        for turns in (1, 2, 3):
            async with run_gateway(upstream.url, sessions=SessionService(sessions.store)) as running:
                for name in ("ann", "bob"):
                    system = f"You serve {name}." if named == "system" else "You serve."
                    messages: list[Json] = [{"role": "system", "content": system}]
                    for turn in range(turns):
                        messages += [{"role": "user", "content": f"Ahoy {turn}."}]
                        messages += [{"role": "assistant", "content": f"Aye {name}."}]
                    body: Json = {"messages": messages[:-1]} | ({"user": name} if named == "user" else {})
                    assert await post(running, "openai-chat", body, {}) == "unchanged"
        logs = [await sessions.events(one.id, kind="message") for one in await sessions.list()]
        texts = [json.dumps([event.body["message"]["content"] for event in log]) for log in logs]
        for name in ("ann", "bob"):
            assert sum(f"Aye {name}." in text and "Ahoy 2." in text for text in texts) == 1
        assert not any("Aye ann." in text and "Aye bob." in text for text in texts)


async def test_anthropic_on_vertex_and_ollama_are_followed() -> None:
    """Vertex has the model in the path; Ollama's calls have no ids, and its context is an option of the request."""
    vertex = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict"
    stream = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    lines = b'{"message":{"role":"assistant","content":"Aye."},"done":false}\n'
    lines += b'{"message":{"role":"assistant","content":""},"done":true,"prompt_eval_count":41,"eval_count":2}\n'
    answer = reply_with(stream + b"%x\r\n%b\r\n0\r\n\r\n" % (len(lines), lines))
    call = {"function": {"name": "read", "arguments": {"berth": 4}}}
    words = "The tide turns at noon. " * 40
    async with run_upstream(answer) as upstream, run_gateway(upstream.url) as running:
        client = await RawClient.connect(running.url)

        async def ask(path: str, body: Json) -> RawMessage:
            raw = json.dumps(body).encode()
            head = [(b"Host", b"localhost"), (b"Content-Length", b"%d" % len(raw))]
            return await client.send(RawMessage(f"POST {path} HTTP/1.1".encode(), head, raw).to_bytes())

        body: Json = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 9, "messages": []}
        body["messages"] = [{"role": "user", "content": TASK}]
        assert (await ask(vertex, body)).get(b"x-holdfast-outcome") == b"unchanged"
        [session] = await running.sessions.list()
        assert (session.format, session.model) == ("anthropic", "claude-sonnet-4-5@20250929")
        other = await ask(vertex.replace("anthropic", "mistralai"), body)
        assert other.get(b"x-holdfast-outcome") is None
        signed = await ask("/model/anthropic.claude-sonnet-4-5/converse-stream", body)
        assert signed.get(b"x-holdfast-outcome") == b"other" and json.loads(upstream.requests[-1].body) == body
        messages: list[Json] = [{"role": "user", "content": "Read all berths."}]
        outcomes = []
        for number in range(12):
            sent: Json = {"model": "gemma3", "messages": messages, "options": {"num_ctx": 2_000}}
            outcomes.append((await ask("/api/chat", sent)).get(b"x-holdfast-outcome"))
            messages += [{"role": "assistant", "content": "", "tool_calls": [call]}]
            messages += [{"role": "tool", "tool_name": "read", "content": f"Berth {number}. {words}"}]
        assert outcomes[0] == b"unchanged" and outcomes[-1] == b"compacted"
        assert len(upstream.requests[-1].body) < len(json.dumps(sent)) / 2
        assert running.gateway.metrics.usage["input"] == 41 * 12
        client.close()


async def test_conversations_that_begin_alike_are_two_sessions_by_the_clients_own_name() -> None:
    """Two terminals in one folder begin with the same words; each goes on in its own session."""
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            for text in ("The ropes.", "The boats."):
                for messages in ([], [{"role": "assistant", "content": "Aye."}, {"role": "user", "content": text}]):
                    body = {"messages": [{"role": "user", "content": TASK}, *messages]}
                    await post(running, "openai-chat", body, {"x-session-id": text})
            sessions = await running.sessions.list()
            assert [(one.version, one.parent) for one in sessions] == [(3, None), (3, None)]


async def test_moved_cache_marks_do_not_fork_and_a_sub_agent_has_its_own_session() -> None:
    """Claude Code marks its newest message, a text alone otherwise; sub-agents send the conversation's session id."""
    key = {"x-claude-code-session-id": "88a1f434"}
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            texts = [TASK, "And berth 5.", "And berth 6."]
            for count in range(1, len(texts) + 1):
                messages: list[Json] = []
                for text in texts[:count]:
                    marked = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
                    messages.append({"role": "user", "content": marked if text == texts[count - 1] else text})
                    messages.append({"role": "assistant", "content": [{"type": "text", "text": "Aye."}]})
                body = {"messages": messages[:-1], "max_tokens": 500}
                assert await post(running, "anthropic", body, key) == "unchanged"
            agent = {"messages": [{"role": "user", "content": "Tell the tide."}], "max_tokens": 500}
            await post(running, "anthropic", agent, key)
            texts = await first_texts(running)
            assert len(texts) == 2 and sum(TASK in text for text in texts) == 1
            assert all(session.parent is None for session in await running.sessions.list())


async def test_replaced_signatures_of_gemini_cli_do_not_fork() -> None:
    """Calls of the running turn are signed, by the model or a documented dummy; those of earlier turns need not be."""
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            call: Json = {"functionCall": {"name": "read", "args": {"berth": 4}}}
            answer: Json = {"functionResponse": {"name": "read", "response": {"output": "free"}}}
            dummy = {"thoughtSignature": "skip_thought_signature_validator"}
            ends = [
                [],
                [{"role": "model", "parts": [{"text": "Aye."}]}, {"role": "user", "parts": [{"text": "Thanks."}]}],
            ]
            for mark, more in zip((dummy, {}), ends, strict=True):
                contents = [
                    {"role": "user", "parts": [{"text": TASK}]},
                    {"role": "model", "parts": [call | mark]},
                    {"role": "user", "parts": [answer]},
                ]
                await post(running, "gemini", {"contents": [*contents, *more]}, {"x-goog-api-key": "k"})
            [session] = await running.sessions.list()
            events = await running.sessions.events(session.id)
            assert len(events) == 5 and "skip_thought" in json.dumps(events[1].body)


async def test_compressed_request_of_codex_is_followed_and_forwarded_as_it_is() -> None:
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            body = {"model": "harbor", "stream": True, "input": [{"role": "user", "content": TASK}]}
            packed = zstandard.compress(json.dumps(body).encode())
            headers = {"Content-Encoding": "zstd", "Content-Type": "application/json", "thread-id": "t-1"}
            async with aiohttp.ClientSession() as client:
                sent = headers | {"Authorization": "Bearer sk-harbor"}
                async with client.post(f"{running.url}/v1/responses", headers=sent, data=packed) as reply:
                    assert reply.headers["x-holdfast-outcome"] == "unchanged"
                upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
                async with client.get(f"{running.url}/v1/responses", headers=upgrade) as reply:
                    assert reply.status == 426
            assert server.requests[0].headers["content-encoding"] == "zstd"
            assert TASK in (await first_texts(running))[0]


@pytest.mark.parametrize("reminder", ["user", "sys"])
async def test_moved_reminder_of_aider_does_not_fork(reminder: Any) -> None:
    """aider ends the newest user message with its rules, or sends them after it; earlier ones have none of it."""
    asked = [f"Rename tide_{number} to ebb_{number}." for number in range(16)]
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            for messages in aider_requests(asked, reminder):
                assert await post(running, "openai-chat", {"messages": messages}, {}) == "unchanged"
            [session] = await running.sessions.list()
            events = await running.sessions.events(session.id, kind="message")
            texts = [event.body["message"]["content"] for event in events]
            assert [sum(text.startswith(f"{one}") for text in texts) for one in asked] == [1] * 16
            assert sum(text == f"Done: {asked[3]}" for text in texts) == 1
            assert await running.sessions.verify(session.id) == []


@pytest.mark.parametrize("reminder", ["user", "sys"])
async def test_moved_reminder_is_recognised_after_a_restart_and_in_a_compacted_session(reminder: Any) -> None:
    """Each gateway has the store alone; a message that is in the log with its reminder stays there as it is."""
    sessions = SessionService(MemoryStore())
    asked = [f"Rename tide_{number} to ebb_{number}. " + "The tide was high at the pier. " * 90 for number in range(16)]
    outcomes = []
    with ProviderServer("Aye.", window=6_000) as server:
        for messages in aider_requests(asked, reminder):
            async with run_gateway(server.anthropic_url, sessions=sessions, window=6_000) as running:
                outcomes.append(await post(running, "openai-chat", {"messages": messages}, {}))
        assert server.refused == [] and server.overflowed == 0
        assert asked[-1] in json.dumps(server.requests[-1].body)
    [session] = await sessions.list()
    assert "compacted" in outcomes
    assert await sessions.verify(session.id) == []
