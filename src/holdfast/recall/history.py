"""Recall without a session: a plain list of messages, searched and read as if it were one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..compaction.mending import mended, numbers_in
from ..compaction.prefix import PrefixIds
from ..events import Event, Kind, SessionRecord
from ..messages import COMMON, Json, Message, decode_all, encode_all, from_json, to_json
from ..service import SessionService
from ..stores import Log, MemoryStore
from ..summaries import readable
from .recall import Recall

HISTORY = "history"
"""The id of the session that stands for a list of messages."""


async def recall_messages(messages: Iterable[Any], *, format: str | None = None) -> Recall:
    """A `Recall` over messages that are in no session.

    Its references are the place of a message: `#12` is the twelfth, as notes about such a history have it.
    """
    decoded, name = decode_all(messages, format)
    store = MemoryStore()
    await remember(store, decoded, name, ids=_digests(decoded, mended(decoded, name)))
    return Recall(SessionService(store), HISTORY)


async def remember(
    store: Log,
    messages: Sequence[Message],
    format: str,
    *,
    ids: Sequence[str] = (),
    session_id: str = HISTORY,
) -> str:
    """Put messages into a store as a session; returns its id.

    Their ids are their digests, unless each comes with one of its own.
    """
    own = ids if len(set(ids)) == len(messages) else PrefixIds(messages)
    events = []
    for place, message in enumerate(messages):
        payload = encode_all([message], format)[0] if message.raw is None else message.raw
        body = {"message": _storable(payload)} | ({} if format == COMMON else {"format": format})
        events.append(Event(own[place], Kind.MESSAGE, "", body))
    await store.create(SessionRecord(session_id, ""))
    await store.append(session_id, events)
    return session_id


def _storable(payload: Json) -> Json:
    """With a sign in place of each half of a character: histories may hold those, and stores cannot."""
    try:
        msgspec.json.encode(payload)
    except ValueError:
        plain: Json = from_json(readable(to_json(payload)))
        return plain
    return payload


def _digests(given: Sequence[Message], history: Sequence[Message]) -> Sequence[str]:
    """The ids that `compact` gives to the same messages, also where it has to mend them first."""
    own, known = PrefixIds(given), PrefixIds(history)
    if history is given:
        return own
    ids: dict[int, str] = {}
    for place, number in enumerate(numbers_in(history, given, range(1, len(given) + 1))):
        ids.setdefault(number, known[place])
    return [ids.get(number, own[number - 1]) for number in range(1, len(given) + 1)]
