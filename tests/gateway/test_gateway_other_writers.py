"""The store is other people's, too: what they delete, redact, undo and restore while the gateway runs.

The conversation continues from what the client sends, nothing invalid is sent, and compaction resumes. What was
redacted reaches the upstream no more, although the client still has it in its list.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from gateway_harness import FORMATS, ClientConversation, RunningGateway, run_gateway
from test_gateway_compaction import STEPS, result, task

from holdfast import JSONLStore, MemoryStore, SessionService, SQLiteStore
from holdfast.context.events import new_id
from holdfast.errors import Conflict
from holdfast.stores import Log, PostgresStore
from holdfast.strategies import KeepLedger
from holdfast.triggers import always
from providers import ProviderServer

pytestmark = pytest.mark.anyio
WINDOW = 4_000
SECRET = "kelp-4711-harbour-password"
STORES = ("memory", "sqlite", "jsonl", "postgres")
OpenLog = Callable[[], Log]


@pytest.fixture(params=STORES)
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> OpenLog:
    """Opens the store as another process would: a connection of its own, but for the store in memory."""
    kind = request.param
    if kind == "memory":
        memory = MemoryStore()
        return lambda: memory
    if kind == "postgres":
        url, tenant = request.getfixturevalue("postgres"), f"gw-{new_id()}"
        return lambda: PostgresStore(url, tenant=tenant)
    if kind == "sqlite":
        return lambda: SQLiteStore(tmp_path / "sessions.db")
    return lambda: JSONLStore(tmp_path / "sessions")


@asynccontextmanager
async def harbour(
    open_log: OpenLog, server: ProviderServer, window: int = WINDOW, **options: Any
) -> AsyncIterator[tuple[RunningGateway, SessionService]]:
    """Runs a gateway, and yields it with another process's service over its store."""
    sessions, admin = SessionService(open_log()), SessionService(open_log())
    try:
        async with run_gateway(server.anthropic_url, sessions=sessions, window=window, **options) as running:
            yield running, admin
    finally:
        for service in (admin, sessions):
            if not isinstance(service.store, MemoryStore):  # there is only one of it
                await service.close()


async def steps(client: ClientConversation, first: int, last: int) -> str:
    """Reads these berths, one request each; returns the last reply's text."""
    text = ""
    for number in range(first, last + 1):
        text = (await client.step([result(number)] if number <= STEPS else [])).text
    return text


def outcomes(running: RunningGateway) -> dict[str, int]:
    return {outcome: count for (_, outcome), count in running.gateway.metrics.requests.items() if count}


async def compactions(sessions: SessionService) -> int:
    return sum([len(await sessions.events(one.id, kind="compaction")) for one in await sessions.list()])


async def undo(sessions: SessionService, session_id: str) -> None:
    """Undoes the newest compaction; again if the gateway has compacted meanwhile."""
    while True:
        with suppress(Conflict):
            await sessions.undo(session_id, after=(await sessions.get(session_id)).version)
            return


@pytest.mark.sampled(2)
async def test_conversation_of_a_deleted_session_goes_on_and_is_compacted_again(open_log: OpenLog) -> None:
    with ProviderServer(task, window=WINDOW) as server:
        async with harbour(open_log, server) as (running, admin):
            client = ClientConversation(running.model("openai-chat"))
            client.say("Read all berths in order, and keep the rule: never moor at berth 13.")
            await steps(client, 1, 9)
            assert await compactions(admin) >= 1
            for _ in range(2):  # before a request, and once more after the first one with the new session
                for record in await admin.list():
                    await admin.delete(record.id)
                number = sum(message["role"] == "tool" for message in client.messages)
                await steps(client, number + 1, number + 1)
            assert await steps(client, 12, 16) == "Reading berth 16."
            assert server.refused == [] and server.overflowed == 0
            assert "failed" not in outcomes(running) and await compactions(admin) >= 2
            [session] = await admin.list()
            assert await admin.verify(session.id) == []
            assert "never moor at berth 13" in json.dumps(server.requests[-1].body)


@pytest.mark.parametrize("format", FORMATS[1:])
async def test_deleted_session_goes_on_in_every_format(format: str) -> None:
    memory = MemoryStore()
    with ProviderServer(task, window=WINDOW) as server:
        async with harbour(lambda: memory, server) as (running, admin):
            client = ClientConversation(running.model(format))
            client.say("Read all berths in order.")
            await steps(client, 1, 9)
            await admin.delete((await admin.list())[0].id)
            assert await steps(client, 10, 14) == "Reading berth 14."
            assert server.refused == [] and server.overflowed == 0 and "failed" not in outcomes(running)


