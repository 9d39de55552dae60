"""Migrations on a connection of their own, for a command that does nothing else."""

from __future__ import annotations

import msgspec

from ...errors import HoldfastError, StoreError
from .address import Address
from .migrating import Migration, migrate, migrations, standing
from .statements import LONG


class Upgrade(msgspec.Struct, frozen=True):
    """What was run, or what is missing."""

    where: str
    schema: int
    migrations: tuple[Migration, ...]


async def upgrade(url: str, check: bool = False) -> Upgrade:
    """Run what is missing; with `check`, only say what that is."""
    address = Address(url)
    try:
        connection = await address.connect(LONG)
        try:
            if not check:
                return Upgrade(address.public, len(migrations()), await migrate(connection, address.public))
            stands = await standing(connection)
        finally:
            connection.terminate()
    except HoldfastError:
        raise
    except Exception as error:
        raise address.clear(error) from None
    if stands.problem:
        raise StoreError(f"{address.public} {stands.problem}.")
    return Upgrade(address.public, stands.applied, stands.missing)
