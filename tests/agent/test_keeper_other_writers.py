"""The store is other people's, too: what they delete, redact, undo and restore while a keeper runs.

The conversation continues from the list that the program passes, nothing invalid is sent, and compaction resumes. What
was redacted is not in the context any more, although the program still has it in its list.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import JSONLStore, Keeper, MemoryStore, SessionService, SQLiteStore, check
from holdfast.context.events import new_id
from holdfast.errors import UnknownSession
from holdfast.models.calls import Failure
from holdfast.sessions.origin import listed_events
from holdfast.stores import Log, PostgresStore
from holdfast.strategies import KeepLedger
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
WINDOW = 3_000
SECRET = "kelp-4711-harbour-password"
OpenLog = Callable[[], Log]


@pytest.fixture(params=["memory", "sqlite", "jsonl", "postgres"])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> OpenLog:
    """Opens the store as another process would: a connection of its own, but for the store in memory."""
    kind = request.param
    if kind == "memory":
        memory = MemoryStore()
        return lambda: memory
    if kind == "postgres":
        url, tenant = request.getfixturevalue("postgres"), f"keeper-{new_id()}"
        return lambda: PostgresStore(url, tenant=tenant)
    if kind == "sqlite":
        return lambda: SQLiteStore(tmp_path / "sessions.db")
    return lambda: JSONLStore(tmp_path / "sessions")


class Program:
    """A loop that keeps its own list and passes it whole, with the harbour's next berth as its next step."""

    def __init__(self, keeper: Keeper, first: str = "Read all berths in order.") -> None:
        self.keeper = keeper
        self.messages: list[Any] = [{"role": "user", "content": first}]
        self.berth = 0
        self.compacted: list[bool] = []
        self.undone = False
        """Whether a compaction was undone: then none is made until the user writes."""

    async def step(self) -> list[Any]:
        """Returns what the model is sent; the reply calls a tool, whose result the next list has."""
        context = await self.keeper.prepare_step(self.messages)
        sent = list(context)
        assert check(sent, "openai-chat") == []
        assert context.tokens <= WINDOW or self.undone
        self.compacted.append(context.is_compacted)
        self.berth += 1
        call = {"id": f"call_{self.berth}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        reply = {"role": "assistant", "content": f"Reading berth {self.berth}.", "tool_calls": [call]}
        await self.keeper.on_step_finish(reply, {"input": context.tokens, "output": 20})
        self.messages += [
            reply,
            {
                "role": "tool",
                "tool_call_id": f"call_{self.berth}",
                "content": f"berth-{self.berth:03} is free. " + f"The depth is {self.berth * 7} feet. " * 40,
            },
        ]
        return sent

    async def steps(self, count: int) -> str:
        return "".join([str(await self.step()) for _ in range(count)])


async def close(*services: SessionService) -> None:
    for service in services:
        await service.close()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stored", [True, False], ids=["session", "list"])
async def test_list_of_a_deleted_session_goes_on_and_is_compacted_again(open_log: OpenLog, *, stored: bool) -> None:
    sessions, admin = SessionService(open_log()), SessionService(open_log())
    prompt = "You keep the harbour's files."
    if stored:
        await sessions.create(id="s", system=prompt, format="openai-chat", owner="ann")
        keeper = Keeper(sessions, "s", window=WINDOW, preset="holdfast")
    else:
        keeper = Keeper(sessions, window=WINDOW, preset="holdfast", system=prompt)
    program = Program(keeper)
    await program.steps(14)
    assert any(program.compacted)
    for _ in range(2):
        first = keeper.session_id
        await admin.delete(first)
        await program.steps(1)
        assert (keeper.session_id == first) is stored
    program.compacted.clear()
    await program.steps(10)
    assert any(program.compacted)
    record = await admin.get(keeper.session_id)
    assert record.system == prompt and record.owner == ("ann" if stored else None)
    assert (await sessions.size(record.id)).window == WINDOW
    logged = await listed_events(admin, record.id)
    assert len(logged) == len(program.messages) - 2  # the last reply and its result come with the next list
    assert await admin.verify(record.id) == [] and await admin.context(record.id) == await sessions.context(record.id)
    await close(sessions, admin)


async def test_session_that_never_was_there_is_an_error() -> None:
    keeper = Keeper(SessionService(MemoryStore()), "nowhere", window=WINDOW)
    with pytest.raises(UnknownSession):
        await keeper.prepare_step([{"role": "user", "content": "Ahoy."}])


async def test_overflow_after_the_session_was_deleted_is_not_recovered_and_the_next_step_is(open_log: OpenLog) -> None:
    sessions, admin = SessionService(open_log()), SessionService(open_log())
    await sessions.create(id="s", format="openai-chat")
    program = Program(Keeper(sessions, "s", window=WINDOW, preset="holdfast"))
    await program.steps(3)
    await admin.delete("s")
    recovery = await program.keeper.on_overflow(Failure("overflow", "too long"))
    assert not recovery.retry and "deleted" in recovery.why
    await program.steps(2)
    await close(sessions, admin)


@pytest.mark.parametrize("continues", ["own list", "context"])
async def test_what_was_redacted_is_in_no_context_although_it_is_in_the_list(open_log: OpenLog, continues: str) -> None:
    """Before a compaction and after it, from the program's own list or the last context, and after an edit."""
    sessions, admin = SessionService(open_log()), SessionService(open_log())
    await sessions.create(id="s", format="openai-chat")
    program = Program(Keeper(sessions, "s", window=WINDOW, preset="holdfast"), f"The password is {SECRET}.")
    assert SECRET in await program.steps(2)
    await admin.redact_text("s", SECRET)
    if continues == "context":
        context = await program.keeper.prepare_step(program.messages)
        assert SECRET not in str(list(context))
        program.messages = list(context)
    assert SECRET not in await program.steps(2)
    assert program.keeper.session_id == "s"
    program.messages = [*program.messages[:5], {"role": "user", "content": "Stop: again from here."}]
    assert SECRET not in await program.steps(12)
    assert any(program.compacted)
    assert (SECRET in str(program.messages)) is (continues == "own list")
    for record in await admin.list():
        assert SECRET not in str(await admin.export(record.id)) and await admin.verify(record.id) == []
    await close(sessions, admin)


async def test_compaction_restore_and_undo_of_others_are_in_the_next_context(open_log: OpenLog) -> None:
    sessions, admin = SessionService(open_log()), SessionService(open_log())
    await sessions.create(id="s", format="openai-chat")
    program = Program(Keeper(sessions, "s", window=WINDOW, preset="holdfast"))
    await program.steps(5)
    await admin.compact("s", always, KeepLedger(300))
    [archived] = [one for one in await admin.events("s", kind="message") if "berth-001" in str(one.body)]
    await admin.restore("s", archived.id)
    assert "Restored from earlier" in str(await program.step())
    await admin.undo("s", after=(await admin.get("s")).version)
    program.undone = True
    await program.steps(3)
    assert await admin.verify("s") == [] and await admin.context("s") == await sessions.context("s")
    await close(sessions, admin)


@pytest.mark.parametrize("redacts", [False, True], ids=["compaction", "redaction"])
async def test_program_that_continues_from_an_earlier_context_stays_in_its_session(*, redacts: bool) -> None:
    """Its next list begins with that context, not with the one that was returned last."""
    sessions = SessionService(MemoryStore())
    await sessions.create(id="s", format="openai-chat")
    program = Program(Keeper(sessions, "s", window=WINDOW, preset="holdfast"), f"The password is {SECRET}.")
    await program.steps(6)
    assert not redacts or SECRET in str(program.messages)
    while not program.compacted[-1]:
        await program.step()
    program.messages = list(await program.keeper.prepare_step(program.messages))
    if redacts:
        await sessions.redact_text("s", SECRET)
    for _ in range(3):
        sent = str(await program.step())
        assert not (redacts and SECRET in sent)
    await sessions.compact("s", always, KeepLedger(300))
    await program.steps(12)
    assert program.keeper.session_id == "s" and [record.id for record in await sessions.list()] == ["s"]
