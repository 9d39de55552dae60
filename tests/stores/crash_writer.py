"""Run as a separate process: appends until it is killed, and prints the ids of acknowledged events.

Usage: python crash_writer.py KIND PLACE PREFIX
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

from holdfast.context.events import Event, LaneTip, now
from holdfast.stores import JSONLStore, PostgresStore, SQLiteStore

SIZES = (1, 1, 1, 2, 5, 40)


def open_log(kind: str, place: str) -> Any:
    """Opens a store; for PostgreSQL the place is the address, a space and the tenant."""
    match kind:
        case "jsonl":
            return JSONLStore(Path(place) / "files")
        case "sqlite":
            return SQLiteStore(Path(place) / "s.db")
    address, _, tenant = place.partition(" ")
    return PostgresStore(address, tenant=tenant)


async def main(kind: str, place: str, prefix: str) -> None:
    chance = random.Random(prefix)
    async with open_log(kind, place) as store:

        async def write(lane: str | None) -> None:
            for number in range(1_000_000):
                size = chance.choice(SIZES)
                ids = [f"{prefix}.{lane}.{number}.{place}/{size}" for place in range(size)]
                text = "x" * chance.choice((10, 1000, 20_000))
                events = [Event(event_id, "message", now(), {"text": text}, lane) for event_id in ids]
                tip = LaneTip(epoch=ids[-1]) if number % 7 == 0 else None
                await store.append("s", events, tip=tip)
                print(*ids, sep="\n", flush=True)

        await asyncio.gather(write(None), write("sub"), write("other"))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
