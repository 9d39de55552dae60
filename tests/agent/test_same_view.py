"""However a session is come by, the model is shown the same (behaviour 13): resumed, forked, rolled back."""

from __future__ import annotations

from pathlib import Path

import pytest
from loops import asks, finds, reads, worked

from holdfast import JSONLStore, SessionService, SQLiteStore
from holdfast.agent import Keeper
from holdfast.stores import Log

pytestmark = pytest.mark.anyio


def store(kind: str, folder: Path) -> Log:
    return SQLiteStore(str(folder / "s.db")) if kind == "sqlite" else JSONLStore(str(folder / "s"))


async def long_work(sessions: SessionService) -> tuple[Keeper, dict[str, list[object]]]:
    """A session with several compactions, and the context right after each of its messages."""
    record = await sessions.create()
    keeper = Keeper(sessions, record.id, window=8_000)
    views: dict[str, list[object]] = {}
    await sessions.append(record.id, asks())
    for number in range(45):
        await keeper.prepare_step()
        for message in (reads(number), finds(number)):
            (event,) = await sessions.append(record.id, message)
            views[event.id] = list(await sessions.context(record.id))
    return keeper, views


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
async def test_resumed_it_is_what_it_was(kind: str, tmp_path: Path) -> None:
    async with SessionService(store(kind, tmp_path)) as sessions:
        keeper, _ = await long_work(sessions)
        before = list(await keeper.prepare_step())
    async with SessionService(store(kind, tmp_path)) as again:
        resumed = Keeper(again, keeper.session_id, window=8_000)
        assert list(await resumed.prepare_step()) == before


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
async def test_forked_anywhere_it_is_what_it_was_there(kind: str, tmp_path: Path) -> None:
    async with SessionService(store(kind, tmp_path)) as sessions:
        keeper, views = await long_work(sessions)
        assert len(await sessions.events(keeper.session_id, kind="compaction")) >= 2
        for event, view in list(views.items())[::11]:
            fork = await sessions.fork(keeper.session_id, event)
            assert list(await sessions.context(fork.id)) == view
            await Keeper(sessions, fork.id, window=8_000).prepare_step()
            await sessions.append(fork.id, [asks("And then?"), *worked(8, 100)])
            assert not await sessions.verify(fork.id), "its own compactions name events that it has"
        assert not await sessions.verify(keeper.session_id)


async def test_rolled_back_over_its_summary_it_is_what_it_was_before(tmp_path: Path) -> None:
    async with SessionService(SQLiteStore(str(tmp_path / "s.db"))) as sessions:
        record = await sessions.create()
        await sessions.append(record.id, [asks(), *worked(20)])
        before = list(await sessions.context(record.id))
        keeper = Keeper(sessions, record.id, window=8_000, listen=None)
        await keeper.compact()
        assert list(await sessions.context(record.id)) != before
        await sessions.undo(record.id)
        assert list(await sessions.context(record.id)) == before
        assert list(await keeper.prepare_step()) == before, "what a person undid is not done again at once"
