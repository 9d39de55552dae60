"""`holdfast doctor`: checks a store and a queue."""

from __future__ import annotations

import os
import time
from typing import Any

import anyio
import anyio.to_thread
import click

from ..errors import HoldfastError, InvalidInput
from ..io.installation import install_command
from ..io.secrets import public_url, scrub, secrets_in_url
from ..settings import load_settings
from ..stores.base import DoctorCheck
from ..stores.postgres.schema import MigrationReport, migrate_database
from . import options
from .console import make_console, show_progress
from .output import echo, echo_json
from .stores import find_store
from .verify import counted, verify_store

PROBLEMS_FOUND = 1
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
_STATE_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@click.command("doctor")
@click.argument("url", required=False, metavar="[URL]")
@click.option("--queue", metavar="ADDRESS", help="Also check this queue: redis://host:6379.")
@options.json_option
def doctor_command(url: str | None, queue: str | None, as_json: bool) -> int:
    """Check a store: connection, version, tables, settings, clock. Default URL: from your settings.

    Each line reports a status and what to do about it. Nothing is changed. The exit code is 1 if there is a problem;
    warnings do not count.
    """
    address = url or load_settings().store
    with show_progress("checking"):
        checks = anyio.run(_run_checks, address, url is not None, queue)
    ok = all(check.state != "problem" for check in checks)
    if as_json:
        facts = {
            "store": public_url(address) if address.startswith(POSTGRES_SCHEMES) else scrub(address),
            "ok": ok,
            "findings": checks,
        }
        echo_json(facts)
    else:
        _print_checks(checks)
    return 0 if ok else PROBLEMS_FOUND


async def _run_checks(address: str, named: bool, queue: str | None) -> list[DoctorCheck]:
    found = await _check_store(address, named)
    return [*found, *(await _check_queue(queue) if queue is not None else ())]


async def _check_store(address: str, named: bool) -> list[DoctorCheck]:
    if not address.startswith(POSTGRES_SCHEMES):
        return await anyio.to_thread.run_sync(_check_file_store, address, named)
    from ..stores.postgres.doctor import check_database

    return await check_database(address)


def _check_file_store(address: str, named: bool) -> list[DoctorCheck]:
    """Checks a database file or a folder; opening a missing one would create it. One named by the user must exist.

    It is ok only if `verify` says so of each of its sessions.
    """
    shown = scrub(address)
    if not os.path.exists(address.removeprefix("sqlite:///").removeprefix("jsonl:")):
        if named:
            return [DoctorCheck("store", "problem", f"{shown} does not exist", "Check the path.")]
        return [DoctorCheck("store", "ok", f"{shown} does not exist yet: it is created on first use")]
    try:
        location = find_store(address)
        if location is None:
            return [
                DoctorCheck("store", "problem", f"{shown} is not a Holdfast store", "Name another in your settings.")
            ]
        found = verify_store(location)
    except HoldfastError as problem:
        return [DoctorCheck("store", "problem", scrub(str(problem)))]
    wrong = [f"{name}: {problems[0]}" for name, problems in found.items() if problems]
    if wrong:
        advice = f"Run `holdfast verify {shown}`, and restore what it names from a backup."
        return [DoctorCheck("store", "problem", f"{len(wrong):,} of {counted(found)}: {wrong[0]}", advice)]
    return [DoctorCheck("store", "ok", f"{shown} opens, with {counted(found)}, all consistent")]


async def _check_queue(address: str) -> list[DoctorCheck]:
    """BullMQ needs a server that never evicts keys."""
    if address.partition("://")[0] not in ("redis", "rediss"):
        raise InvalidInput("The queue address is not a Redis URL: use one like redis://host:6379.")
    try:
        from redis.asyncio import Redis
        from redis.exceptions import RedisError
    except ImportError:
        return [DoctorCheck("queue", "problem", "bullmq is not installed", f"Run {install_command('bullmq')}")]
    where = public_url(address)
    try:
        client = Redis.from_url(address, socket_timeout=5, socket_connect_timeout=5)
    except ValueError:
        advice = "Write the characters @ : / # ? of a password as %40 %3A %2F %23 %3F."
        return [DoctorCheck("queue", "problem", f"the address {where} cannot be used", advice)]
    try:
        started = time.monotonic()
        await client.ping()
        took = time.monotonic() - started
        about = await client.info()
    except (RedisError, OSError) as error:
        text = f"{where} does not answer ({scrub(str(error), secrets_in_url(address))})"
        return [DoctorCheck("queue", "problem", text, "Check that the server runs, and the user and password.")]
    finally:
        await client.aclose()
    return [DoctorCheck("queue", "ok", f"{where} answers in {took * 1000:.1f} ms"), *_check_queue_durability(about)]


def _check_queue_durability(about: dict[str, Any]) -> list[DoctorCheck]:
    found = []
    policy = about.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        text = f"the queue's server may evict jobs (maxmemory-policy is {policy})"
        found.append(DoctorCheck("queue memory", "problem", text, "Set maxmemory-policy noeviction."))
    if not about.get("aof_enabled"):
        text = "a restart of the queue's server may lose jobs, until each session's next turn ends"
        found.append(DoctorCheck("queue file", "warning", text, "Set appendonly yes."))
    return found


def _print_checks(checks: list[DoctorCheck]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for check in checks:
        text = Text(check.message)
        if check.advice:
            text.append(f"\n→ {check.advice}")
        table.add_row(Text(check.state, _STATE_STYLES[check.state]), Text(check.name), text)
    make_console().print(table)


MIGRATIONS_MISSING = 1


@click.command("migrate")
@click.argument("url", metavar="URL")
@click.option(
    "--check", is_flag=True, help="Change nothing: list missing migrations, and exit with 1 if there are any."
)
def migrate_command(url: str, check: bool) -> int:
    """Create or update the tables of a PostgreSQL store.

    URL is postgresql://user:password@host/database. Missing migrations run in one transaction. It is safe to run
    several at once and while applications are running, including those of the previous version.
    """
    with show_progress("migrating"):
        done: MigrationReport = anyio.run(migrate_database, url, check)
    for migration in done.migrations:
        echo(f"{migration.number:04d}  {migration.description}")
    count = len(done.migrations)
    counted = f"{count} migration{'s' if count != 1 else ''}"
    if not done.migrations:
        echo(f"{done.where} is up to date, at schema {done.schema}.")
    elif check:
        echo(f"{done.where} lacks {counted}.")
    else:
        echo(f"{done.where} was migrated: {counted}, now at schema {done.schema}.")
    return MIGRATIONS_MISSING if check and done.migrations else 0
