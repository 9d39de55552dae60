"""Run as a process of its own: a session whose disk fills up, is full, and has room again.

Usage: python full_disk.py STORE FOLDER

A limit on the size of files stands in for the disk: the system refuses to write, in the middle of an append.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fire.writer import FORMAT, SESSION, complaints
from holdfast import HoldfastError, SessionService, SlidingWindow, always, open_store
from holdfast.errors import StoreError

ROOM = 100_000


def limit(size: int) -> None:
    """No file of this process may grow beyond this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def largest(folder: Path) -> int:
    return max(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def fill(service: SessionService, size: int) -> tuple[list[str], StoreError]:
    """Append until it is refused; returns what was acknowledged, and how it was refused."""
    acknowledged: list[str] = []
    for number in range(1000):
        name = f"{size}-{number}"
        try:
            await service.append(SESSION, {"role": "user", "content": f"{name} " + "x" * size}, id=name)
        except StoreError as refusal:
            return acknowledged, refusal
        acknowledged.append(name)
    raise AssertionError("the disk never filled up")


async def stands(service: SessionService, expected: list[str]) -> None:
    """Everything acknowledged is there, nothing else is, and it is fit to be sent."""
    assert [event.id for event in await service.events(SESSION, kind="message")] == expected
    assert await service.verify(SESSION) == []
    context = await service.context(SESSION)
    assert complaints(context.messages) == []
    assert context.version == len(await service.events(SESSION))


async def main(store: str, folder: Path) -> None:
    async with SessionService(open_store(store), estimator="chars/4") as service:
        await service.create(id=SESSION, format=FORMAT)
        await service.append(SESSION, {"role": "user", "content": "hello"}, id="hello")
        limit(largest(folder) + ROOM)
        large, refusal = await fill(service, 9_000)
        small, _ = await fill(service, 300)
        tried = len(large), len(small), str(refusal)
        await stands(service, expected := ["hello", *large, *small])
        try:
            await service.compact(SESSION, always, SlidingWindow(2))
        except HoldfastError as problem:
            assert isinstance(problem, StoreError), problem
        await stands(service, expected)
        async with SessionService(open_store(store), estimator="chars/4") as another:
            await stands(another, expected)
        limit(resource.RLIM_INFINITY)
        again = f"9000-{len(large)}"
        await service.append(SESSION, {"role": "user", "content": f"{again} " + "x" * 9_000}, id=again)
        await stands(service, [*expected, again])
        assert (await service.compact(SESSION, always, SlidingWindow(1))).outcome == "compacted"
        await stands(service, [*expected, again])
    print(*tried, sep="\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
