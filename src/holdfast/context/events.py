"""Events: the entries of a session's log. An envelope that every store knows, and a body for each kind.

Unknown kinds and body fields are kept and ignored by the view, so that an older Holdfast can read a newer
log.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..errors import HoldfastError
from ..messages import Json, Message, decode_one
from ..messages.json_text import decodable

DECODE_ERRORS = (HoldfastError, LookupError, TypeError, AttributeError, ValueError, RecursionError)
"""What reading a malformed event may raise."""


def decode_reason(problem: BaseException) -> str:
    """Returns why a malformed event cannot be read, as a clause for people."""
    return f"it has no {problem.args[0]!r}" if isinstance(problem, KeyError) else str(problem).rstrip(".")


def try_message_in(event: Event) -> Message | None:
    """Returns the message of an event; None if it has none that can be decoded."""
    try:
        return message_in(event)
    except DECODE_ERRORS:
        return None


_MEASURED_FIELDS = frozenset({"units", "counter", "made_on"})
SCHEMA = 1
"""Version of the event format."""


class EventKind:
    """Kinds of events that this version writes."""

    MESSAGE = "message"
    COMPACTION = "compaction"
    UNDO = "undo"
    PIN = "pin"
    REDACTION = "redaction"
    POLICY = "policy"
    """The policy that holds from here on, as plain data."""
    ATTEMPT = "attempt"
    """A failed compaction: the reason, the number of consecutive failures, and the time of the next attempt."""


@decodable
class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a log. The store sets `seq` and `epoch` on append."""

    id: str
    kind: str
    time: str
    body: Json
    lane: str | None = None
    seq: int = 0
    """Position in the session: the session's version after this event."""
    epoch: str | None = None
    """Id of the lane's current checkpoint at the time of the append."""
    v: int = SCHEMA

    @property
    def message(self) -> Json:
        """The message of a message event, as the provider's payload; media may be digests."""
        message: Json = self.body["message"]
        return message

    @property
    def digest(self) -> str:
        """Digest of the content: tells a retried append from a reused id."""
        return content_digest(self.kind, self.lane, self.body)


class LaneTip(msgspec.Struct, frozen=True):
    """Current state of one lane: all that is needed to open it."""

    mark: int = 0
    """Seq of the last event that is not a plain message."""
    epoch: str | None = None
    """Id of the current checkpoint."""
    start: int = 0
    """Live events of the lane are those after this seq."""
    base: int = 0
    """For a sub-agent's lane: it sees the root lane as of this seq."""
    base_epoch: str | None = None
    """Checkpoint of the root lane at `base`."""


@decodable
class SessionRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session's record in a store."""

    id: str
    created: str
    owner: str | None = None
    system: Any = None
    tools: Any = None
    format: str | None = None
    model: str | None = None
    parent: str | None = None
    """Session that this one was forked from; it shares the parent's events up to `parent_seq`."""
    parent_seq: int = 0
    version: int = 0
    """Seq of the newest event."""
    lanes: dict[str, LaneTip] = {}
    """Tips by lane; the root lane has the empty key."""
    metadata: Json = {}
    policy: Json | None = None
    """When and how to compact, as plain data; a later `policy` event of the root lane takes precedence."""
    alternating: bool = False
    """Whether the model's chat template refuses two messages of one role in a row."""


def message_in(event: Event) -> Message:
    """Decodes the message of a message event."""
    return decode_one(event.body["message"], event.body.get("format"))


def lane_key(lane: str | None) -> str:
    """Returns the key of a lane in `SessionRecord.lanes`; "" for the root lane."""
    return lane or ""


def content_digest(kind: str, lane: str | None, body: Json) -> str:
    """Returns the digest of an event's content, without what the service that appended it measured or knew."""
    return digest_of([kind, lane, {name: value for name, value in body.items() if name not in _MEASURED_FIELDS}])


def digest_of(value: Any) -> str:
    """Returns a short digest of plain data that does not depend on key order."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:32]


def new_id() -> str:
    """Returns a unique id that sorts by time: 12 hex digits of milliseconds, then 12 random ones."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}"


def now() -> str:
    """Returns the current UTC time in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
