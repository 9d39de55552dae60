"""Errors raised by Holdfast, as one tree, and the outcomes of a compaction.

HoldfastError
├── InvalidInput            an argument cannot be used
│   ├── UnknownFormat       no wire format fits the messages
│   ├── InvalidLimit        a limit, budget or setting is out of range
│   ├── CheckpointMismatch  `previous=` does not belong to these messages
│   ├── EmptyTranscript     a session file has no messages
│   └── AlreadyImported     a session was imported before
├── Aborted                 the caller aborted
├── SummaryFailed           the model wrote no summary, and the preset allows no fallback
├── SessionError            an operation on one session failed
│   ├── UnknownSession
│   ├── AmbiguousSession    several sessions match a shortened id
│   ├── UnknownEvent
│   ├── AmbiguousReference  several events match a reference
│   ├── DuplicateEvent      an event id was reused with other content
│   ├── StaleVersion        `after=` is not the newest version
│   ├── Conflict            another writer compacted, pinned, undid or redacted meanwhile
│   ├── TurnSuperseded      a newer turn has begun before this one was done
│   └── NoRoom              the context does not fit, and no compaction makes it small enough
├── StoreError              the store cannot do it
│   ├── StoreClosed
│   ├── StoreReadOnly
│   └── CorruptLog          the log cannot be read or does not verify
├── QueueError              the queue of compaction jobs cannot be reached
└── JobFailed               an attempt of a compaction job failed

Every message says what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

__all__ = [
    "Aborted",
    "AlreadyImported",
    "AmbiguousReference",
    "AmbiguousSession",
    "CheckpointMismatch",
    "Conflict",
    "CorruptLog",
    "DuplicateEvent",
    "EmptyTranscript",
    "HoldfastError",
    "InvalidInput",
    "InvalidLimit",
    "JobFailed",
    "NoRoom",
    "Outcome",
    "QueueError",
    "SessionError",
    "StaleVersion",
    "StoreClosed",
    "StoreError",
    "StoreReadOnly",
    "SummaryFailed",
    "TurnSuperseded",
    "UnknownEvent",
    "UnknownFormat",
    "UnknownSession",
]


class HoldfastError(Exception):
    """Base class of all errors that Holdfast raises."""


class InvalidInput(HoldfastError, ValueError):
    """Raised when an argument cannot be used: wrong type, malformed messages, unknown name."""


class UnknownFormat(InvalidInput):
    """Raised when the wire format of messages cannot be detected, or its name is unknown."""


class InvalidLimit(InvalidInput):
    """Raised when a limit, budget or setting is out of range."""


class CheckpointMismatch(InvalidInput):
    """Raised when the checkpoint passed as `previous=` does not belong to these messages."""


class EmptyTranscript(InvalidInput):
    """Raised when a session file contains no messages."""


class AlreadyImported(InvalidInput):
    """Raised when a session was imported before, and nothing has been added to it since."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session {session_id!r} is already imported: to import it again, use another --id.")
        self.session_id = session_id


class Aborted(HoldfastError):
    """Raised when the caller aborts an operation that has no result to report it in."""

    def __init__(self) -> None:
        super().__init__("Aborted: nothing has changed, and no fallback was tried.")


class SummaryFailed(HoldfastError):
    """Raised when the model wrote no summary and the preset has no fallback."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The compaction failed, nothing has changed: {why}. Compact again, or use a preset with a fallback."
        )
        self.why = why


class SessionError(HoldfastError):
    """Base class of errors about one session; `session_id` names it."""

    def __init__(self, message: str, session_id: str | None = None) -> None:
        super().__init__(message)
        self.session_id = session_id


class UnknownSession(SessionError):
    """Raised when the store has no session with this id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"There is no session {session_id!r} in this store: check the id, or create it first.", session_id
        )


class AmbiguousSession(SessionError):
    """Raised when a shortened session id matches several sessions of the store."""

    def __init__(self, written: str, some: Sequence[str], count: int) -> None:
        more = f" and {count - len(some)} more" if count > len(some) else ""
        super().__init__(f"{written!r} is part of several session ids, {', '.join(some)}{more}: use one of these.")
        self.written = written


