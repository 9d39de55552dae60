"""Run as a separate process: appends to a session until the disk is full, then frees space and continues.

Usage: python full_disk.py STORE FOLDER

A limit on the size of files simulates the full disk: the system refuses to write, in the middle of an append.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from holdfast import HoldfastError, SessionService, SlidingWindow, open_store
from holdfast.errors import StoreError
from holdfast.triggers import always
from stress.writer import FORMAT, SESSION, complaints

ROOM = 100_000


def limit(size: int) -> None:
    """Limits the size of any file that this process writes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def largest(folder: Path) -> int:
    return max(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def fill(service: SessionService, size: int) -> tuple[list[str], StoreError]:
    """Appends until it is refused; returns the acknowledged ids and the error."""
    acknowledged: list[str] = []
    for number in range(1000):
        name = f"{size}-{number}"
        try:
            await service.append(SESSION, {"role": "user", "content": f"{name} " + "x" * size}, id=name)
        except StoreError as error:
            return acknowledged, error
        acknowledged.append(name)
    raise AssertionError("the disk never filled up")


async def check_session(service: SessionService, expected: list[str]) -> None:
    """Asserts that exactly the expected events are stored and that the context is valid."""
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
        large, error = await fill(service, 9_000)
        small, _ = await fill(service, 300)
        tried = len(large), len(small), str(error)
        await check_session(service, expected := ["hello", *large, *small])
        try:
            await service.compact(SESSION, always, SlidingWindow(2))
        except HoldfastError as problem:
            assert isinstance(problem, StoreError), problem
        await check_session(service, expected)
        async with SessionService(open_store(store), estimator="chars/4") as another:
            await check_session(another, expected)
        limit(resource.RLIM_INFINITY)
        again = f"9000-{len(large)}"
        await service.append(SESSION, {"role": "user", "content": f"{again} " + "x" * 9_000}, id=again)
        await check_session(service, [*expected, again])
        assert (await service.compact(SESSION, always, SlidingWindow(1))).outcome == "compacted"
        await check_session(service, [*expected, again])
    print(*tried, sep="\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
