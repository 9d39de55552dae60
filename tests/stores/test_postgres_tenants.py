"""Tenant isolation: no method of a store reaches another tenant's sessions."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from holdfast.context.events import LaneTip
from holdfast.errors import InvalidInput, UnknownSession
from holdfast.stores import PostgresStore, Slice, Where, open_store
from holdfast.stores.postgres.rows import load_statements
from holdfast.stores.postgres.schema import migrate_database
from stores.logs import EVERYTHING, begin, compaction, fork, ids, message, record, rewriting
from stores.test_store_conformance import fill_search_index

pytestmark = pytest.mark.anyio
FAR_AHEAD = datetime.now().astimezone() + timedelta(days=365_000)


@pytest.fixture
async def acme(postgres: str, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(postgres, tenant=f"acme {tmp_path}") as opened:
        await begin(opened, "e1", "e2", owner="ann")
        await opened.append("s", [message("secret", "the secret word")], media={"d": "data"})
        await fork(opened, "s", 2, "f")
        await opened.take("s", "compaction", "ann", 60)
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
    "forks": (lambda store: store.forks("s"), UnknownSession),
    "relatives": (lambda store: store.relatives("s"), UnknownSession),
    "erase": (lambda store: store.erase(), []),
    "rewrite": (lambda store: store.rewrite([rewriting("s", 1, message("secret", "gone"))]), UnknownSession),
    "delete": (lambda store: store.delete("s"), UnknownSession),
    "expire": (lambda store: store.expire(FAR_AHEAD), []),
    "problems": (lambda store: store.problems("s"), UnknownSession),
    "search": (lambda store: store.search("secret"), []),
    "ids": (lambda store: store.ids("s", "e", 5), UnknownSession),
    "take": (lambda store: store.take("s", "compaction", "me", 60), UnknownSession),
    "release": (lambda store: store.release("s", "compaction", "ann"), None),
    "held": (lambda store: store.held("s", "compaction"), None),
    "changed": (lambda store: store.changed("s", "compaction", 60), None),
}


def test_calls_cover_every_public_method() -> None:
    public = {name for name, _ in inspect.getmembers(PostgresStore, inspect.isfunction) if not name.startswith("_")}
    assert set(CALLS) == public - {"close"}


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("name", CALLS)
async def test_store_of_other_tenant_finds_and_changes_nothing(
    acme: PostgresStore, other: PostgresStore, name: str, indexed: bool
) -> None:
    if indexed:
        await fill_search_index(acme)
    call, expected = CALLS[name]
    if isinstance(expected, type):
        with pytest.raises(expected):
            await call(other)
    else:
        assert await call(other) == expected
    await fill_search_index(other)
    assert await ids(acme) == ["e1", "e2", "secret"]
    assert await ids(acme, "f") == ["e1", "e2"]
    assert await acme.media("s", ["d"]) == {"d": "data"}
    assert await acme.held("s", "compaction") is not None
    assert [hit.event.id for hit in await acme.search("secret word")] == ["secret"]


async def test_search_session_of_other_tenant_raises(acme: PostgresStore, other: PostgresStore) -> None:
    with pytest.raises(UnknownSession):
        await other.search("secret", session_id="s")
    assert await other.search("secret", owner="ann", where=Where(roles=("user",))) == []


async def test_same_session_id_in_two_tenants_is_separate(acme: PostgresStore, other: PostgresStore) -> None:
    await begin(other, "e1", owner="ann")
    await other.append("s", [compaction("c1")], tip=LaneTip(epoch="c1", start=1))
    await other.append("s", [message("secret", "another secret")])
    assert await ids(other) == ["e1", "c1", "secret"]
    assert (await acme.session("s")).lanes == {}
    for indexed in (False, True):
        if indexed:
            await fill_search_index(acme)
            await fill_search_index(other)
        assert [hit.event.body for hit in await other.search("secret")] == [message("", "another secret").body]
    assert await other.take("s", "compaction", "me", 60), "leases are per tenant"
    await other.delete("s")
    assert await ids(acme) == ["e1", "e2", "secret"]


@pytest.mark.parametrize("tenant", ["", "'; DROP SCHEMA holdfast CASCADE; --", "a\0b", "日本", "%"])
async def test_tenant_accepts_any_name(postgres: str, tenant: str, tmp_path: Path) -> None:
    one, two = (PostgresStore(postgres, tenant=name) for name in (f"{tenant}{tmp_path}", f"{tmp_path}{tenant}!"))
    async with one, two:
        await one.create(record("s"))
        assert [each.id for each in await one.sessions()] == ["s"]
        assert await two.sessions() == []
        assert await one.read("s", EVERYTHING) == []


async def test_address_tenant_is_used_unless_argument_given(postgres: str, tmp_path: Path) -> None:
    """Lets every command select a tenant; the `tenant` argument takes precedence."""
    separator = "&" if "?" in postgres else "?"
    named = f"{postgres}{separator}tenant={quote(str(tmp_path), safe='')}"
    async with open_store(named) as one, PostgresStore(postgres, tenant=str(tmp_path)) as same:
        await one.create(record("s"))
        assert [each.id for each in await same.sessions()] == ["s"]
    async with PostgresStore(named, tenant="another") as other:
        assert "s" not in [each.id for each in await other.sessions()]
    assert (await migrate_database(named, check=True)).migrations == ()


def test_address_with_two_tenants_raises() -> None:
    with pytest.raises(InvalidInput, match="several tenants"):
        open_store("postgresql:///agents?tenant=a&tenant=b")


def test_tenant_not_unicode_raises() -> None:
    with pytest.raises(InvalidInput):
        PostgresStore("postgresql:///agents", tenant="\ud800")


WITHOUT_TENANT = {"try_shared_lock", "plainly", "rows", "last_row", "add", "span", "blocks", "edge"}
"""Statements on index rows only; the events of these rows are read with the tenant."""


def test_statements_take_tenant_as_first_parameter() -> None:
    for file in ("reads.sql", "writes.sql", "search.sql", "leases.sql", "deletion.sql"):
        for name, statement in load_statements(file).items():
            if name not in WITHOUT_TENANT or file != "search.sql":
                taken = "tenant = $1" in statement.replace("chr(1) || 'x' || ", "") or "_1($1, $2" in statement.replace(
                    "\n    ", ""
                )
                assert taken or name in ("alone", "limit_waiting"), f"{file}: {name}"
