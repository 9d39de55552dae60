"""Everything that can go wrong, as one tree.

HoldfastError
├── InvalidInput          what was handed in cannot be used
│   ├── UnknownFormat     no wire format fits the messages
│   ├── InvalidLimit      a limit, budget or setting makes no sense
│   └── CheckpointMismatch  ``previous=`` does not belong to these messages
├── Aborted               somebody said stop
├── SessionError          something about one session
│   ├── UnknownSession
│   ├── UnknownEvent
│   ├── AmbiguousReference  several events begin with what was given
│   ├── DuplicateEvent    the same event id with other content
│   ├── StaleVersion      ``after=`` names a version that is no longer the newest
│   └── NoRoom            the context does not fit, and no compaction has made room in time
└── StoreError            the place where sessions live cannot do it
    ├── StoreClosed
    ├── StoreReadOnly
    └── CorruptLog        the log cannot be read or does not verify

Every message says what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence


class HoldfastError(Exception):
    """The root of all errors raised by Holdfast."""


class InvalidInput(HoldfastError, ValueError):
    """What was handed in cannot be used."""


class UnknownFormat(InvalidInput):
    """No wire format fits the messages."""


class InvalidLimit(InvalidInput):
    """A limit, budget or setting makes no sense."""


class CheckpointMismatch(InvalidInput):
    """The checkpoint does not belong to these messages."""


class Aborted(HoldfastError):
    """Somebody said stop, and there is no result that could say so."""

    def __init__(self) -> None:
        super().__init__("It was aborted: nothing has changed, and nothing was tried instead.")


class SessionError(HoldfastError):
    """Something about one session."""

    def __init__(self, message: str, session_id: str | None = None) -> None:
        super().__init__(message)
        self.session_id = session_id


class UnknownSession(SessionError):
    """There is no session with this id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"There is no session {session_id!r} in this store: check the id, or create it first.", session_id
        )


class UnknownEvent(SessionError):
    """There is no event with this id in the session."""

    def __init__(self, event_id: str, session_id: str, hint: str = "list its events to find the id") -> None:
        super().__init__(f"Session {session_id!r} has no event {event_id!r}: {hint}.", session_id)
        self.event_id = event_id


class AmbiguousReference(SessionError):
    """Several events of the session begin with what was given."""

    def __init__(self, name: str, session_id: str, events: Sequence[str]) -> None:
        some = ", ".join(events)
        super().__init__(
            f"In session {session_id!r} several events begin with {name!r}: use the number of one, as in {some}.",
            session_id,
        )
        self.name = name


class DuplicateEvent(SessionError):
    """The same event id was used for other content."""

    def __init__(self, event_id: str, session_id: str) -> None:
        super().__init__(
            f"Session {session_id!r} already has an event {event_id!r} with other content: use a new id.",
            session_id,
        )
        self.event_id = event_id


class StaleVersion(SessionError):
    """The session has moved on since the version that was named."""

    def __init__(self, session_id: str, expected: int, actual: int) -> None:
        super().__init__(
            f"Session {session_id!r} is at version {actual}, not {expected}: read its context again and retry.",
            session_id,
        )
        self.expected = expected
        self.actual = actual


class NoRoom(SessionError):
    """The context does not fit, and no compaction has made room in the time that there was."""

    def __init__(self, session_id: str, tokens: int, budget: int, seconds: float) -> None:
        super().__init__(
            f"Session {session_id!r} has a context of {tokens:,} tokens, over the {budget:,} that fit, and no "
            f"compaction has made room within {seconds:g} s: wait longer, compact it by hand, or start a new session.",
            session_id,
        )
        self.tokens = tokens
        self.budget = budget


class StoreError(HoldfastError):
    """The place where sessions live cannot do what was asked."""


class StoreClosed(StoreError):
    """The store was closed."""

    def __init__(
        self, message: str = "This store is closed: open a new one, or use it inside its `async with` block."
    ) -> None:
        super().__init__(message)


class StoreReadOnly(StoreError):
    """The store cannot be written."""


class CorruptLog(StoreError):
    """A log cannot be read, or does not verify."""
