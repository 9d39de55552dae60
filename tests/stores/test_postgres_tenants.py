"""A store of one tenant reaches nothing of another's, by whatever function it is asked."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from holdfast.errors import InvalidInput, UnknownSession
from holdfast.events import LaneTip
from holdfast.stores import PostgresStore, Slice, Where, open_store
from holdfast.stores.postgres.statements import blocks
from holdfast.stores.postgres.upgrading import upgrade
from stores.logs import EVERYTHING, begin, compaction, fork, ids, message, record
from stores.test_store_conformance import settle

pytestmark = pytest.mark.anyio
FAR_AHEAD = datetime.now().astimezone() + timedelta(days=365_000)


@pytest.fixture
async def acme(postgres: str, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(postgres, tenant=f"acme {tmp_path}") as opened:
        await begin(opened, "e1", "e2", owner="ann")
        await opened.append("s", [message("secret", "the secret word")], media={"d": "data"})
        await fork(opened, "s", 2, "f")
        await opened.take("s", "ann", 60)
        yield opened


@pytest.fixture
async def other(acme: PostgresStore, postgres: str, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(postgres, tenant=f"other {tmp_path}") as opened:
        yield opened


CALLS: dict[str, tuple[Callable[[PostgresStore], Awaitable[Any]], Any]] = {
    "create": (lambda store: fork(store, "s", 1, "mine"), UnknownSession),
    "append": (lambda store: store.append("s", [message("e9")]), UnknownSession),
    "session": (lambda store: store.session("s"), UnknownSession),
    "sessions": (lambda store: store.sessions(owner="ann"), []),
    "read": (lambda store: store.read("f", Slice(any_lane=True, ids=("e1",))), UnknownSession),
    "media": (lambda store: store.media("s", ["d"]), UnknownSession),
    "rewrite": (lambda store: store.rewrite("s", [message("secret", "gone")], ["d"]), UnknownSession),
    "delete": (lambda store: store.delete("s"), UnknownSession),
    "expire": (lambda store: store.expire(FAR_AHEAD), []),
    "problems": (lambda store: store.problems("s"), UnknownSession),
    "search": (lambda store: store.search("secret"), []),
    "ids": (lambda store: store.ids("s", "e", 5), UnknownSession),
    "take": (lambda store: store.take("s", "me", 60), UnknownSession),
    "release": (lambda store: store.release("s", "ann"), None),
    "held": (lambda store: store.held("s"), None),
    "changed": (lambda store: store.changed("s", 60), None),
}


def test_every_function_is_asked() -> None:
    public = {name for name, _ in inspect.getmembers(PostgresStore, inspect.isfunction) if not name.startswith("_")}
    assert set(CALLS) == public - {"close"}


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("name", CALLS)
async def test_it_finds_nothing_and_changes_nothing(
    acme: PostgresStore, other: PostgresStore, name: str, indexed: bool
) -> None:
    if indexed:
        await settle(acme)
    call, expected = CALLS[name]
    if isinstance(expected, type):
        with pytest.raises(expected):
            await call(other)
    else:
        assert await call(other) == expected
    await settle(other)
    assert await ids(acme) == ["e1", "e2", "secret"]
    assert await ids(acme, "f") == ["e1", "e2"]
    assert await acme.media("s", ["d"]) == {"d": "data"}
    assert await acme.held("s") is not None
    assert [hit.event.id for hit in await acme.search("secret word")] == ["secret"]


async def test_a_search_in_a_strangers_session_is_an_error(acme: PostgresStore, other: PostgresStore) -> None:
    with pytest.raises(UnknownSession):
        await other.search("secret", session_id="s")
    assert await other.search("secret", owner="ann", where=Where(roles=("user",))) == []


async def test_the_same_names_are_two_sessions(acme: PostgresStore, other: PostgresStore) -> None:
    await begin(other, "e1", owner="ann")
    await other.append("s", [compaction("c1")], tip=LaneTip(epoch="c1", start=1))
    await other.append("s", [message("secret", "another secret")])
    assert await ids(other) == ["e1", "c1", "secret"]
    assert (await acme.session("s")).lanes == {}
    for settled in (False, True):
        if settled:
            await settle(acme)
            await settle(other)
        assert [hit.event.body for hit in await other.search("secret")] == [message("", "another secret").body]
    assert await other.take("s", "me", 60), "a flag is of one of them"
    await other.delete("s")
    assert await ids(acme) == ["e1", "e2", "secret"]


@pytest.mark.parametrize("tenant", ["", "'; DROP SCHEMA holdfast CASCADE; --", "a\0b", "日本", "%"])
async def test_a_tenant_may_be_called_anything(postgres: str, tenant: str, tmp_path: Path) -> None:
    one, two = (PostgresStore(postgres, tenant=name) for name in (f"{tenant}{tmp_path}", f"{tmp_path}{tenant}!"))
    async with one, two:
        await one.create(record("s"))
        assert [each.id for each in await one.sessions()] == ["s"]
        assert await two.sessions() == []
        assert await one.read("s", EVERYTHING) == []


async def test_an_address_may_name_the_tenant(postgres: str, tmp_path: Path) -> None:
    """So that every command reaches a tenant's sessions; the word of a program counts for more."""
    asked = "&" if "?" in postgres else "?"
    named = f"{postgres}{asked}tenant={quote(str(tmp_path), safe='')}"
    async with open_store(named) as one, PostgresStore(postgres, tenant=str(tmp_path)) as same:
        await one.create(record("s"))
        assert [each.id for each in await same.sessions()] == ["s"]
    async with PostgresStore(named, tenant="another") as other:
        assert "s" not in [each.id for each in await other.sessions()]
    assert (await upgrade(named, check=True)).migrations == ()


def test_an_address_names_one_tenant() -> None:
    with pytest.raises(InvalidInput, match="several tenants"):
        open_store("postgresql:///agents?tenant=a&tenant=b")


def test_what_is_not_unicode_is_no_tenant() -> None:
    with pytest.raises(InvalidInput):
        PostgresStore("postgresql:///agents", tenant="\ud800")


ABOUT_ROWS_ALONE = {"beside", "plainly", "rows", "last_row", "add", "span", "blocks", "edge"}
"""Statements that see numbers, words and times, and no session; what they point at is looked up with the tenant."""


def test_every_statement_takes_the_tenant_first() -> None:
    for file in ("reads.sql", "writes.sql", "search.sql", "leases.sql"):
        for name, statement in blocks(file).items():
            if name not in ABOUT_ROWS_ALONE or file != "search.sql":
                taken = "tenant = $1" in statement or "_1($1, $2" in statement.replace("\n    ", "")
                assert taken or name == "alone", f"{file}: {name}"
