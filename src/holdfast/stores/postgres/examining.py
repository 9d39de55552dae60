"""What may be wrong with a database, looked at before it is needed: `holdfast doctor`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ...errors import HoldfastError
from ..finding import Finding
from .address import Address
from .migrating import COMMAND, migrations, standing
from .statements import blocks

OLDEST = 130_000
"""PostgreSQL 13, as the server numbers it."""
SECONDS = 10.0
LATE, FAR_OFF = 1.0, 60.0
"""Seconds that two clocks may differ before it is worth a word, and before flags of sessions stand far too long."""
FEW = 10
"""Connections that should be free: what one process opens, unless it was told otherwise."""
MANY = 10_000

_SQL = blocks("examining.sql")


async def examine(url: str) -> list[Finding]:
    """Everything that can be said of it; where it cannot be reached, that alone."""
    address = Address(url)
    try:
        connection = await address.connect(SECONDS)
    except HoldfastError as error:
        return [Finding("connection", "problem", str(error))]
    except Exception as error:
        return [Finding("connection", "problem", str(address.clear(error)))]
    found: list[Finding] = []
    try:
        found += await _of_the_server(connection, address)
        found += [finding async for finding in _tables(connection)]
    except Exception as error:
        found.append(Finding("tables" if found else "connection", "problem", str(address.clear(error))))
    finally:
        connection.terminate()
    return found


async def _of_the_server(connection: Any, address: Address) -> list[Finding]:
    await connection.fetchval(_SQL["clock"])  # the first time takes longer
    started, clock = time.monotonic(), time.time()
    there = await connection.fetchval(_SQL["clock"])
    took = time.monotonic() - started
    server = await connection.fetchrow(_SQL["server"])
    answers = Finding("connection", "ok", f"{address.public} answers in {took * 1000:.1f} ms")
    return [answers, *_server(server), _clock(there - clock - took / 2)]


def _server(server: Any) -> Iterator[Finding]:
    if server["version"] < OLDEST:
        yield Finding("version", "problem", f"PostgreSQL {server['said']}", "Upgrade it to 13 or newer.")
    else:
        yield Finding("version", "ok", f"PostgreSQL {server['said']}")
    if server["standby"]:
        yield Finding("role", "problem", "it is a standby, which can only be read", "Use the address of the primary.")
    if server["encoding"] == "UTF8" and server["plpgsql"]:
        yield Finding("database", "ok", f"UTF8, locale {server['locale']}, plpgsql; no other extension is needed")
    elif server["plpgsql"]:
        advice = "Create the database anew with ENCODING 'UTF8'."
        yield Finding(
            "database", "problem", f"its encoding is {server['encoding']}, which cannot hold all text", advice
        )
    else:
        yield Finding("database", "problem", "it has no plpgsql", "Run CREATE EXTENSION plpgsql in it.")
    yield _durable(server)
    if server["autovacuum"] == "off":
        yield Finding("vacuum", "warning", "autovacuum is off: tables will grow", "Set autovacuum = on.")
    free = server["most"] - server["used"]
    said = f"{free:,} of {server['most']:,} connections are free"
    advice = "Raise max_connections, open fewer in each process (most=…), or put a pooler in front."
    yield Finding("connections", "warning", said, advice) if free < FEW else Finding("connections", "ok", said)
    if server["in_the_clear"]:
        advice = "Add ?sslmode=require to the address, unless the network is yours alone."
        yield Finding("encryption", "warning", "what is said travels unencrypted", advice)


def _durable(server: Any) -> Finding:
    """Acknowledged means durable, if the server keeps its word."""
    for name, lost in (
        ("fsync", "a crash of the machine may destroy the database"),
        ("full_page_writes", "a crash of the machine may damage the database"),
        ("synchronous_commit", "a crash may take the last moments of what was acknowledged"),
    ):
        if server[name] == "off":
            return Finding("durability", "warning", f"{name} is off: {lost}", f"Set {name} = on.")
    return Finding("durability", "ok", f"fsync is on, synchronous_commit is {server['synchronous_commit']}")


def _clock(difference: float) -> Finding:
    said = f"the server's clock is {abs(difference):.1f} s {'ahead of' if difference > 0 else 'behind'} ours"
    advice = "Let both machines follow a time server: events carry the time of whoever appends them."
    if abs(difference) > LATE:
        return Finding("clock", "problem" if abs(difference) > FAR_OFF else "warning", said, advice)
    return Finding("clock", "ok", said)


async def _tables(connection: Any) -> AsyncIterator[Finding]:
    stands = await standing(connection)
    if stands.problem:
        yield Finding("migrations", "problem", f"the database {stands.problem}")
    elif stands.missing:
        said = f"the database is at schema {stands.applied}, and this Holdfast needs {len(migrations())}"
        yield Finding("migrations", "problem", said, f"Run {COMMAND} on it.")
    else:
        yield Finding("migrations", "ok", f"schema {stands.applied}")
    if not stands.applied:
        return
    if forbidden := [row[0] for row in await connection.fetch(_SQL["rights"])]:
        advice = (
            "Run GRANT USAGE ON SCHEMA holdfast TO …; "
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO …."
        )
        yield Finding("rights", "problem", f"this user may not use holdfast.{', holdfast.'.join(forbidden)}", advice)
        return
    yield Finding("rights", "ok", "this user may read and write every table")
    behind = await connection.fetchval(_SQL["behind"])
    said = f"{behind:,} sessions have events that it does not know yet"
    advice = "They are found all the same, but slowly: it is filled by every process that appends, once it is quiet."
    yield Finding("search index", "warning", said, advice) if behind >= MANY else Finding("search index", "ok", said)
