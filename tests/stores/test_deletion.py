"""Deletion in pieces: other writers go on, and it may be stopped after any step."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.context.events import Event
from holdfast.errors import StoreError, UnknownSession
from holdfast.io import files
from holdfast.stores import JSONLStore, PostgresStore, SQLiteStore
from holdfast.stores.jsonl import deletion as jsonl_deletion
from holdfast.stores.postgres import deletion as postgres_deletion
from holdfast.stores.sqlite import deletion as sqlite_deletion
from holdfast.stores.sqlite import index as sqlite_index
from holdfast.stores.sqlite import writer
from stores.conftest import IN_FILES, MAKERS, POSTGRES
from stores.logs import EVERYTHING, begin, fork, message, rewriting

pytestmark = pytest.mark.anyio


class Stopped(Exception):
    """Stands for a process that is killed, or a caller that is cancelled."""


@pytest.fixture(params=[*IN_FILES, POSTGRES])
def open_in(request: pytest.FixtureRequest) -> Callable[[Path], Any]:
    if request.param != POSTGRES:
        return MAKERS[request.param]
    url = request.getfixturevalue("postgres")
    return lambda folder: PostgresStore(url, tenant=str(folder))


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_deletion, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(sqlite_deletion, "_BATCH_EVENTS", 2)
    monkeypatch.setattr(postgres_deletion, "STEP_EVENTS", 2)
    monkeypatch.setattr(jsonl_deletion, "STEP_EVENTS", 2)
    monkeypatch.setattr(jsonl_deletion, "STEP_BYTES", 600)


def stop_after(store: Any, steps: int) -> None:
    """Lets the store do this many pieces of work, and no more."""
    holder, name = (store._writer, "run") if isinstance(store, SQLiteStore) else (store, "_run")
    real, left = getattr(holder, name), [steps]

    async def run(work: Any) -> Any:
        if left[0] == 0:
            raise Stopped
        left[0] -= 1
        return await real(work)

    setattr(holder, name, run)


async def build(store: Any) -> dict[str, list[Event]]:
    """A session with a lane and media; forks at three places, one of them within an append, one a fork of a fork."""
    await begin(store)
    await store.append("s", [message("e1")], media={"d": "data"})
    await store.append("s", [message("e2"), message("x3", lane="sub"), message("e4")])
    await store.append("s", [message("e5", "secret")], media={"late": "secret"})
    await fork(store, "s", 3, "f")
    await store.append("f", [message("f4")])
    await fork(store, "f", 4, "g")
    await store.append("g", [message("g5")])
    await fork(store, "s", 2, "h")
    return {name: await store.read(name, EVERYTHING) for name in "fgh"}


async def check(store: Any, forks: dict[str, list[Event]], parent: str | None) -> None:
    """The session is whole or not there at all, and its forks have lost nothing."""
    found = {record.id: record for record in await store.sessions()}
    assert set(found) == {*forks, *([parent] if parent else [])}
    for name, events in forks.items():
        assert await store.read(name, EVERYTHING) == events, name
        assert await store.problems(name) == [], name
        assert len(await store.search("says", session_id=name)) == len(events), name
        assert await store.media(name, ["d"]) == {"d": "data"}, name
    if "f" in forks:
        assert (found["f"].parent, found["f"].parent_seq) == ((parent, 3) if parent else (None, 0))
        assert (found["g"].parent, found["g"].parent_seq) == ("f", 4)
    if not parent:
        for call in (store.session, store.forks, store.problems):
            with pytest.raises(UnknownSession):
                await call("s")
        with pytest.raises(UnknownSession):
            await store.append("s", [message("e9")])
        with pytest.raises(UnknownSession):
            await fork(store, "s", 1, "z")
        assert [hit.session_id for hit in await store.search("secret")] == []


async def is_removed(store: Any) -> bool:
    """Whether nothing of a deleted session is left in the store."""
    if isinstance(store, JSONLStore):
        return not store._folder.has_hidden() and not any(
            name.endswith(".copy") for name in os.listdir(store._folder.path)
        )
    if isinstance(store, PostgresStore):
        return not await PostgresStore._run(
            store, lambda c, _: c.fetchval(postgres_deletion._SQL["any_hidden"], store._tenant)
        )
    with sqlite3.connect(store._path) as connection:
        return not sqlite_deletion.has_hidden(connection)


@asynccontextmanager
async def stopped_deletion(reopen: Callable[[], Any], steps: int) -> AsyncIterator[tuple[Any, dict[str, list[Event]]]]:
    store = reopen()
    forks = await build(store)
    other = reopen()
    stop_after(other, steps)
    try:
        with suppress(Stopped):
            await other.delete("s")
            forks["done"] = []
        yield store, forks
    finally:
        await other.close()
        await store.close()


async def test_deletion_stopped_after_any_step(
    open_in: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(writer, "IDLE_SECONDS", 60)
    for steps in range(100):
        (tmp_path / str(steps)).mkdir()
        async with stopped_deletion(partial(open_in, tmp_path / str(steps)), steps) as (store, forks):
            done = forks.pop("done", None) is not None
            await check(store, forks, "s" if steps == 0 else None)
            await store.append("g", [message("g6")])
            forks["g"] = await store.read("g", EVERYTHING)
            if steps % 3 == 1:
                await store.delete("f")
                del forks["f"]
            with suppress(UnknownSession):
                await store.delete("s")
            found = {record.id: record for record in await store.sessions()}
            assert found["g"].parent == ("f" if "f" in forks else None)
            for name, events in forks.items():
                assert await store.read(name, EVERYTHING) == events, (steps, name)
                assert await store.problems(name) == [], (steps, name)
                assert len(await store.search("says", session_id=name)) == len(events), (steps, name)
            assert done or await is_removed(store)
        if done:
            break
    assert 5 < steps < 99


async def test_next_opening_completes_a_deletion(open_in: Callable[[Path], Any], tmp_path: Path) -> None:
    async with stopped_deletion(partial(open_in, tmp_path), 3):
        pass
    async with open_in(tmp_path) as store:
        await store.append("g", [message("g6")])
        with anyio.fail_after(20):
            while not await is_removed(store):  # noqa: ASYNC110 - another thread or task does it
                await anyio.sleep(0.01)
        assert [event.id for event in await store.read("g", EVERYTHING)] == ["e1", "e2", "x3", "f4", "g5", "g6"]
        assert {record.id for record in await store.sessions()} == {"f", "g", "h"}


@asynccontextmanager
async def full_disk(store: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A disk that has room for hiding a session, and not for copying its events to its forks."""
    if isinstance(store, SQLiteStore):
        pages = await store._writer.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        await store._writer.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())
        yield
        await store._writer.run(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())
        return

    def refuse(file: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "sync_file", refuse)
        yield


