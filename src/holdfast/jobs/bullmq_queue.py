"""The queue on Redis or Valkey, as BullMQ has it: Node's producers and Bull Board see the same jobs (W12)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import anyio
import msgspec

from .connection import address_of, bullmq, connect, in_words
from .job import Job, QueueError
from .settings import QueueSettings

NAME = "compact"
"""What every job of this queue is called."""
_PATIENCE = 5.0
"""Seconds that a turn's end waits for the server at most."""


class BullMQQueue:
    """Takes jobs for workers elsewhere; needs `pip install 'holdfast[bullmq]'`."""

    def __init__(self, url: str, settings: QueueSettings | None = None) -> None:
        self.settings = settings or QueueSettings()
        self._address = address_of(url)
        self._redis = connect(url)
        self._queue = bullmq().Queue(self.settings.name, {"connection": self._redis})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def enqueue(self, job: Job) -> None:
        """One that waits already, or waits for its next attempt, will see what is new when it runs."""
        try:
            with anyio.fail_after(_PATIENCE):
                await self._queue.add(NAME, msgspec.to_builtins(job), job_options(job, self.settings))
        except TimeoutError:
            raise QueueError(f"The queue at {self._address} has not answered in {_PATIENCE:g} s.") from None
        except Exception as problem:
            raise QueueError(f"The queue at {self._address} cannot be used: {in_words(problem)}.") from None

    async def close(self) -> None:
        await self._redis.aclose()


def job_options(job: Job, settings: QueueSettings) -> dict[str, Any]:
    """In BullMQ's own words; a producer in another language sets the same."""
    return {
        "attempts": settings.attempts,
        "backoff": {"type": "exponential", "delay": round(settings.backoff * 1000)},
        "deduplication": {"id": job.key, "keepLastIfActive": True},
        **kept(settings),
    }


def kept(settings: QueueSettings) -> dict[str, Any]:
    return {"removeOnComplete": {"count": settings.keep}, "removeOnFail": {"count": settings.keep}}
