"""From a list of messages to a session in memory: followed as it grows, or stored once for recall."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import anyio.lowlevel
import anyio.to_thread
import msgspec

from ..context.events import Event, EventKind, SessionRecord, now
from ..errors import InvalidInput, UnknownSession
from ..follow import (
    CACHE_MARK,
    ChainedIds,
    Follower,
    GivenList,
    KnownObjects,
    content_digest,
    count_leading_system,
    without_cache_marks,
)
from ..messages import (
    COMMON,
    Json,
    Message,
    copy_json,
    decode_all,
    encode_all,
    from_json,
    require_message_list,
    split_notes,
    to_json,
    unpack_reply,
)
from ..messages.frameworks import OriginalObjects, framework_codec, framework_in, framework_of, restore_objects
from ..stores import Log
from ..summaries import replace_surrogates
from .live import Context
from .origin import ListOrigin, find_origin, is_redacted, read_in_thread
from .service import SessionService

if TYPE_CHECKING:
    from ..types import MessageLike

HISTORY_SESSION = "history"
"""The id of a session that holds a list of messages."""
_REREAD = 8
"""Newest messages whose content is compared as well: those that a caller may still change in place."""
_BATCH = 50
"""Messages appended before other tasks run."""


class _KnownList:
    """A list that the session has: the caller's own objects, and the ids of what they contain."""

    def __init__(self, objects: Sequence[Any] = (), log: Follower | None = None) -> None:
        self.objects = KnownObjects(objects)
        self.log = log or Follower()

    def extend(self, objects: Sequence[Any], payloads: Sequence[Json]) -> None:
        self.objects.extend(objects)
        self.log.ids += self.log.new_ids(GivenList(payloads), 0)


