"""Checks of a PostgreSQL database for `holdfast doctor`: connection, server settings, clock, tables, rights."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ...errors import HoldfastError
from ..base import DoctorCheck
from .connections import PostgresAddress
from .rows import load_statements
from .schema import MIGRATE_COMMAND, load_migrations, schema_status

MIN_SERVER_VERSION = 130_000
"""PostgreSQL 13, as `server_version_num`."""
CHECK_TIMEOUT = 10.0
CLOCK_WARNING_SECONDS, CLOCK_PROBLEM_SECONDS = 1.0, 60.0
"""Clock difference in seconds that is a warning, and one that is a problem."""
MIN_FREE_CONNECTIONS = 10
"""Connections that should be free: the default maximum of one process."""
MAX_UNINDEXED_SESSIONS = 10_000
_DOCTOR_SQL = load_statements("examining.sql")


async def check_database(url: str) -> list[DoctorCheck]:
    """Runs all checks; returns only the connection check if the database cannot be reached."""
    address = PostgresAddress(url)
    try:
        connection = await address.connect(CHECK_TIMEOUT)
    except HoldfastError as error:
        return [DoctorCheck("connection", "problem", str(error))]
    except Exception as error:
        return [DoctorCheck("connection", "problem", str(address.translate(error)))]
    found: list[DoctorCheck] = []
    try:
        found += await _check_connection(connection, address)
        found += [check async for check in _check_tables(connection)]
    except Exception as error:
        found.append(DoctorCheck("tables" if found else "connection", "problem", str(address.translate(error))))
    finally:
        connection.terminate()
    return found


async def _check_connection(connection: Any, address: PostgresAddress) -> list[DoctorCheck]:
    await connection.fetchval(_DOCTOR_SQL["clock"])  # the first query takes longer
    started, clock = time.monotonic(), time.time()
    server_time = await connection.fetchval(_DOCTOR_SQL["clock"])
    took = time.monotonic() - started
    server = await connection.fetchrow(_DOCTOR_SQL["server"])
    answers = DoctorCheck("connection", "ok", f"{address.public} answers in {took * 1000:.1f} ms")
    return [answers, *_check_server(server), _check_clock(server_time - clock - took / 2)]


def _check_server(server: Any) -> Iterator[DoctorCheck]:
    if server["version"] < MIN_SERVER_VERSION:
        yield DoctorCheck("version", "problem", f"PostgreSQL {server['version_text']}", "Upgrade it to 13 or newer.")
    else:
        yield DoctorCheck("version", "ok", f"PostgreSQL {server['version_text']}")
    if server["standby"]:
        yield DoctorCheck("role", "problem", "the server is a read-only standby", "Use the address of the primary.")
    if server["encoding"] == "UTF8" and server["plpgsql"]:
        yield DoctorCheck("database", "ok", f"UTF8, locale {server['locale']}, plpgsql; no other extension is needed")
    elif server["plpgsql"]:
        advice = "Recreate the database with ENCODING 'UTF8'."
        yield DoctorCheck(
            "database", "problem", f"its encoding is {server['encoding']}, which cannot store all text", advice
        )
    else:
        yield DoctorCheck("database", "problem", "plpgsql is missing", "Run CREATE EXTENSION plpgsql in it.")
    yield _check_durability(server)
    if server["autovacuum"] == "off":
        yield DoctorCheck("vacuum", "warning", "autovacuum is off: tables will grow", "Set autovacuum = on.")
    free = server["most"] - server["used"]
    message = f"{free:,} of {server['most']:,} connections are free"
    advice = "Raise max_connections, open fewer in each process (max_connections=…), or put a pooler in front."
    yield (
        DoctorCheck("connections", "warning", message, advice)
        if free < MIN_FREE_CONNECTIONS
        else DoctorCheck("connections", "ok", message)
    )
    if server["in_the_clear"]:
        advice = "Add ?sslmode=require to the address, unless the network is private."
        yield DoctorCheck("encryption", "warning", "the connection is not encrypted", advice)


def _check_durability(server: Any) -> DoctorCheck:
    """Checks the settings that make committed transactions durable."""
    for name, lost in (
        ("fsync", "a crash of the machine may destroy the database"),
        ("full_page_writes", "a crash of the machine may damage the database"),
        ("synchronous_commit", "a crash may lose the last acknowledged appends"),
    ):
        if server[name] == "off":
            return DoctorCheck("durability", "warning", f"{name} is off: {lost}", f"Set {name} = on.")
    return DoctorCheck("durability", "ok", f"fsync is on, synchronous_commit is {server['synchronous_commit']}")


def _check_clock(difference: float) -> DoctorCheck:
    message = f"the server's clock is {abs(difference):.1f} s {'ahead of' if difference > 0 else 'behind'} ours"
    advice = "Synchronise both machines with a time server: events carry the time of the machine that appends them."
    if abs(difference) > CLOCK_WARNING_SECONDS:
        return DoctorCheck(
            "clock", "problem" if abs(difference) > CLOCK_PROBLEM_SECONDS else "warning", message, advice
        )
    return DoctorCheck("clock", "ok", message)


async def _check_tables(connection: Any) -> AsyncIterator[DoctorCheck]:
    status = await schema_status(connection)
    if status.problem:
        yield DoctorCheck("migrations", "problem", f"the database {status.problem}")
    elif status.missing:
        message = f"the database is at schema {status.applied}, and this Holdfast needs {len(load_migrations())}"
        yield DoctorCheck("migrations", "problem", message, f"Run {MIGRATE_COMMAND} on it.")
    else:
        yield DoctorCheck("migrations", "ok", f"schema {status.applied}")
    if not status.applied:
        return
    if forbidden := [row[0] for row in await connection.fetch(_DOCTOR_SQL["rights"])]:
        advice = (
            "Run GRANT USAGE ON SCHEMA holdfast TO …; "
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO …."
        )
        yield DoctorCheck(
            "rights", "problem", f"this user may not use holdfast.{', holdfast.'.join(forbidden)}", advice
        )
        return
    yield DoctorCheck("rights", "ok", "this user may read and write every table")
    behind = await connection.fetchval(_DOCTOR_SQL["behind"])
    message = f"{behind:,} sessions have events that are not indexed yet"
    advice = "Searches find them, but slowly. Every process that appends fills the index when idle."
    yield (
        DoctorCheck("search index", "warning", message, advice)
        if behind >= MAX_UNINDEXED_SESSIONS
        else DoctorCheck("search index", "ok", message)
    )
