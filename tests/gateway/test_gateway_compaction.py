"""Conversations through the gateway: followed in the log, compacted before they overflow, recovered when they did."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from gateway_harness import FORMATS, ClientConversation, run_gateway

from holdfast.gateway import client_sessions
from providers import Answer, Call, ProviderServer, Request, Say, Status
from summarizing_model import summarize

pytestmark = pytest.mark.anyio
WINDOW = 12_000
STEPS = 30


def task(request: Request) -> Answer:
    """Asks for one file after the other; the number of calls so far is in the newest result."""
    newest = json.dumps(request.body)
    done = max((int(word) for word in newest.split("berth-")[1:] for word in [word[:3]] if word.isdigit()), default=0)
    if done >= STEPS:
        return "All berths are read."
    return Say(f"Reading berth {done + 1}.", calls=(Call("read_file", {"path": f"berths/{done + 1}.txt"}),))


def result(number: int) -> str:
    return f"berth-{number:03} is free.\n" + f"The depth at berth {number} is {number * 7} feet. " * 60


@pytest.mark.sampled(2)
@pytest.mark.parametrize("format", FORMATS)
async def test_task_that_overflows_finishes_through_the_gateway(format: str) -> None:
    with ProviderServer(task, window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            client = ClientConversation(running.model(format))
            client.say("Read all berths in order, and keep the rule: never moor at berth 13.")
            for number in range(1, STEPS + 2):
                reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read."
            assert server.refused == [] and server.overflowed == 0
            assert "never moor at berth 13" in json.dumps(server.requests[-1].body)
            [session] = await running.sessions.list()
            assert len(await running.sessions.events(session.id, kind="compaction")) >= 2
            events = await running.sessions.events(session.id, kind="message")
            assert sum("berth-" in json.dumps(event.body) for event in events) == STEPS
            assert await running.sessions.verify(session.id) == []


async def test_request_that_leaves_no_room_for_the_reply_is_compacted_before_it_is_sent() -> None:
    """The window is not exceeded yet, but the part of it that is reserved for the reply is in use."""
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            client = ClientConversation(running.model("openai-chat"))
            for number in range(15):
                client.say(result(number))
                client.messages.append({"role": "assistant", "content": "Noted."})
            client.say("Which berth is free?")
            await client.step()
            [session] = await running.sessions.list()
            size = await running.sessions.size(session.id)
            [compaction] = await running.sessions.events(session.id, kind="compaction")
            assert size.limit is not None and size.limit < compaction.body["tokens_before"] < WINDOW
            assert running.gateway.metrics.requests == {("openai-chat", "compacted"): 1}
            assert len(json.dumps(server.requests[0].body)) < len(json.dumps(client.messages))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("format", FORMATS)
async def test_overflow_is_recovered_before_the_client_sees_it(format: str) -> None:
    """The window is half of what the gateway assumes: it learns the real one from the first error."""
    with ProviderServer(task, window=WINDOW // 2) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW * 4) as running:
            client = ClientConversation(running.model(format))
            client.say("Read all berths in order.")
            for number in range(1, STEPS + 2):
                reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read." and server.refused == []
            assert 1 <= server.overflowed <= 2
            assert running.gateway.metrics.requests[format, "recovered"] == server.overflowed


async def test_request_that_is_refused_again_after_its_recovery_is_the_clients() -> None:
    """The error names no window, so that each further attempt could be a little smaller than the last."""
    refused = Status(400, body='{"error": {"message": "The prompt is too long.", "code": "context_length_exceeded"}}')
    with ProviderServer(refused) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW) as running:
            client = ClientConversation(running.model("openai-chat"))
            for number in range(8):
                client.say(result(number))
                client.messages.append({"role": "assistant", "content": "Noted."})
            client.say("Which berth is free?")
            with pytest.raises(AssertionError, match="overflow"):
                await client.step()
            assert len(server.requests) == 2
            assert running.gateway.metrics.requests["openai-chat", "recovered"] == 1


async def test_window_in_the_list_of_models_that_passes_is_used() -> None:
    """H8: the model is in no catalog; the client asks for the list, and no request is ever too long."""
    with ProviderServer(task, window=WINDOW, models=("harbor",)) as server:
        async with run_gateway(server.anthropic_url) as running:
            client = ClientConversation(running.model("openai-chat"))
            assert [model.id async for model in running.openai().models.list()] == ["harbor"]
            client.say("Read all berths in order.")
            for number in range(1, STEPS + 2):
                reply = await client.step([result(number)] if number <= STEPS else [])
            assert reply.text == "All berths are read." and server.overflowed == 0
            [session] = await running.sessions.list()
            size = await running.sessions.size(session.id)
            assert (size.window, size.window_basis) == (WINDOW, "reported") and size.is_compacted


async def test_unchanged_request_and_side_calls_leave_the_conversation_alone() -> None:
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            client = ClientConversation(running.model("openai-chat"))
            client.say("Ahoy.")
            await client.step()
            titles = "Name the conversation in three words."
            asked = [{"role": "system", "content": titles}, *client.messages, {"role": "user", "content": "A title."}]
            create: Any = running.openai().chat.completions.create
            assert [chunk async for chunk in await create(model="harbor", messages=asked, stream=True)]
            client.say("When is high water?")
            await client.step()
            [session] = await running.sessions.list()
            events = await running.sessions.events(session.id)
            assert [event.body["message"]["content"] for event in events] == ["Ahoy.", "Aye.", "When is high water?"]


async def test_edited_history_continues_in_a_fork() -> None:
    with ProviderServer(lambda request: f"Answer to {request.prompt[-3:]}") as server:
        async with run_gateway(server.anthropic_url) as running:
            client = ClientConversation(running.model("anthropic"))
            for text in ("one", "two", "six"):
                client.say(text)
                await client.step()
            client.messages = client.messages[:2]
            client.say("ten")
            await client.step()
            client.say("end")
            await client.step()
            sessions = {session.id: session for session in await running.sessions.list()}
            [fork] = [session for session in sessions.values() if session.parent]
            assert len(sessions) == 2 and fork.parent in sessions
            texts = [json.dumps(event.body["message"]["content"]) for event in await running.sessions.events(fork.id)]
            assert len(texts) == 5 and "two" not in "".join(texts) and "ten" in texts[2]


async def test_conversation_that_is_no_longer_in_memory_is_found_in_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request of one client closes the conversation of the other; the sessions go on."""
    monkeypatch.setattr(client_sessions, "MAX_START_BYTES", 10)
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            clients = [ClientConversation(running.model("openai-chat")) for _ in range(2)]
            for turn in range(3):
                for name, client in enumerate(clients):
                    client.say(f"Message {turn} of client {name}.")
                    await client.step()
            sessions = await running.sessions.list()
            assert [session.version for session in sessions] == [5, 5]
            assert all(session.parent is None for session in sessions)


