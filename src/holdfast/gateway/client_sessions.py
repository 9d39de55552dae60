"""Finds the session of a request: a client's list of messages is followed in the log, an edited one as a fork."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import anyio
import anyio.to_thread
import msgspec

from ..compaction.size import Size
from ..context.events import EventKind
from ..errors import DuplicateEvent, InvalidInput, StaleVersion, UnknownEvent, UnknownSession
from ..follow import CACHE_MARK, Follower, GivenList, KnownBytes, ListMatch, count_leading_system, without_cache_marks
from ..messages import Json, decode_one, is_from_user
from ..sessions import SessionService
from ..sessions.origin import is_listed, is_redacted, nearest, with_forks
from ..stores import Slice
from ..tokens import Usage
from .protocols import RequestBody, split_list
from .thinking import has_thinking, strip_thinking

OPEN_CLIENT_SESSIONS = 1_000
"""Conversations kept in memory; others are found again in the store."""
MAX_START_BYTES = 256 * 2**20
"""Bytes of requests kept in memory, by which the next ones are recognised."""
_THREAD_FROM_BYTES = 2**17
"""Size from which a list that is not recognised by its beginning is read in a thread."""
_APPEND_TRIES = 10
"""Times that other writers may be faster than an append."""
_APPENDED_AT_ONCE = 500
"""Messages of one write: other conversations have their turn between two."""
_LEADING_LIMIT = 20
"""System messages that a list may begin with."""
_FIRST_MESSAGES = 3
"""Messages that a conversation may begin with before its first reply: an environment, a project's rules, a task."""
_LAST_MESSAGES = 10
"""Newest messages of a log among which there is one of the client's, if it wrote any after a compaction."""
_MARK, _THINKING = CACHE_MARK.encode(), b"thinking"
_NO_START = KnownBytes()


class Caller(msgspec.Struct, frozen=True):
    """Who sends a request: conversations of different callers never meet."""

    owner: str
    key: str
    """The client's own name of the conversation; empty if it sends none."""
    format: str


class MessageList:
    """A client's list of messages; what was parsed before is not parsed again."""

    def __init__(
        self,
        items: Sequence[bytes],
        leading: Sequence[bytes],
        *,
        start: KnownBytes = _NO_START,
        ids: Sequence[str] = (),
        checkpoint: str = "",
    ) -> None:
        self.items = items
        """The messages after `start`, as sent."""
        self.leading = leading
        """System messages that the list begins with: forwarded as they are, and not part of the log."""
        self.start = start
        """The part of the list that is known and not parsed."""
        self.checkpoint = checkpoint
        """Event of the compaction whose item the list begins with, if any."""
        self.messages = [_decode(item) for item in items]
        self.given = GivenList(self.messages, ids)
        """The messages to be recognised, after the ids of those in `start`."""

    @classmethod
    def read(cls, raw: bytes) -> MessageList:
        """Parses a whole list."""
        items = split_list(raw)
        leading = count_leading_system([_decode(item) for item in items[:_LEADING_LIMIT]])
        return cls(items[leading:], items[:leading])

    @property
    def leading_messages(self) -> list[Json]:
        return [_decode(item) for item in self.leading]

    def after(self, known: int) -> list[Json]:
        """Returns the parsed messages after the known ones, without marks for the prompt cache."""
        return [without_cache_marks(message) for message in self.messages[known:]]


async def _read_whole(raw: bytes) -> MessageList:
    """Parses a whole list and computes its ids; in a thread if it is long."""

    def read() -> MessageList:
        given = MessageList.read(raw)
        given.given.digested()
        return given

    return read() if len(raw) < _THREAD_FROM_BYTES else await anyio.to_thread.run_sync(read)


def _decode(item: bytes) -> Json:
    message = msgspec.json.decode(item)
    if not isinstance(message, dict):
        raise InvalidInput("A message of the request is not an object.")
    return message