class MessageListSession:
    """Keeps a session in step with a caller's list: what a list grew by is appended.

    The caller may pass the whole history each time, or the last returned context and what came since. An edited list
    continues in a fork; in a service of its own, in a new session. Leading system messages may change: they are passed
    through, and are not part of the session. A list of the same objects as before costs what it grew by; any other
    list is compared by content.
    """

    def __init__(
        self,
        sessions: SessionService,
        format: str | None,
        stored: str | None = None,
        *,
        owned: bool = False,
        **record: Any,
    ) -> None:
        self._owns_sessions = owned
        self.sessions = sessions
        self.session_id = ""
        self._is_stored, self._root = stored is not None, stored or ""
        """Id of the session of which an edited list continues a fork; empty if there is none."""
        self.usage: Any = None
        """What the provider reported for the reply that comes next."""
        self._stored_record: SessionRecord | None = None
        """Of the stored session, as it was when it was last read."""
        self._mark = 0
        self._is_redacted = False
        """Whether content was redacted from the session: the caller's list still has it."""
        self._format = format
        self._detected = COMMON
        self._record = record
        self._leading: list[Json] = []
        self._history, self._returned = _KnownList(), _KnownList()
        """The whole history so far, and the last compacted context with what came since; empty before one."""
        self._passed = _KnownList()
        """An earlier context, from which the caller still continues: its next list begins with it, too."""
        self._matched: _KnownList | None = None
        """The one of these that the last list began with."""
        self._originals = OriginalObjects()
        self._newest: deque[tuple[Any, int]] = deque(maxlen=_REREAD)
        """The newest messages as passed, with the hash of what they contained."""
        self._marked: dict[int, Json] = {}
        """Messages with a mark for the prompt cache, which the log does not have, by their place in the history."""

    async def follow(self, messages: Sequence[MessageLike]) -> None:
        """Appends the messages that are new."""
        require_message_list(messages)
        messages = messages if isinstance(messages, list | tuple) else list(messages)
        await self._look_at_session()
        first = count_leading_system(messages)
        known = self._known_by_objects(messages, first)
        if known is None:
            known = await self._known_by_content(messages[first:])
        is_new, known = known is None, known or 0
        new = messages[first + known :]
        units, decoded = await read_in_thread(len(new), self._read, messages, first, known)
        if is_new:
            await self._start_session()
        ends, appended, added = list(accumulate(map(len, units))), 0, 0
        separate = split_notes(decoded)
        if len(separate) != len(decoded):  # known once all of it is appended
            ends = [len(separate)] * len(ends)
        for part, usage in self._with_usage(separate, continued=bool(known)):
            for place in range(0, len(part), _BATCH):
                batch = part[place : place + _BATCH]
                last = place + _BATCH >= len(part)
                await self.sessions.append(self.session_id, batch, usage=usage if last else None)
                appended += len(batch)
                until = bisect_right(ends, appended)
                self._add(new[added:until], units[added:until])
                added = until
                await anyio.lowlevel.checkpoint()

    def returned(self, context: Context, compacted: bool) -> Context:
        """The context for the caller, who may continue from it where it is not the caller's own list."""
        shown = context.messages
        differs = (
            compacted or self._is_redacted or len(shown) != len(self._history.log.ids)
        )  # a format may require messages in between
        log = Follower(ChainedIds(shown) if differs else ())
        for place, payload in self._marked.items():
            at = len(shown) - len(self._history.log.ids) + place
            if at >= 0 and content_digest(shown[at]) == content_digest(payload):
                shown[at] = copy_json(payload)
        context.messages = restore_objects(shown, context.format, self._originals)
        if differs:
            if self._matched is self._returned:
                self._passed = self._returned
            self._returned = _KnownList(context.messages, log)
        context.messages = restore_objects(self._leading, context.format, self._originals) + context.messages
        context.system = self._record.get("system")
        return context

    @property
    def _known_lists(self) -> tuple[_KnownList, ...]:
        return self._history, self._returned, self._passed

    def lose(self) -> bool:
        """Forgets a session that was deleted, so that the next list starts a new one; False if there was none."""
        had_session, self.session_id = bool(self.session_id), ""
        self._history, self._returned, self._passed = _KnownList(), _KnownList(), _KnownList()
        self.usage = None
        self._mark, self._is_redacted = 0, False
        if self._stored_record is not None:
            self._stored_record = msgspec.structs.replace(self._stored_record, created="")
        self._note_forms((), ())
        if not self._is_stored:
            self._root = ""
        return had_session or self._stored_record is not None

    async def _look_at_session(self) -> None:
        """Notes what others did to the session; raises UnknownSession if it was deleted, even if it is there again."""
        if not self.session_id:
            return
        record, known = await self.sessions.get(self.session_id), self._stored_record
        if known is not None and known.id == record.id and known.created not in ("", record.created):
            raise UnknownSession(record.id)
        self._stored_record = record
        mark = record.lanes[""].mark if "" in record.lanes else 0
        if mark != self._mark:
            self._is_redacted = await is_redacted(self.sessions, record.id)
            self._mark = mark

    async def _find_origin(self, given: GivenList) -> ListOrigin | None:
        known = (self.session_id, self._history.log) if self.session_id else None
        try:
            return await find_origin(self.sessions, self._root, given, always=self._is_stored, known=known)
        except UnknownSession:
            lost = self._stored_record
            if lost is None or self.session_id:
                raise
            anew = msgspec.structs.replace(
                lost, id=self._root, created=now(), parent=None, parent_seq=0, version=0, lanes={}
            )
            with suppress(InvalidInput):  # another process has created it
                await self.sessions.store.create(anew)
                self._stored_record = anew
            return await find_origin(self.sessions, self._root, given, always=self._is_stored)

    def _known_by_objects(self, messages: Sequence[Any], first: int) -> int | None:
        """How many messages after the system prompt the session has, if they are the objects of the last call."""
        for known in self._known_lists:
            if known.objects.is_start_of(messages, first):
                unchanged = all(_hash(_payloads(message)) == hashed for message, hashed in self._newest)
                self._matched = known
                return len(known.objects) if unchanged else None
        return None

    async def _known_by_content(self, messages: Sequence[Any]) -> int | None:
        """How many of these messages the session has, or the one that they continue, which is opened; else None."""
        known_lists = [known for known in self._known_lists if known.log.ids]
        if known_lists or self._root:
            units, given = await read_in_thread(len(messages), _digested, messages)
            ends = list(accumulate(map(len, units)))
        for known in known_lists:
            match = known.log.match(given)
            if match.logged == len(known.log.ids):
                count = bisect_right(ends, match.known)
                known.objects, self._matched = KnownObjects(messages[:count]), known
                self._note_forms(messages[:count], units[:count])
                return count
        if len(self._returned.objects):
            self.usage = None  # it is the size of a compacted context, which this list is not
        origin = await self._find_origin(given) if self._root else None
        if origin is None:
            return None
        self.session_id, log, shared = origin
        count = bisect_right(ends, shared)
        self._history, self._returned, self._passed = _KnownList(messages[:count], log), _KnownList(), _KnownList()
        self._note_forms(messages[:count], units[:count])
        return count

    def _read(self, messages: Sequence[Any], first: int, known: int) -> tuple[list[list[Json]], list[Message]]:
        """Returns the payloads of each new item and the decoded messages, and reads the system prompt before them."""
        units = [_payloads(message) for message in messages[first + known :]]
        payloads = list(map(without_cache_marks, chain.from_iterable(units)))
        decoded, format = decode_all(payloads, self._format)
        if self._format is None:
            if known and format in (COMMON, self._detected):
                format = self._detected
            else:  # all messages together decide
                _, format = decode_all(chain.from_iterable(map(_payloads, messages)))
            if format != COMMON:
                decoded, _ = decode_all(payloads, format)
        self._detected = format
        prompt = [_payloads(message) for message in messages[:first]]
        leading, format = decode_all(chain.from_iterable(prompt), None if format == COMMON else format)
        self._leading = encode_all(leading, format) if first else []
        for item, unit in zip(chain(messages[:first], messages[first + known :]), chain(prompt, units), strict=True):
            if framework_of(item) is not None:
                self._originals.add(item, unit)
        return units, decoded

    def _add(self, objects: Sequence[Any], units: Sequence[list[Json]]) -> None:
        """Remembers messages that the session has."""
        payloads = list(chain.from_iterable(units))
        self._history.extend(objects, payloads)
        for known in (self._returned, self._passed):
            if len(known.objects):
                known.extend(objects, payloads)
        self._note_forms(objects, units, added=True)

    def _note_forms(self, objects: Sequence[Any], units: Sequence[list[Json]], *, added: bool = False) -> None:
        """Remembers what the newest messages contained, and which ones had a mark for the prompt cache."""
        if not added:
            self._newest.clear()
            self._marked.clear()
        newest = zip(objects[-_REREAD:], units[-_REREAD:], strict=True)
        self._newest.extend((message, _hash(unit)) for message, unit in newest)
        payloads = list(chain.from_iterable(units))
        place = len(self._history.log.ids) - len(payloads)
        self._marked |= {place + at: payload for at, payload in enumerate(payloads) if CACHE_MARK in to_json(payload)}

    async def _start_session(self) -> None:
        """Starts a session for another conversation."""
        if self.session_id and self._owns_sessions:
            await self.sessions.delete(self.session_id)
        record = dict(self._record)
        if self._leading and record.get("system") is None:
            record["system"] = self._leading
        self.session_id = (await self.sessions.create(**record)).id
        self._root = "" if self._owns_sessions else self.session_id
        await anyio.to_thread.run_sync(self.sessions.estimator.measure_text, "loads the tokenizer")
        self._history, self._returned, self._passed = _KnownList(), _KnownList(), _KnownList()
        self._note_forms((), ())

    def _with_usage(self, new: list[Message], *, continued: bool) -> list[tuple[list[Message], Any]]:
        """Splits the new messages after the reply that the usage belongs to: the given one, or that in a reply."""
        if self.usage is None and continued:
            for index in reversed(range(len(new))):
                if (usage := _own_usage(new[index])) is not None:
                    return [
                        (part, count) for part, count in ((new[: index + 1], usage), (new[index + 1 :], None)) if part
                    ]
        end = 0 if self.usage is None else len(new)
        while end and new[end - 1].role != "assistant":
            end -= 1
        usage, self.usage = (self.usage, None) if end else (None, self.usage)
        return [(part, count) for part, count in ((new[:end], usage), (new[end:], None)) if part]


def _digested(messages: Sequence[Any]) -> tuple[list[list[Json]], GivenList]:
    """Returns the payloads of each message, and all of them with their ids."""
    units = [_payloads(message) for message in messages]
    return units, GivenList(list(chain.from_iterable(units))).digested()


def _payloads(message: Any) -> list[Json]:
    """Returns the payloads of one item of the list: a whole reply of an SDK may hold several."""
    return [copy_json(payload) for payload in unpack_reply(message)]


def _own_usage(message: Message) -> Any:
    """Returns the usage that a framework's reply holds."""
    name = None if message.raw is None or message.role != "assistant" else framework_in(message.raw)
    return None if name is None or message.raw is None else framework_codec(name).usage(message.raw[name])


def _hash(unit: list[Json]) -> int:
    """Returns a hash of payloads as they are; of a framework's messages, of their content."""
    return hash(tuple(to_json(one) if framework_in(one) is None else content_digest(one) for one in unit))


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
    event_ids = ids if len(set(ids)) == len(messages) else ChainedIds(messages)
    events = []
    for index, message in enumerate(messages):
        payload = encode_all([message], format)[0] if message.payload is None else message.payload
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
