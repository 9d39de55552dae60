"""`holdfast doctor`: look at a store, and at a queue, before they are needed."""

from __future__ import annotations

import os
import time
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import click
import msgspec

from ..errors import HoldfastError, InvalidInput
from ..models import public_url, scrub
from ..settings import load_settings
from ..stores.finding import Finding
from ..stores.postgres.address import Address
from . import options
from .stores import find_store
from .terminal import console, working

PROBLEMS_FOUND = 1
ADDRESSES = ("postgresql://", "postgres://")
_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@click.command("doctor")
@click.argument("url", required=False, metavar="[URL]")
@click.option("--queue", metavar="ADDRESS", help="Look at this queue too: redis://host:6379.")
@options.as_json
def command(url: str | None, queue: str | None, as_json: bool) -> int:
    """Check a store: connection, version, tables, settings, clock. Without URL, the one of your settings.

    Each line says whether it is as it should be, and what to do if not. Nothing is changed. The exit code is 1 if there
    is a problem; a warning is none.
    """
    address = url or load_settings().store
    with working("examining"):
        findings = anyio.run(_examine, address, queue)
    ok = all(finding.state != "problem" for finding in findings)
    if as_json:
        facts = {"store": _public(address), "ok": ok, "findings": findings}
        click.echo(msgspec.json.encode(facts))
    else:
        _show(findings)
    return 0 if ok else PROBLEMS_FOUND


async def _examine(address: str, queue: str | None) -> list[Finding]:
    found = await _store(address)
    return [*found, *(await _queue(queue) if queue is not None else ())]


async def _store(address: str) -> list[Finding]:
    if not address.startswith(ADDRESSES):
        return await anyio.to_thread.run_sync(_files, address)
    from ..stores.postgres.examining import examine

    return await examine(address)


def _files(address: str) -> list[Finding]:
    """A database in a file, or a folder; looking at what is not there would make it."""
    if not os.path.exists(address.removeprefix("sqlite:///").removeprefix("jsonl:")):
        return [Finding("store", "ok", f"{address} is not there yet: it is made when it is first used")]
    try:
        place = find_store(address)
        if place is None:
            return [Finding("store", "problem", f"{address} is no Holdfast store", "Name another in your settings.")]
        with place.open() as sessions:
            count = len(sessions.list())
    except HoldfastError as problem:
        return [Finding("store", "problem", str(problem))]
    return [Finding("store", "ok", f"{address} opens, with {count:,} session{'s' if count != 1 else ''}")]


async def _queue(address: str) -> list[Finding]:
    """BullMQ needs a server that forgets nothing by itself."""
    if urlsplit(address).scheme not in ("redis", "rediss"):
        raise InvalidInput("A queue needs an address like redis://host:6379.")
    try:
        from redis.asyncio import Redis
        from redis.exceptions import RedisError
    except ImportError:
        return [Finding("queue", "problem", "bullmq is not installed", "Run pip install 'holdfast[bullmq]'.")]
    where, client = public_url(address), Redis.from_url(address, socket_timeout=5, socket_connect_timeout=5)
    try:
        started = time.monotonic()
        await client.ping()
        took = time.monotonic() - started
        about = await client.info()
    except (RedisError, OSError) as error:
        said = f"{where} does not answer ({scrub(str(error), _secrets(address))})"
        return [Finding("queue", "problem", said, "See that the server runs, and check user and password.")]
    finally:
        await client.aclose()
    return [Finding("queue", "ok", f"{where} answers in {took * 1000:.1f} ms"), *_remembering(about)]


def _remembering(about: dict[str, Any]) -> list[Finding]:
    found = []
    policy = about.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        said = f"the queue's server may forget jobs (maxmemory-policy is {policy})"
        found.append(Finding("queue memory", "problem", said, "Set maxmemory-policy noeviction."))
    if not about.get("aof_enabled"):
        said = "a restart of the queue's server may lose jobs, until the end of each session's next turn"
        found.append(Finding("queue file", "warning", said, "Set appendonly yes."))
    return found


def _secrets(address: str) -> tuple[str, ...]:
    password = urlsplit(address).password
    return (password,) if password else ()


def _public(address: str) -> str:
    return Address(address).public if address.startswith(ADDRESSES) else address


def _show(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for finding in findings:
        said = Text(finding.said)
        if finding.advice:
            said.append(f"\n→ {finding.advice}")
        table.add_row(Text(finding.state, _STYLES[finding.state]), Text(finding.name), said)
    console().print(table)
