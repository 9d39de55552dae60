"""From a list of messages to a session in memory: followed as it grows, or stored once for recall."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain
from operator import is_
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

import anyio.lowlevel
import anyio.to_thread
import msgspec

from ..compaction.prefix_ids import PayloadIds, Prefix, PrefixIds
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
    require_message_list,
    split_notes,
    to_json,
    unpack_reply,
)
from ..messages.frameworks import OriginalObjects, framework_codec, framework_in, framework_of, restore_objects
from ..stores import Log
from ..summaries import replace_surrogates
from .list_origin import find_origin
from .live import Context
from .service import SessionService

if TYPE_CHECKING:
    from ..types import MessageLike

_Arguments = TypeVarTuple("_Arguments")
_Read = TypeVar("_Read")
HISTORY_SESSION = "history"
"""The id of a session that holds a list of messages."""
_EMPTY = Prefix(0, "")
_SYSTEM_ROLES = ("system", "developer")
_COMPARED = 256
"""Messages compared by identity in each step: so many of the newest, and so many earlier ones in turn."""
_REREAD = 8
"""Newest messages whose content is compared as well: those that a caller may still change in place."""
_BATCH = 50
"""Messages appended before other tasks run."""
_THREAD_FROM = 200
"""New messages from which they are read in a thread."""


class _KnownList:
    """A list that the session has: its digest, and the caller's own objects, by which it is recognised cheaply."""

    def __init__(self, objects: Sequence[Any] = (), prefix: Prefix = _EMPTY) -> None:
        self.objects = list(objects)
        self.prefix = prefix
        self._next = 0

    def extend(self, objects: Sequence[Any], payloads: Sequence[Json]) -> None:
        self.objects += objects
        self.prefix = self.prefix.extended(payloads)

    def is_start_of(self, messages: Sequence[Any], first: int) -> bool:
        """Whether the list from `first` on starts with the same objects; constant work.

        Of a long list the newest are compared each time and the others in turn.
        """
        known = len(self.objects)
        if not known or len(messages) - first < known:
            return False
        start, self._next = self._next, 0 if self._next + _COMPARED >= known else self._next + _COMPARED
        stretches = (max(0, known - _COMPARED), known), (start, min(known, start + _COMPARED))
        return all(
            all(map(is_, messages[first + begin : first + end], self.objects[begin:end])) for begin, end in stretches
        )


