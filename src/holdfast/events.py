"""Events: what a log holds. An envelope that every store understands, and a body for each kind.

Unknown kinds and unknown fields of a body are kept as they are and passed over by the view, so that
an older Holdfast can read a newer log.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from .messages import Json

SCHEMA = 1
"""The version of the event format that this code writes."""


class Kind:
    """The kinds of event that this version writes."""

    MESSAGE = "message"
    COMPACTION = "compaction"
    UNDO = "undo"
    PIN = "pin"
    REDACTION = "redaction"
    ATTEMPT = "attempt"
    """A compaction that failed: why, how many in a row, and when the next may be tried."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a log. A store fills in `seq` and `epoch` when it appends."""

    id: str
    kind: str
    time: str
    body: Json
    lane: str | None = None
    seq: int = 0
    """Its place in the session: the version the session had after it."""
    epoch: str | None = None
    """The checkpoint that was in force in its lane when it was appended."""
    v: int = SCHEMA

    @property
    def digest(self) -> str:
        """What its content comes to: tells a repeated append from a reused id."""
        return digest_of([self.kind, self.lane, self.body])


class LaneTip(msgspec.Struct, frozen=True):
    """Where one lane of a session stands: all that opening it needs to know."""

    mark: int = 0
    """The seq of the last event that was more than a plain message."""
    epoch: str | None = None
    """The id of the checkpoint in force."""
    start: int = 0
    """The live events of the lane are those after this seq."""
    base: int = 0
    """For a sub-agent's lane: the root is seen as it was at this seq …"""
    base_epoch: str | None = None
    """… under this checkpoint."""


class SessionRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as a store knows it."""

    id: str
    created: str
    owner: str | None = None
    system: Any = None
    tools: Any = None
    format: str | None = None
    model: str | None = None
    parent: str | None = None
    """The session this one was forked from: events up to `parent_seq` are the parent's."""
    parent_seq: int = 0
    version: int = 0
    """The seq of the newest event."""
    lanes: dict[str, LaneTip] = {}
    """Tips by lane; the root's key is the empty string."""
    metadata: Json = {}


def root_key(lane: str | None) -> str:
    """The key of a lane in a record: lanes are labels, and the root has none."""
    return lane or ""


def digest_of(value: Any) -> str:
    """A short stable digest of plain data, whatever the order of its keys."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:32]


def new_id() -> str:
    """An id that sorts by time: 12 hex digits of milliseconds, then 12 of chance."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