class ClientSession:
    """One conversation of a client, and how much of it the log has."""

    def __init__(self, session_id: str, caller: Caller, log: Follower) -> None:
        self.session_id = session_id
        self.caller = caller
        self.log = log
        """Ids of the client's messages that the log has."""
        self.usage: Usage | None = None
        """Token counts of the newest reply, which the client sends back with its next request."""
        self.sent_after: str | None = None
        """The compaction in force when the last request was forwarded, empty if there was none; None if not known.

        Thinking and usage of the reply to that request count only under it.
        """
        self.asked = 0
        """Hash of model, system prompt and tools of the last request."""
        self.system = 0
        """Hash of the system prompt of the last request."""
        self.has_tools = False
        """Whether that request had tools."""
        self.created = ""
        """When the session was created: one that was deleted and created again is another."""
        self.is_redacted = False
        """Whether content was redacted: the client's list still has it, and the log is sent in its place."""
        self.version = 0
        """Up to which event the log was read."""
        self.mark: int | None = None
        """The last compaction, undo or redaction of the log, as far as it was looked at."""
        self.size: Size | None = None
        """Size of the log as far as `version`, if it was asked for since."""
        self.not_due_at = -1
        """The version at which no compaction was due."""
        self.writing: asyncio.Task[bool] | None = None
        """The messages of the last request on their way to the log, if it was forwarded first."""
        self.lock = anyio.Lock()
        self.start = _NO_START
        """How the last list began."""
        self._leading: Sequence[bytes] = ()

    def resume(self, raw: bytes) -> MessageList | None:
        """Parses what follows the messages of the last request; None if the list does not begin with them."""
        if (rest := self.start.rest_of(raw)) is None:
            return None
        return MessageList(split_list(rest), self._leading, start=self.start, ids=self.log.ids[: self.start.count])

    def remember(self, raw: bytes, given: MessageList, ids: Sequence[str]) -> None:
        """Remembers how the list begins, up to the first message that the client will change: one with a mark, or
        one with a reminder; `ids` are those of its messages.
        """
        changing = (at for at, item in enumerate(given.items) if _MARK in item)
        fixed = min(next(changing, len(ids)), given.given.newest if self.log.has_reminder else len(ids))
        count = self.log.ids.index(ids[fixed - 1], given.start.count) + 1 if fixed else given.start.count
        items = given.items[:fixed]
        self._leading = given.leading
        self.start = given.start.extended(raw, items if len(given.start) else [*given.leading, *items], count)


class SessionMatch(msgspec.Struct):
    """A list of messages and the open conversation that it continues, if any."""

    caller: Caller
    given: MessageList
    conversation: ClientSession | None


class SessionPlace(msgspec.Struct):
    """A list that begins with a place in a session: a request has an item or a name of it, and what follows."""

    session: str
    last: str
    """Id of the newest message of the session before it."""
    after: list[Json]
    leading: list[Json] = []
    """System messages that the list begins with."""
    checkpoint: str = ""
    """The compaction after that message, if the list begins with it."""