@pytest.mark.parametrize("kind", IN_FILES)
async def test_deletion_on_a_full_disk_says_what_it_has_done(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The session is gone, its forks have lost nothing, and the rest is removed once there is room."""
    monkeypatch.setattr(writer, "IDLE_SECONDS", 60)
    async with MAKERS[kind](tmp_path) as store:
        forks = await build(store)
        await store.append("s", [message("late", "x" * 20_000)])
        await fork(store, "s", 6, "late")
        forks["late"] = await store.read("late", EVERYTHING)
        async with full_disk(store, monkeypatch):
            with pytest.raises(StoreError, match=r"'s' is deleted, but .* no room left") as raised:
                await store.delete("s")
            assert "nothing was written" not in str(raised.value)
            assert set(forks) == {record.id for record in await store.sessions()}
            for name, events in forks.items():
                assert await store.read(name, EVERYTHING) == events
        await store.delete("s")
        assert await is_removed(store)
        for name, events in forks.items():
            assert await store.read(name, EVERYTHING) == events
            assert await store.problems(name) == []


async def test_redaction_and_the_same_id_wait_for_the_deletion(open_in: Callable[[Path], Any], tmp_path: Path) -> None:
    async with stopped_deletion(partial(open_in, tmp_path), 2) as (store, _):
        found = {record.id: record.version for record in await store.sessions()}
        change = rewriting("h", found["h"], message("e1", "gone"))
        assert not await store.rewrite([change]), "another session has a copy of e1"
        assert [record.id for record in await store.relatives("h")] == ["f"]
        assert await store.rewrite([change, rewriting("f", found["f"]), rewriting("g", found["g"])])
        assert (await store.read("h", EVERYTHING))[0].body["message"]["content"] == "gone"
        assert (await store.read("f", EVERYTHING))[0].body["message"]["content"] == "says e1", "a copy of its own"
        await begin(store, "new")
        assert [event.id for event in await store.read("s", EVERYTHING)] == ["new"]
        assert [event.id for event in await store.read("f", EVERYTHING)] == ["e1", "e2", "x3", "f4", "r4"]
        assert await store.media("s", ["d", "late"]) == {}


async def test_appends_during_a_deletion(open_in: Callable[[Path], Any], tmp_path: Path) -> None:
    """Another session and a fork are appended to between the steps, by another process's store and by this one."""
    async with open_in(tmp_path) as store, open_in(tmp_path) as second:
        await begin(store, *(f"e{n}" for n in range(40)))
        await fork(store, "s", 38, "f")
        await begin(store, session_id="other")
        deleted = anyio.Event()

        counts = {"f": 0, "other": 0}

        async def write(name: str, by: Any) -> None:
            while not deleted.is_set():
                counts[name] += 1
                await by.append(name, [message(f"{name}{counts[name]}")])

        async def delete() -> None:
            await store.delete("s")
            deleted.set()

        async with anyio.create_task_group() as group:
            for name in counts:
                for by in (store, second):
                    group.start_soon(write, name, by)
            group.start_soon(delete)
        for name, inherited in (("f", 38), ("other", 0)):
            assert len(await second.read(name, EVERYTHING)) == inherited + counts[name]
            assert await second.problems(name) == []
        assert await is_removed(store)


@pytest.mark.parametrize("kind", IN_FILES)
async def test_bytes_of_a_deleted_session_are_erased(kind: str, tmp_path: Path) -> None:
    """Events, media and the words of the search index, also those in the write-ahead log."""
    async with MAKERS[kind](tmp_path) as store:
        await begin(store, "kept", session_id="other")
        await begin(store, system="hunter22")
        for n in range(20):
            await store.append("s", [message(f"e{n}", f"hunter22 {n}")], media={f"d{n}": f"hunter22 {n}"})
        await fork(store, "s", 0, "f")
        if kind == "sqlite":
            await until(lambda: store._writer.run(sqlite_index.unindexed_rows), 0)
        assert files_with(tmp_path, b"hunter22")
        await store.delete("s")
        if kind == "sqlite":
            await until(lambda: store._writer.run(lambda c: sqlite_index._get_meta(c, "scrub")), 0)
        assert files_with(tmp_path, b"hunter22") == []
        assert len(await store.search("says")) == 1


def files_with(folder: Path, data: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and data in path.read_bytes()]


async def until(look: Callable[[], Awaitable[object]], wanted: object) -> None:
    with anyio.fail_after(20):
        while await look() != wanted:  # noqa: ASYNC110 - the writer's thread does it when it is idle
            await anyio.sleep(0.2)