class MessageListSession:
    """Keeps a session in step with a caller's list: a list that grows is appended, a rewritten one starts anew.

    The caller may pass the whole history each time, or the last returned context and what came since. Leading system
    messages may change: they are passed through, and are not part of the session. A list of the same objects as
    before costs what it grew by; any other list is compared by content.
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
        self._stored = stored
        """Id of a stored session that the list continues, instead of sessions of its own."""
        self.usage: Any = None
        """What the provider reported for the reply that comes next."""
        self._format = format
        self._detected = COMMON
        self._record = record
        self._leading: list[Json] = []
        self._history, self._returned = _KnownList(), _KnownList()
        """The whole history so far, and the last compacted context with what came since; empty before one."""
        self._originals = OriginalObjects()
        self._newest: deque[tuple[Any, str]] = deque(maxlen=_REREAD)
        """The newest messages as passed, with the digest of what they contained."""

    async def follow(self, messages: Sequence[MessageLike]) -> None:
        """Appends the messages that are new."""
        require_message_list(messages)
        messages = messages if isinstance(messages, list | tuple) else list(messages)
        own = (index for index, message in enumerate(messages) if not self._is_leading(message))
        first = next(own, len(messages))
        known = self._known_length(messages, first)
        if known is None:
            prefixes = self._history.prefix, self._returned.prefix
            known = await _read_in_thread(len(messages), _matching_length, messages[first:], prefixes)
        if not known and self._returned.objects:
            self.usage = None  # it is the size of a compacted context, which this list is not
        if not known and self._stored is not None:
            known = await self._find_stored(messages[first:])
        new = messages[first + known :]
        units, decoded = await _read_in_thread(len(new), self._read, messages, first, known)
        if not known and self._stored is None:
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
        prefix = Prefix.of(PayloadIds(context.messages)) if compacted else _EMPTY
        context.messages = restore_objects(context.messages, context.format, self._originals)
        if compacted:
            self._returned = _KnownList(context.messages, prefix)
        context.messages = restore_objects(self._leading, context.format, self._originals) + context.messages
        context.system = self._record.get("system")
        return context

    def _is_leading(self, message: Any) -> bool:
        """Whether this is a system message that is not a note: passed through if it leads the list."""
        return _is_system(message) and not any(map(is_note, decode_all(_payloads(message), self._format)[0]))

    def _known_length(self, messages: Sequence[Any], first: int) -> int | None:
        """How many messages after the system prompt the session has, if they are the objects of the last call."""
        for known in (self._history, self._returned):
            if known.is_start_of(messages, first):
                unchanged = all(_digest(_payloads(message)) == digest for message, digest in self._newest)
                return len(known.objects) if unchanged else None
        return None

    def _read(self, messages: Sequence[Any], first: int, known: int) -> tuple[list[list[Json]], list[Message]]:
        """Returns the payloads of each new item and the decoded messages, and reads the system prompt before them."""
        units = [_payloads(message) for message in messages[first + known :]]
        payloads = list(chain.from_iterable(units))
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
        if self._returned.objects:
            self._returned.extend(objects, payloads)
        newest = zip(objects[-_REREAD:], units[-_REREAD:], strict=True)
        self._newest.extend((message, _digest(unit)) for message, unit in newest)

    async def _find_stored(self, messages: Sequence[Any]) -> int:
        """Opens the stored session that these messages continue; returns how many of them it has."""
        units = [_payloads(message) for message in messages]
        ends = list(accumulate(map(len, units)))
        payloads = list(chain.from_iterable(units))
        self.session_id, length = await find_origin(self.sessions, self._stored or "", payloads)
        self._reset()
        known = bisect_right(ends, length)
        self._add(messages[:known], units[:known])
        return known

    async def _start_session(self) -> None:
        """Starts a session for another conversation."""
        if self.session_id and self._owns_sessions:
            await self.sessions.delete(self.session_id)
        record = dict(self._record)
        if self._leading and record.get("system") is None:
            record["system"] = self._leading
        self.session_id = (await self.sessions.create(**record)).id
        await anyio.to_thread.run_sync(self.sessions.estimator.measure_text, "loads the tokenizer")
        self._reset()

    def _reset(self) -> None:
        self._history, self._returned = _KnownList(), _KnownList()
        self._newest.clear()

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


async def _read_in_thread(size: int, read: Callable[[*_Arguments], _Read], *arguments: *_Arguments) -> _Read:
    """Calls a function that reads so many messages, in a thread if there are many."""
    if size < _THREAD_FROM:
        return read(*arguments)
    return await anyio.to_thread.run_sync(read, *arguments)


def _matching_length(messages: Sequence[Any], known: Sequence[Prefix]) -> int:
    """How many of these messages a known list has, by content; 0 for another conversation."""
    units = [_payloads(message) for message in messages]
    ids, ends = PayloadIds(list(chain.from_iterable(units))), list(accumulate(map(len, units)))
    return next((bisect_right(ends, prefix.length) for prefix in known if prefix.starts(ids)), 0)


def _payloads(message: Any) -> list[Json]:
    """Returns the payloads of one item of the list: a whole reply of an SDK may hold several."""
    return [copy_json(payload) for payload in unpack_reply(message)]


def _own_usage(message: Message) -> Any:
    """Returns the usage that a framework's reply holds."""
    name = None if message.raw is None or message.role != "assistant" else framework_in(message.raw)
    return None if name is None or message.raw is None else framework_codec(name).usage(message.raw[name])


def _digest(unit: list[Json]) -> str:
    return PayloadIds.digest("", unit)


def _is_system(message: Any) -> bool:
    if framework_of(message) is not None:
        return all(one.role == "system" for one in decode_all(_payloads(message))[0])
    role = message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)
    return role in _SYSTEM_ROLES


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
