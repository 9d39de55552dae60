"""From a list of messages to a session in memory: followed as it grows, or stored once for recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..compaction.stateless import PayloadIds, Prefix, PrefixIds
from ..context.events import Event, EventKind, SessionRecord
from ..messages import (
    COMMON,
    Json,
    Message,
    copy_json,
    decode_all,
    encode_all,
    from_json,
    is_note,
    split_notes,
    to_json,
    unpack_reply,
)
from ..stores import Log, MemoryStore
from ..summaries import replace_surrogates
from .live import Context
from .service import SessionService

if TYPE_CHECKING:
    from ..types import MessageLike

HISTORY_SESSION = "history"
"""The id of a session that holds a list of messages."""
_EMPTY = Prefix(0, "")


class MessageListSession:
    """Keeps a session in step with a caller's list: a list that grows is appended, a rewritten one starts anew.

    The caller may pass the whole history each time, or the last returned context and what came since. Leading system
    messages may change: they are passed through, and are not part of the session.
    """

    def __init__(self, sessions: SessionService | None, format: str | None, **record: Any) -> None:
        self._owns_sessions = sessions is None
        self.sessions = sessions or SessionService(MemoryStore())
        self.session_id = ""
        self.usage: Any = None
        """What the provider reported for the reply that comes next."""
        self._format = format
        self._record = record
        self._leading: list[Json] = []
        self._history, self._returned = _EMPTY, _EMPTY
        """The whole history so far, and the last returned context with what came since."""

    async def follow(self, messages: Sequence[MessageLike]) -> None:
        """Appends the messages that are new."""
        payloads = [copy_json(payload) for message in messages for payload in unpack_reply(message)]
        decoded, format = decode_all(payloads, self._format)
        own = (index for index, message in enumerate(decoded) if message.role != "system" or is_note(message))
        first = next(own, len(decoded))
        self._leading = encode_all(decoded[:first], format) if first else []
        known = first + await self._known_length(payloads[first:])
        for part, usage in self._with_usage(split_notes(decoded[known:])):
            await self.sessions.append(self.session_id, part, usage=usage)
        self._history = self._history.extended(payloads[known:])
        self._returned = self._returned.extended(payloads[known:])

    def returned(self, context: Context, compacted: bool) -> Context:
        """The context for the caller, who may continue from it where it is not the caller's own list."""
        if compacted:
            self._returned = Prefix.of(PayloadIds(context.messages))
        context.messages = self._leading + context.messages
        context.system = self._record.get("system")
        return context

    async def _known_length(self, payloads: list[Json]) -> int:
        """How many of these messages the session already has; another conversation starts a new session."""
        ids = PayloadIds(payloads)
        for known in (self._history, self._returned):
            if known.starts(ids):
                return known.length
        if self.session_id and self._owns_sessions:
            await self.sessions.delete(self.session_id)
        record = dict(self._record)
        if self._leading and record.get("system") is None:
            record["system"] = self._leading
        self.session_id = (await self.sessions.create(**record)).id
        self._history, self._returned = _EMPTY, _EMPTY
        return 0

    def _with_usage(self, new: list[Message]) -> list[tuple[list[Message], Any]]:
        """Splits the new messages after the reply that the usage belongs to."""
        replies = [index for index, message in enumerate(new) if message.role == "assistant"]
        end = replies[0] + 1 if replies and self.usage is not None else 0
        while end and end < len(new) and new[end].role == "assistant":
            end += 1
        usage, self.usage = (self.usage, None) if end else (None, self.usage)
        return [(part, count) for part, count in ((new[:end], usage), (new[end:], None)) if part]


async def store_history(
    store: Log,
    messages: Sequence[Message],
    format: str,
    *,
    ids: Sequence[str] = (),
    session_id: str = HISTORY_SESSION,
) -> str:
    """Stores messages as a session, as they are, and returns its id.

    Event ids are `ids` if there is a distinct one for each message, else digests of the messages.
    """
    event_ids = ids if len(set(ids)) == len(messages) else PrefixIds(messages)
    events = []
    for index, message in enumerate(messages):
        payload = encode_all([message], format)[0] if message.raw is None else message.raw
        body = {"message": _storable(payload)} | ({} if format == COMMON else {"format": format})
        events.append(Event(event_ids[index], EventKind.MESSAGE, "", body))
    await store.create(SessionRecord(session_id, ""))
    await store.append(session_id, events)
    return session_id


def _storable(payload: Json) -> Json:
    """The payload with lone surrogates replaced: histories may contain them, stores cannot."""
    try:
        msgspec.json.encode(payload)
    except ValueError:
        plain: Json = from_json(replace_surrogates(to_json(payload)))
        return plain
    return payload
