"""Servers that stop at once when a test ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from types import SimpleNamespace

import pytest
import uvicorn.server


def _short_sleep(seconds: float) -> Awaitable[None]:
    return asyncio.sleep(seconds / 20)


@pytest.fixture(scope="session", autouse=True)
def quick_stop() -> Iterator[None]:
    """Shortens the sleeps of uvicorn's loop: it looks every 0.1 s whether to stop, and then waits as long again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.server, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": _short_sleep}))
        yield