async def test_session_that_another_replica_created_again_is_not_taken_for_the_old_one(open_log: OpenLog) -> None:
    """The other replica knows a shorter list: what is missing from the new log is appended, not skipped."""
    with ProviderServer(task, window=10 * WINDOW) as server:
        one, other_one = (harbour(open_log, server, 10 * WINDOW) for _ in range(2))
        async with one as (first, admin), other_one as (second, _):
            client = ClientConversation(first.model("openai-chat"))
            client.say("Read all berths in order.")
            await steps(client, 1, 6)
            other = ClientConversation(second.model("openai-chat"))
            other.messages = client.messages[:5]
            [record] = await admin.list()
            await admin.context(record.id)
            await admin.delete(record.id)
            await other.step(["done"] * bool(other.messages[-1].get("tool_calls")))
            await steps(client, 7, 8)
            sent = len(client.messages) - 2  # the last reply and its result come with the next request
            logs = {log.id: await admin.events(log.id, kind="message") for log in await admin.list()}
            whole = [[event.body["message"].get("content") for event in log] for log in logs.values()]
            assert max(map(len, whole)) == sent
            assert [message.get("content") for message in client.messages[:sent]] in whole
            for id in logs:
                assert await admin.verify(id) == [] == await first.sessions.verify(id)
                assert await admin.context(id) == await first.sessions.context(id)


@pytest.mark.sampled(2)
async def test_what_was_redacted_is_not_sent_again_although_the_client_sends_it(open_log: OpenLog) -> None:
    """Before a compaction and after it, from a fork, from a second gateway, and with a request for a title."""
    with ProviderServer(task, window=WINDOW) as server:
        async with harbour(open_log, server) as (running, admin):
            client = ClientConversation(running.model("openai-chat"))
            client.say(f"Read all berths in order; the password is {SECRET}.")
            await steps(client, 1, 2)
            assert SECRET in json.dumps(server.requests[-1].body)
            [record] = await admin.list()
            assert (await admin.redact_text(record.id, SECRET)).events >= 1
            asked = len(server.requests)
            await steps(client, 3, 4)
            assert outcomes(running)["redacted"] == 2
            edited = ClientConversation(running.model("openai-chat"))
            edited.messages = client.messages[:3]
            edited.say("Stop. Which berth was that?")
            await edited.step()
            title: list[Any] = [{"role": "system", "content": "Name the conversation."}, *client.messages]
            create: Any = running.openai().chat.completions.create
            title.append({"role": "user", "content": "In three words."})
            assert [chunk async for chunk in await create(model="harbor", messages=title, stream=True)]
            await steps(client, 5, 10)
            await undo(admin, record.id)
            await steps(client, 11, 11)
            async with harbour(open_log, server) as (later, _):
                edited.model = client.model = later.model("openai-chat")
                edited.say("And the next one?")
                await edited.step()
                await steps(client, 12, 13)
            assert await compactions(admin) >= 1 and server.refused == []
            assert SECRET in json.dumps(client.messages) and SECRET in json.dumps(edited.messages)
            assert all(SECRET not in json.dumps(request.body) for request in server.requests[asked:])


async def test_redacted_message_is_not_sent_again(open_log: OpenLog) -> None:
    with ProviderServer(task, window=WINDOW) as server:
        async with harbour(open_log, server) as (running, admin):
            client = ClientConversation(running.model("anthropic"))
            client.say(f"Read all berths in order; the password is {SECRET}.")
            await steps(client, 1, 3)
            [record] = await admin.list()
            await admin.redact(record.id, (await admin.events(record.id, kind="message"))[0].id)
            asked = len(server.requests)
            await steps(client, 4, 10)
            assert all(SECRET not in json.dumps(request.body) for request in server.requests[asked:])
            assert server.refused == [] and server.overflowed == 0 and await compactions(admin) >= 1


async def test_item_of_a_redacted_or_deleted_session_continues_the_conversation(open_log: OpenLog) -> None:
    with ProviderServer("Aye.", window=WINDOW) as server:
        async with harbour(open_log, server) as (running, admin):
            client = running.openai()
            given: list[Any] = [{"role": "user", "content": f"Berth {n} is free; say {SECRET}."} for n in range(20)]
            compacted = await client.responses.compact(model="harbor", input=given)
            item = compacted.output[-1].model_dump(exclude_none=True)
            asked: list[Any] = [item, {"role": "user", "content": "Which berths are free?"}]
            reply = await client.responses.create(model="harbor", input=asked)
            [record] = await admin.list()
            await admin.redact_text(record.id, SECRET)
            before = len(server.requests)
            reply = await client.responses.create(model="harbor", input=asked)
            asked += [*reply.model_dump(exclude_none=True)["output"], {"role": "user", "content": "Since when?"}]
            await client.responses.create(model="harbor", input=asked)
            assert all(SECRET not in json.dumps(request.body) for request in server.requests[before:])
            for one in await admin.list():
                await admin.delete(one.id)
            for _ in range(2):
                reply = await client.responses.create(model="harbor", input=asked)
                asked += [*reply.model_dump(exclude_none=True)["output"], {"role": "user", "content": "And today?"}]
            assert "failed" not in outcomes(running) and server.refused == []
            [record] = await admin.list()
            assert len(await admin.events(record.id, kind="message")) >= 4


