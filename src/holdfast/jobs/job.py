"""A job is a name, nothing more: whether there is something to do, and what, is read from the log when it runs."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ..errors import HoldfastError, InvalidInput

SESSION = "session"
"""The domain of jobs that name a session of the store."""


class Job(msgspec.Struct, frozen=True, rename="camel"):
    """Compact this, if it is time. As JSON: `{"domain": "session", "entityId": "…"}`."""

    domain: str
    """Whose entities these are: applications that share a queue have one each."""
    entity_id: str
    """The session's id."""

    def __post_init__(self) -> None:
        if not self.domain or ":" in self.domain:
            raise InvalidInput(f"A job's domain is a word without a colon, not {self.domain!r}.")
        if not self.entity_id:
            raise InvalidInput("A job names a session: its entity_id must not be empty.")

    @property
    def key(self) -> str:
        """At most one with this key waits at a time (W12)."""
        return f"compact:{self.domain}:{self.entity_id}"


class Queue(Protocol):
    """Takes jobs. One whose key waits already is dropped; one that comes while it runs is run once more after it."""

    async def enqueue(self, job: Job) -> None:
        """QueueError where the queue cannot be reached."""
        ...


class JobFailed(HoldfastError):
    """A job came to nothing. `again` says whether another attempt may do better."""

    def __init__(self, why: str, *, again: bool = True) -> None:
        super().__init__(why)
        self.again = again


class QueueError(HoldfastError):
    """The queue cannot take a job now. None is lost: the next turn's end, or the next sweep, finds the same need."""
