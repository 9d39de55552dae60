"""A resumed, forked or undone session gives the model the same context (behaviour 13)."""

from __future__ import annotations

from pathlib import Path

import pytest
from keeper_conversations import tool_call, tool_result, tool_steps, user_message

from holdfast import JSONLStore, SessionService, SQLiteStore
from holdfast.agent import Keeper
from holdfast.stores import Log

pytestmark = pytest.mark.anyio


def store(kind: str, folder: Path) -> Log:
    return SQLiteStore(str(folder / "s.db")) if kind == "sqlite" else JSONLStore(str(folder / "s"))


async def make_long_session(sessions: SessionService) -> tuple[Keeper, dict[str, list[object]]]:
    """Returns a session with several compactions, and the context after each of its messages."""
    record = await sessions.create()
    keeper = Keeper(sessions, record.id, window=8_000)
    views: dict[str, list[object]] = {}
    await sessions.append(record.id, user_message())
    for number in range(45):
        await keeper.prepare_step()
        for message in (tool_call(number), tool_result(number)):
            (event,) = await sessions.append(record.id, message)
            views[event.id] = list(await sessions.context(record.id))
    return keeper, views


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
async def test_resumed_session_has_the_same_context(kind: str, tmp_path: Path) -> None:
    async with SessionService(store(kind, tmp_path)) as sessions:
        keeper, _ = await make_long_session(sessions)
        before = list(await keeper.prepare_step())
    async with SessionService(store(kind, tmp_path)) as again:
        resumed = Keeper(again, keeper.session_id, window=8_000)
        assert list(await resumed.prepare_step()) == before


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
async def test_forked_session_has_the_context_of_its_fork_point(kind: str, tmp_path: Path) -> None:
    async with SessionService(store(kind, tmp_path)) as sessions:
        keeper, views = await make_long_session(sessions)
        assert len(await sessions.events(keeper.session_id, kind="compaction")) >= 2
        for event, view in list(views.items())[::11]:
            fork = await sessions.fork(keeper.session_id, event)
            assert list(await sessions.context(fork.id)) == view
            await Keeper(sessions, fork.id, window=8_000).prepare_step()
            await sessions.append(fork.id, [user_message("And then?"), *tool_steps(8, 100)])
            assert not await sessions.verify(fork.id), "its compactions refer to its own events"
        assert not await sessions.verify(keeper.session_id)


async def test_undo_restores_the_context_before_the_summary(tmp_path: Path) -> None:
    async with SessionService(SQLiteStore(str(tmp_path / "s.db"))) as sessions:
        record = await sessions.create()
        await sessions.append(record.id, [user_message(), *tool_steps(20)])
        before = list(await sessions.context(record.id))
        keeper = Keeper(sessions, record.id, window=8_000, listen=None)
        await keeper.compact()
        assert list(await sessions.context(record.id)) != before
        await sessions.undo(record.id)
        assert list(await sessions.context(record.id)) == before
        assert list(await keeper.prepare_step()) == before, "what a person undid is not done again at once"
