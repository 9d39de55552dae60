"""A session that was deleted under an open service: one that has its id again is another session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import JSONLStore, MemoryStore, SessionService, SQLiteStore
from holdfast.errors import UnknownSession
from holdfast.hooks import Hooks
from holdfast.stores import Log
from holdfast.strategies import KeepLedger
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
OLD, NEW = "The kelp of the old session.", "A new session."


@pytest.fixture(params=["memory", "sqlite", "jsonl"])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Log]:
    """Opens the store as another process would: a connection of its own, but for the store in memory."""
    memory = MemoryStore()
    stores: dict[str, Callable[[], Log]] = {
        "memory": lambda: memory,
        "sqlite": lambda: SQLiteStore(tmp_path / "sessions.db"),
        "jsonl": lambda: JSONLStore(tmp_path / "sessions"),
    }
    return stores[request.param]


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def replace(admin: SessionService, messages: list[str], id: str = "s") -> None:
    await admin.delete(id)
    await admin.create(id=id)
    for number, text in enumerate(messages):
        await admin.append(id, user(text), id=f"new-{number}")


@pytest.mark.parametrize("length", [1, 3, 6])
async def test_context_of_a_session_that_was_created_again_has_nothing_of_the_old_one(
    open_log: Callable[[], Log], length: int
) -> None:
    """Whether the new log is shorter than, as long as or longer than the old one."""
    ours, admin = SessionService(open_log()), SessionService(open_log())
    await ours.create(id="s")
    await ours.append("s", [user(f"{OLD} {number}") for number in range(3)])
    assert len(await ours.context("s")) == 3
    await replace(admin, [f"{NEW} {number}" for number in range(length)])
    assert await ours.context("s") == await admin.context("s")
    assert await ours.verify("s") == []
    await replace(admin, [f"{NEW} {number}" for number in range(length)])
    await ours.append("s", user("Appended without a look."))
    assert OLD not in str(await ours.context("s")) and len(await ours.context("s")) == length + 1
    assert await ours.context("s") == await admin.context("s")
    await admin.delete("s")
    for _ in range(2):
        with pytest.raises(UnknownSession):
            await ours.append("s", user("Nobody has it."))
        with pytest.raises(UnknownSession):
            await ours.context("s")
    await ours.create(id="s")
    await ours.append("s", user(NEW))
    assert [message["content"] for message in await ours.context("s")] == [NEW]
    for service in (ours, admin):
        await service.close()


async def test_compaction_of_a_deleted_session_is_not_committed_to_the_one_that_has_its_id(
    open_log: Callable[[], Log],
) -> None:
    ours, admin = SessionService(open_log()), SessionService(open_log())
    await ours.create(id="s")
    await ours.append("s", [user(f"{OLD} {number} " * 40) for number in range(20)])

    async def delete_meanwhile(_: object) -> None:
        await replace(admin, [f"{NEW} {number}" for number in range(20)])

    with pytest.raises(UnknownSession):
        await ours.compact("s", always, KeepLedger(200), "rebase", hooks=Hooks(before=delete_meanwhile))
    assert await admin.events("s", kind="compaction") == [] and await admin.verify("s") == []
    assert await ours.context("s") == await admin.context("s")
    for service in (ours, admin):
        await service.close()