class ClientSessions:
    """Finds the conversation that a list of messages continues, in memory or in the store; appends what is new."""

    def __init__(
        self, sessions: SessionService, waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """`waiting` is entered while a request waits for the one before it."""
        self.sessions = sessions
        self._waiting = waiting
        self._open: OrderedDict[str, ClientSession] = OrderedDict()
        self._by_caller: dict[Caller, list[ClientSession]] = {}

    async def match(self, caller: Caller, body: RequestBody) -> SessionMatch:
        """Finds the open conversation that shares most with a list, when its last messages are written."""
        found = await self._match(caller, body)
        writing = None if found.conversation is None else found.conversation.writing
        if writing is None or writing.done():
            return found
        with self._waiting():
            await asyncio.wait((writing,))
        return await self._match(caller, body)

    async def _match(self, caller: Caller, body: RequestBody) -> SessionMatch:
        raw = body.messages
        open_ones = self._by_caller.get(caller, [])
        resumed = [(one, given) for one in open_ones if (given := one.resume(raw)) is not None]
        if resumed:
            conversation, given = max(resumed, key=lambda found: len(found[1].start))
            if conversation.log.match(given.given).logged == len(conversation.log.ids):
                return SessionMatch(caller, given, conversation)
        else:
            given = await _read_whole(raw)
        system = _system(given, body)  # of equal ones, the one with the same system prompt
        alike = sorted(self._by_caller.get(caller, []), key=lambda one: one.system != system)
        return SessionMatch(caller, given, nearest(alike, given.given, lambda one: one.log))

    async def match_place(self, caller: Caller, place: SessionPlace) -> SessionMatch | None:
        """Finds the conversation that a list continues from a place in it; None if it is not in the store."""
        known = self._open.get(place.session)
        if known is None or place.last not in known.log.ids:
            if (loaded := await self._load_own(place.session, caller)) is None:
                return None
            known = known or loaded
            known.log = loaded.log
        if known.caller.owner != caller.owner or place.last not in known.log.ids:
            return None
        ids = known.log.ids[: known.log.ids.index(place.last) + 1]
        items, leading = (list(map(msgspec.json.encode, part)) for part in (place.after, place.leading))
        given = MessageList(items, leading, ids=ids, checkpoint=place.checkpoint)
        if place.session not in self._open:
            known = await self._nearest(place.session, caller, given) or known
        candidates = self._by_caller.get(known.caller, [known])
        return SessionMatch(caller, given, nearest(candidates, given.given, lambda one: one.log) or known)

    async def _load_own(self, session_id: str, caller: Caller) -> ClientSession | None:
        """Reads a session of the store if it belongs to the caller's owner."""
        if not session_id:
            return None
        try:
            record = await self.sessions.get(session_id)
        except UnknownSession:
            return None
        return await self._load(session_id, caller) if (record.owner or "") == caller.owner else None

    def has_side_call_form(self, match: SessionMatch, body: RequestBody) -> bool:
        """Whether the form of a request shows that it is about a conversation, and no part of it.

        It has no tools and another system prompt than the conversation, and is its list with one more question, or a
        single message under the client's own name of it.
        """
        given, found = match.given, match.conversation
        if body.has_tools:
            return False
        if found is not None:
            shared = found.log.match(given.given)
            new = (decode_one(message, match.caller.format) for message in given.messages[shared.known :])
            asked = list(filter(is_from_user, new))
            is_extension = shared.logged == len(found.log.ids) and len(asked) <= 1 and len(given.items) > shared.known
            others = [found] if is_extension else []
        else:
            is_single = bool(match.caller.key) and len(given.items) == 1
            others = self._by_caller.get(match.caller, []) if is_single else []
        return any(one.has_tools and one.system != _system(given, body) for one in others)

    async def has_more(self, match: SessionMatch) -> bool:
        """Whether a conversation has messages after a list: the client sends only a part of it."""
        found, given = await self.find(match), match.given.given
        if found is None:
            return False
        shared = found.log.match(given)
        return shared.known == len(given.items) and shared.logged < len(found.log.ids)

    async def find(self, match: SessionMatch) -> ClientSession | None:
        """Returns the conversation that a list continues, also one that is only in the store; writes nothing."""
        conversation = await self._known(match)
        if conversation is not None:
            async with conversation.lock:
                await self._look_at(conversation)
        return conversation

    async def _known(self, match: SessionMatch) -> ClientSession | None:
        return match.conversation or (await self._find_stored(match) if match.given.given else None)

    async def follow(self, match: SessionMatch, body: RequestBody) -> ClientSession | None:
        """Returns the conversation with all messages of the list appended; None for a list of system messages."""
        if not match.given.given:
            return None
        conversation = await self._known(match)
        if conversation is not None and self._begins_another(conversation, match.given, body):
            id = _session_id(match.caller, f"{match.given.given.first_id}{_prompt_digest(match.given, body)}")
            conversation = self._open.get(id) or await self._create(match, body, id)
        conversation = conversation or await self._create(match, body)
        for _ in range(_APPEND_TRIES):
            async with conversation.lock:
                await self._look_at(conversation)
                shared = conversation.log.match(match.given.given)
                if shared.logged < len(conversation.log.ids):  # it went back or was edited
                    conversation = await self._fork(conversation, shared, match.given)
                    continue
                try:
                    await self._append(conversation, shared, match.given, body.messages)
                except StaleVersion:  # another replica has written since: what it wrote may have been edited away here
                    continue
                except DuplicateEvent:  # another replica, or an append that was not waited for, has written some
                    conversation.log = (await self._load(conversation.session_id, match.caller)).log
                    continue
                await self._note_prompt(conversation, match.given, body)
                break
        if conversation.session_id in self._open:
            self._open.move_to_end(conversation.session_id)
        self._close_oldest()
        return conversation

    async def is_extended(self, match: SessionMatch, body: RequestBody) -> bool:
        """Whether a list only adds messages to an open conversation, to which nobody else has written since."""
        conversation, given = match.conversation, match.given
        if conversation is None or conversation.is_redacted or conversation.asked != _asked(given, body):
            return False
        if not len(given.start) or conversation.log.match(given.given).logged < len(conversation.log.ids):
            return False
        record = await self.sessions.get(conversation.session_id)
        return (record.created, record.version) == (conversation.created, conversation.version)

    async def _look_at(self, conversation: ClientSession) -> None:
        """Notes what others did to a session; raises UnknownSession if it was deleted, even if it is there again."""
        record = await self.sessions.get(conversation.session_id)
        if conversation.created not in ("", record.created):
            raise UnknownSession(record.id)
        if record.version != conversation.version:
            since = Slice(kinds=(EventKind.MESSAGE,), after=conversation.version)
            if events := await self.sessions.store.read(record.id, since):
                known = set(conversation.log.ids)
                conversation.log.ids += [event.id for event in filter(is_listed, events) if event.id not in known]
            conversation.version = record.version
        conversation.created, mark = record.created, record.lanes[""].mark if "" in record.lanes else 0
        if mark == conversation.mark:
            return
        conversation.is_redacted = await is_redacted(self.sessions, record.id)
        conversation.mark = mark

    def forget(self, session_id: str) -> None:
        """Closes a conversation whose session was deleted."""
        if session_id in self._open:
            self._close(session_id)

    async def _note_prompt(self, conversation: ClientSession, given: MessageList, body: RequestBody) -> None:
        """Stores the model, and the size of system prompt and tools, where they are not those of the last request."""
        asked = _asked(given, body)
        if asked != conversation.asked:
            await self.sessions.set_window(conversation.session_id, model=body.model)
            system = body.system or given.leading_messages or None
            await self.sessions.set_prompt(conversation.session_id, system=system, tools=body.value("tools"))
            conversation.asked = asked
            conversation.system, conversation.has_tools = _system(given, body), body.has_tools

    async def _append(self, conversation: ClientSession, match: ListMatch, given: MessageList, raw: bytes) -> None:
        """Appends the new messages of a list that continues the conversation."""
        new, ids = given.after(match.known), conversation.log.new_ids(given.given, match.known)
        may_think = any(_THINKING in item for item in given.items[match.known :])
        if may_think and any(map(has_thinking, new)) and await self._was_compacted_since(conversation):
            new = list(map(strip_thinking, new))
        at = _reply_end(new) if conversation.usage is not None else 0
        parts = [(0, at, conversation.usage)] if at else []
        parts += [(start, start + _APPENDED_AT_ONCE, None) for start in range(at, len(new), _APPENDED_AT_ONCE)]
        for start, end, counts in parts:
            messages, names = new[start:end], ids[start:end]
            if messages:
                made_on = conversation.sent_after
                done = await self.sessions.append(
                    conversation.session_id,
                    messages,
                    id=names,
                    after=conversation.version,
                    usage=counts,
                    made_on=made_on,
                )
                if counts is not None:
                    conversation.usage = None
                conversation.log.ids += names
                conversation.version = done[-1].seq
        if len(given.start) or not given.given.start:  # the request has the whole list
            conversation.remember(raw, given, [*match.ids, *ids])

    async def _was_compacted_since(self, conversation: ClientSession) -> bool:
        """Whether a reply was made before the newest compaction; also if that is not known."""
        session_id = conversation.session_id
        if conversation.sent_after is not None:
            return (await self.sessions.size(session_id)).checkpoint != conversation.sent_after
        newest = await self.sessions.events(session_id, kind=EventKind.COMPACTION, last=1)
        messages = await self.sessions.events(session_id, kind=EventKind.MESSAGE, last=_LAST_MESSAGES)
        return bool(newest) and not any(event.seq > newest[0].seq and is_listed(event) for event in messages)

    async def _find_stored(self, match: SessionMatch) -> ClientSession | None:
        """Opens the session of a conversation that is not in memory, or the fork that shares most with the list."""
        return await self._nearest(_session_id(match.caller, match.given.given.first_id), match.caller, match.given)

    async def _nearest(self, root: str, caller: Caller, given: MessageList) -> ClientSession | None:
        """Opens this session or the fork of it that shares most with a list; None if there is no such session."""
        try:
            names = await with_forks(self.sessions, root)
        except UnknownSession:
            return None
        found = [await self._load(name, caller) for name in names]
        return self._add(nearest(found, given.given, lambda one: one.log) or found[0])

    def _begins_another(self, conversation: ClientSession, given: MessageList, body: RequestBody) -> bool:
        """Whether a list without any reply, and with another system prompt, only begins as a conversation did."""
        if conversation.system in (0, _system(given, body)) or given.given.start or len(given.items) > _FIRST_MESSAGES:
            return False
        return len(conversation.log.ids) > len(given.items) and not any(map(is_reply, given.messages))

    async def _create(self, match: SessionMatch, body: RequestBody, id: str = "") -> ClientSession:
        caller, given = match.caller, match.given
        id = id or _session_id(caller, given.given.first_id)
        try:
            record = await self.sessions.create(
                id=id,
                system=body.system or given.leading_messages or None,
                tools=body.value("tools"),
                format=caller.format,
                model=body.model or None,
                owner=caller.owner or None,
                metadata={"gateway": caller.key},
            )
        except InvalidInput:
            return self._add(await self._load(id, caller))  # another replica has created it
        conversation = self._add(ClientSession(id, caller, Follower()))
        conversation.created = record.created
        return conversation

    async def _fork(self, source: ClientSession, match: ListMatch, given: MessageList) -> ClientSession:
        ids = source.log.ids[: match.logged]
        edit = given.given.after(ids[-1], match.known)[:1]
        name = _session_id(source.caller, f"{source.session_id}{ids[-1]}{''.join(edit)}")
        try:
            at_item = given.checkpoint and not match.known and match.logged == len(given.given.start)
            try:
                await self.sessions.fork(source.session_id, given.checkpoint if at_item else ids[-1], id=name)
            except UnknownEvent:  # the session was deleted, and created again without this compaction
                await self.sessions.fork(source.session_id, ids[-1], id=name)
            fork = self._add(ClientSession(name, source.caller, Follower(ids)))
        except InvalidInput:
            fork = self._add(await self._load(name, source.caller))  # this edit was seen before
        return fork

    async def _load(self, session_id: str, caller: Caller) -> ClientSession:
        events = await self.sessions.store.read(session_id, Slice(kinds=(EventKind.MESSAGE,)))
        return ClientSession(session_id, caller, Follower(event.id for event in filter(is_listed, events)))

    def _add(self, conversation: ClientSession) -> ClientSession:
        if (known := self._open.get(conversation.session_id)) is not None:
            return known
        self._open[conversation.session_id] = conversation
        self._by_caller.setdefault(conversation.caller, []).append(conversation)
        return conversation

    def _close_oldest(self) -> None:
        """Closes the least recently used conversations, but never the newest."""
        kept = sum(one.start.held_bytes for one in self._open.values())
        while len(self._open) > 1 and (len(self._open) > OPEN_CLIENT_SESSIONS or kept > MAX_START_BYTES):
            oldest = next(iter(self._open))
            kept -= self._open[oldest].start.held_bytes
            self._close(oldest)

    def _close(self, session_id: str) -> None:
        closed = self._open.pop(session_id)
        siblings = self._by_caller[closed.caller]
        siblings.remove(closed)
        if not siblings:
            del self._by_caller[closed.caller]


def _system(given: MessageList, body: RequestBody) -> int:
    return hash((body.field(body.protocol.system or ""), *given.leading))


def _asked(given: MessageList, body: RequestBody) -> int:
    return hash((body.model, body.field(body.protocol.system or ""), body.field("tools"), *given.leading))


def _prompt_digest(given: MessageList, body: RequestBody) -> str:
    return hashlib.blake2b(
        b"\0".join((body.field(body.protocol.system or ""), *given.leading)), digest_size=8
    ).hexdigest()


def _session_id(caller: Caller, text: str) -> str:
    given = "\0".join((caller.owner, caller.key, caller.format, text))
    return f"gw-{hashlib.blake2b(given.encode(errors='surrogatepass'), digest_size=12).hexdigest()}"


def _reply_end(messages: Sequence[Json]) -> int:
    """Returns the index after the first reply of the model; 0 if there is none."""
    first = next((at for at, message in enumerate(messages) if is_reply(message)), None)
    if first is None:
        return 0
    return next((at for at in range(first, len(messages)) if not is_reply(messages[at])), len(messages))


def is_reply(message: Json) -> bool:
    """Whether the model wrote a message: a reply, a call or reasoning."""
    role, kind = message.get("role"), message.get("type", "")
    return role in ("assistant", "model") or (role is None and not kind.endswith("_output"))
