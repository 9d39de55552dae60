"""`holdfast migrate`: bring the tables of a PostgreSQL database up to date."""

from __future__ import annotations

import anyio
import click

from ..stores.postgres.upgrading import Upgrade, upgrade
from .terminal import working

BEHIND = 1


@click.command("migrate")
@click.argument("url", metavar="URL")
@click.option("--check", is_flag=True, help="Change nothing: say what is missing, and exit with 1 if something is.")
def command(url: str, check: bool) -> int:
    """Create or update the tables of a PostgreSQL store.

    URL is its address, postgresql://user:password@host/database. It runs what the database has not seen yet, all or
    nothing. Any number may run at once, and applications may go on meanwhile, those of the version before too.
    """
    with working("migrating"):
        done: Upgrade = anyio.run(upgrade, url, check)
    for migration in done.migrations:
        click.echo(f"{migration.number:04d}  {migration.why}")
    count = len(done.migrations)
    named = f"{count} migration{'s' if count != 1 else ''}"
    if not done.migrations:
        click.echo(f"{done.where} is up to date, at schema {done.schema}.")
    elif check:
        click.echo(f"{done.where} lacks {named}.")
    else:
        click.echo(f"{done.where} was migrated: {named}, now at schema {done.schema}.")
    return BEHIND if check and done.migrations else 0