async def test_long_list_that_is_not_known_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its beginning does not recognise has to be read whole; other requests do not wait for it."""
    monkeypatch.setattr(client_sessions, "_THREAD_FROM_BYTES", 0)
    read, threads = client_sessions.MessageList.read, list[int]()

    def read_and_note(raw: bytes) -> client_sessions.MessageList:
        threads.append(threading.get_ident())
        return read(raw)

    monkeypatch.setattr(client_sessions.MessageList, "read", read_and_note)
    with ProviderServer("Aye.") as server:
        async with run_gateway(server.anthropic_url) as running:
            client = ClientConversation(running.model("openai-chat"))
            for text in ("Ahoy.", "When is high water?"):
                client.say(text)
                await client.step()
            [session] = await running.sessions.list()
            assert session.version == 3
    assert len(threads) == 1 and threads[0] != threading.get_ident()


@pytest.mark.parametrize("format", FORMATS)
async def test_client_model_writes_the_summaries(format: str) -> None:
    """Summaries are asked for with the client's model and key; the client sees nothing of it."""

    def answer(request: Request) -> Answer:
        return summarize(request) if "-messages-" in request.prompt or "<conversation-" in request.prompt else "Aye."

    with ProviderServer(answer, window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW, summarize_with_client_model=True) as running:
            client = ClientConversation(running.model(format))
            for number in range(14):
                client.say(f"Note the tide of day {number}. " + f"It was {number} feet high at the pier. " * 100)
                await client.step()
            [session] = await running.sessions.list()
            compactions = await running.sessions.events(session.id, kind="compaction")
            assert any("The user wrote: Note the tide" in json.dumps(event.body) for event in compactions)
            assert server.refused == [] and {request.model for request in server.requests} == {"harbor"}


async def test_short_request_that_is_refused_without_a_reason_is_no_overflow() -> None:
    """Some providers refuse long prompts by their status alone; a short one was refused for another reason."""
    with ProviderServer([Status(400, body=""), "Aye."]) as server:
        async with run_gateway(server.anthropic_url) as running:
            client = ClientConversation(running.model("openai-chat"))
            client.say("Ahoy.")
            with pytest.raises(AssertionError, match="400"):
                await client.step()
            assert (await client.step()).text == "Aye."
            assert running.gateway.metrics.requests == {("openai-chat", "unchanged"): 2}