class UnknownEvent(SessionError):
    """Raised when the session has no event with this id."""

    def __init__(self, event_id: str, session_id: str, hint: str = "list its events to find the id") -> None:
        super().__init__(f"Session {session_id!r} has no event {event_id!r}: {hint}.", session_id)
        self.event_id = event_id


class AmbiguousReference(SessionError):
    """Raised when a shortened event id matches several events of the session."""

    def __init__(self, name: str, session_id: str, events: Sequence[str]) -> None:
        some = ", ".join(events)
        super().__init__(
            f"In session {session_id!r} several events begin with {name!r}: use the number of one, as in {some}.",
            session_id,
        )
        self.name = name


class DuplicateEvent(SessionError):
    """Raised when an append reuses an event id with other content."""

    def __init__(self, event_id: str, session_id: str) -> None:
        super().__init__(
            f"Session {session_id!r} already has an event {event_id!r} with other content: use a new id.",
            session_id,
        )
        self.event_id = event_id


class StaleVersion(SessionError):
    """Raised when `after=` is not the session's newest version (compare-and-set failed)."""

    def __init__(self, session_id: str, expected: int, actual: int) -> None:
        super().__init__(
            f"Session {session_id!r} is at version {actual}, not {expected}: read its context again and retry.",
            session_id,
        )
        self.expected = expected
        self.actual = actual


class Conflict(SessionError):
    """Raised when another writer compacted, pinned, undid or redacted since the caller read the session.

    Nothing was written. The session is read again, so that a second call acts on what is there now.
    """

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"Another writer has changed session {session_id!r} meanwhile: nothing was written; read its context "
            "again and retry.",
            session_id,
        )
        self.outcome = Outcome.CONFLICT


class TurnSuperseded(SessionError):
    """Raised when a newer turn of the session has begun, so that the reply of this one is no longer wanted."""

    def __init__(self, session_id: str, turn: str) -> None:
        super().__init__(
            f"A newer turn of session {session_id!r} began before turn {turn!r} was done: answer the newer one.",
            session_id,
        )
        self.turn = turn


class NoRoom(SessionError):
    """Raised when the context exceeds its budget, and no compaction made it small enough, or none within a time."""

    def __init__(
        self,
        session_id: str,
        tokens: int,
        budget: int,
        seconds: float | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        advice = (
            "nothing more can be archived: shorten the newest message or the tools, or use a model with a larger window"
            if seconds is None
            else f"no compaction has made room within {seconds:g} s: wait longer, compact it manually, or start a new "
            "session"
        )
        super().__init__(
            f"Session {session_id!r} has a context of {tokens:,} tokens, over the {budget:,} that fit, and {advice}.",
            session_id,
        )
        self.tokens = tokens
        self.budget = budget
        self.messages = messages
        """The smallest valid context, where that is known."""


class StoreError(HoldfastError):
    """Raised when the store cannot do what was requested; base class of store errors."""


class StoreClosed(StoreError):
    """Raised when a closed store is used."""

    def __init__(
        self, message: str = "This store is closed: open a new one, or use it inside its `async with` block."
    ) -> None:
        super().__init__(message)


class StoreReadOnly(StoreError):
    """Raised on a write to a store without write permission."""


class CorruptLog(StoreError):
    """Raised when a log cannot be read or does not verify."""


class QueueError(HoldfastError):
    """Raised when the queue is unreachable.

    No job is lost: the end of the next turn, or the next sweep, enqueues it again.
    """


class JobFailed(HoldfastError):
    """Raised when an attempt of a job failed; `retryable` tells the queue whether to try again."""

    def __init__(self, why: str, *, retryable: bool = True) -> None:
        super().__init__(why)
        self.retryable = retryable


def plain_reason(error: BaseException) -> str:
    """Returns the text of an exception for people, without the name of its class."""
    text = " ".join(str(error.args[0] if isinstance(error, KeyError) and error.args else error).split())
    return text or "an unexpected error"


class Outcome(StrEnum):
    """The outcome of a compaction."""

    COMPACTED = "compacted"
    NOT_NEEDED = "not_needed"
    NOTHING_TO_COMPACT = "nothing_to_compact"
    NO_PROGRESS = "no_progress"
    CANNOT_FIT = "cannot_fit"
    CONFLICT = "conflict"
    VETOED = "vetoed"
    ABORTED = "aborted"
    SUMMARY_FAILED = "summary_failed"
    BREAKER_OPEN = "breaker_open"
