"""The process that explains and previews compactions: requests as lines on stdin, replies as lines on stdout."""

from __future__ import annotations

import signal
import sys

import anyio
import msgspec

from ..sessions import SessionService
from ..stores import open_store
from .worker import reply_to


async def work(url: str, options: str) -> None:
    """Answers requests until the input ends, with the inspector."""
    async with SessionService(open_store(url), **msgspec.json.decode(options)) as sessions:
        while line := await anyio.to_thread.run_sync(sys.stdin.buffer.readline):
            sys.stdout.buffer.write(await reply_to(sessions, line))
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the inspector, which then closes the input
    anyio.run(work, sys.stdin.buffer.readline().decode().strip(), sys.argv[1])