@pytest.mark.sampled(2)
async def test_compaction_restore_and_undo_of_others_are_in_the_next_request(open_log: OpenLog) -> None:
    with ProviderServer(task, window=WINDOW) as server:
        async with harbour(open_log, server) as (running, admin):
            client = ClientConversation(running.model("openai-chat"))
            client.say("Read all berths in order.")
            await steps(client, 1, 6)
            [record] = await admin.list()
            await admin.compact(record.id, always, KeepLedger(500))
            [archived] = [one for one in await admin.events(record.id, kind="message") if "berth-002" in str(one.body)]
            await admin.restore_after_results(record.id, archived.id)
            await steps(client, 7, 8)
            sent = json.dumps(server.requests[-1].body)
            assert "Restored from earlier" in sent and "[cut: " in sent
            await undo(admin, record.id)
            await steps(client, 9, 9)
            await steps(client, 10, 12)
            assert server.refused == [] and "failed" not in outcomes(running)
            assert await admin.verify(record.id) == []


async def test_reply_that_is_asked_for_again_at_another_replica_is_a_fork() -> None:
    """The second replica knows only the beginning of the log: what the first appended since is not passed over."""
    memory = MemoryStore()
    with ProviderServer(lambda request: f"Reply {request.number}.") as server:
        async with harbour(lambda: memory, server) as (first, admin), harbour(lambda: memory, server) as (second, _):
            client = ClientConversation(second.model("openai-chat"))
            for text in ("One", "Two"):
                client.say(text)
                await client.step()
            again = client.messages[:-1]
            client.model = first.model("openai-chat")
            client.say("Three")
            await client.step()
            client.messages, client.model = again, second.model("openai-chat")
            await client.step()
            client.say("Four")
            await client.step()
            logs = [await admin.events(record.id, kind="message") for record in await admin.list()]
            texts = sorted([[event.body["message"]["content"] for event in log] for log in logs])
            start = ["One", "Reply 0.", "Two"]
            assert texts == [[*start, "Reply 1.", "Three"], [*start, "Reply 3.", "Four"]]


async def test_fork_that_another_replica_made_of_a_redacted_session_is_sent_from_the_log() -> None:
    memory = MemoryStore()
    with ProviderServer("Aye.") as server:
        async with harbour(lambda: memory, server) as (first, admin), harbour(lambda: memory, server) as (second, _):
            client = ClientConversation(first.model("openai-chat"))
            client.say(f"The password is {SECRET}.")
            await client.step()
            edited = list(client.messages)
            for model in (first, second):
                client.model = model.model("openai-chat")
                client.say("Which berth is free?")
                await client.step()
            await admin.redact_text((await admin.list())[0].id, SECRET)
            client.messages = edited
            for model in (first, second):
                client.model = model.model("openai-chat")
                client.say("And the other one?")
                await client.step()
                assert SECRET not in json.dumps(server.requests[-1].body)
            assert len(await admin.list()) == 2


@pytest.mark.parametrize("kind", ["recall", "overflow"])
async def test_session_deleted_during_a_request_is_no_failure_of_the_gateway(kind: str) -> None:
    """While the model looks something up, and while the upstream refuses the request as too long."""
    memory = MemoryStore()
    admin = SessionService(memory)
    deleted: list[str] = []

    def delete_then_answer(request: Any) -> Any:
        if len(server.requests) in (9, 11):
            deleted.extend(memory._sessions)
            for id in list(memory._sessions):
                del memory._sessions[id]
        return task(request)

    with ProviderServer(delete_then_answer, window=WINDOW) as server:
        more = {"recall": True} if kind == "recall" else {}
        async with harbour(lambda: memory, server, **more) as (running, _):
            if kind == "overflow":
                running.sessions.window = 4 * WINDOW
            client = ClientConversation(running.model("openai-chat"))
            client.say("Read all berths in order.")
            assert await steps(client, 1, 14) == "Reading berth 14."
            assert deleted and server.refused == [] and "failed" not in outcomes(running)
    await admin.close()
