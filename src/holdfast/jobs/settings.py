"""How jobs are run. The defaults are the workstream document's (W12)."""

from __future__ import annotations

import msgspec

from ..budget import positive
from ..errors import InvalidInput
from ..hooks.patience import must_be_seconds


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times are in seconds."""

    name: str = "context-compaction"
    concurrency: int = 2
    """Jobs that one worker runs at the same time."""
    attempts: int = 2
    """In all: the first one counts."""
    backoff: float = 3.0
    """Before the second attempt; doubled before each further one."""
    deadline: float = 300.0
    """The longest that one attempt may take."""
    lock: float = 30.0
    """How long a job, and the flag of its session, stay a worker's own unless it renews them, as it does."""
    grace: float = 30.0
    """How long a worker that is told to stop goes on with what it has begun, before it gives it back."""
    sweep: float = 60.0
    """How often the store is looked through for sessions that nobody enqueued."""
    keep: int = 1_000
    """Finished jobs, and failed ones, that stay in a distributed queue to be looked at."""

    def __post_init__(self) -> None:
        if not self.name or ":" in self.name:
            raise InvalidInput(f"A queue's name is a word without a colon, not {self.name!r}.")
        for count in ("concurrency", "attempts", "keep"):
            positive(count, getattr(self, count))
        for seconds in ("backoff", "deadline", "lock", "grace", "sweep"):
            must_be_seconds(getattr(self, seconds), seconds)

    def pause(self, attempt: int) -> float:
        """Before the attempt that follows this one, counted from 1."""
        return self.backoff * 2.0 ** (attempt - 1)
