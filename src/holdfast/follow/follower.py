"""Recognises a list of messages: how much of it a log has, where it leaves the log, and the ids of what is new.

A list is also recognised without reading it: by the caller's own objects, or by the bytes that it begins with.

Two tolerances concern the list: system messages at its beginning may change (LEADING_SYSTEM, `count_leading_system`),
and a reminder may move to its end (MOVED_REMINDER, `MovedReminder`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple

from ..messages import Json, Message, decode_all, is_note
from ..messages.frameworks import framework_of
from .digest import ChainedIds, chained_id, content_digest

_COMPARED = 256
"""Messages compared by identity in each step: so many of the newest, and so many earlier ones in turn."""
_SEPARATORS = (b",", b", ")
_NOTHING = memoryview(b"")
_SYSTEM_ROLES = ("system", "developer")
_MAX_SUFFIXES, _MAX_SUFFIX_CHARS, _MAX_COMPARED_CHARS = 300, 20_000, 10_000_000
"""Line breaks at the end of a message at which a reminder may begin, its length, and that of all texts with it."""


class ListMatch(NamedTuple):
    """How much of a list a log has. The list leaves the log where `logged` is less than the log's length."""

    known: int
    """Messages of the list that the log has."""
    logged: int
    """Messages of the log that these and the list's `start` stand for: more where a moved reminder stayed behind."""
    ids: Sequence[str]
    """Ids in the log of the known messages."""


class GivenList:
    """A list of messages that a log may have: digested as far as it is compared, and only once.

    `start` are the ids, in a log, of known messages before it that are not passed.
    """

    def __init__(self, items: Sequence[Json | Message], start: Sequence[str] = ()) -> None:
        self.items = items
        self.start = start
        self.ids = ChainedIds(items, before=start[-1] if start else "")
        self._earlier_forms: dict[tuple[int, str], frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self.start) + len(self.items)

    @property
    def first_id(self) -> str:
        """The id of the first message, `start` included."""
        return self.start[0] if self.start else self.ids[0]

    @property
    def newest(self) -> int:
        """Index of the newest message with words of the user."""
        return self._reminder.newest

    def digested(self) -> GivenList:
        """Computes all ids, and returns the list: for callers that do so in a thread."""
        self.ids[-1:]
        return self

    def after(self, before: str, index: int) -> Sequence[str]:
        """Returns the ids of the messages from an index on, after this id."""
        return ChainedIds(self.items[index:], before=before)

    def stands_for(self, index: int, before: str, id: str) -> bool:
        """Whether a message is the one with this id, without a reminder that has moved to the newest one."""
        if (index, before) not in self._earlier_forms:
            forms = map(content_digest, self._reminder.with_suffix(index))
            self._earlier_forms[index, before] = frozenset(chained_id(before, form) for form in forms)
        return id in self._earlier_forms[index, before]

    def has_moved(self, before: str, id: str) -> bool:
        """Whether the id is that of a reminder, a message of its own, that is now at the end of this list."""
        return self._last_digest is not None and chained_id(before, self._last_digest) == id

    @cached_property
    def _reminder(self) -> MovedReminder:
        return MovedReminder(self.items)

    @cached_property
    def _last_digest(self) -> str | None:
        message = self._reminder.follower()
        return None if message is None else content_digest(message)


class Follower:
    """The ids of the messages that a log has, by which a list is recognised."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self.ids = list(ids)
        self.has_reminder = False
        """Whether a list was recognised in which a reminder had moved."""

    def match(self, given: GivenList) -> ListMatch:
        """Returns how much of a list the log has: a common beginning, apart from reminders that have moved."""
        start = len(given.start)
        if (shared := common_length(self.ids, given.start)) < start:
            return ListMatch(0, shared, ())
        own = self.ids[start:] if start else self.ids
        known = common_length(own, given.ids)
        if known == min(len(own), len(given.ids)):
            return ListMatch(known, start + known, own[:known])
        return self._match_moved(given, own, known)

    def _match_moved(self, given: GivenList, own: Sequence[str], known: int) -> ListMatch:
        """Continues a match from the first message that differs, which one with a moved reminder may do."""
        ids, logged, moved = list(own[:known]), known, False
        contents = {}
        while known < len(given.items) and logged < len(own):
            before = own[logged - 1] if logged else given.start[-1] if given.start else ""
            if known not in contents:
                contents[known] = content_digest(given.items[known])
            if chained_id(before, contents[known]) == own[logged]:
                is_known = True
            elif given.stands_for(known, before, own[logged]):
                is_known = moved = True
            elif before and given.has_moved(before, own[logged]):
                is_known, moved = False, True
            else:
                break
            logged += 1
            if is_known:
                ids.append(own[logged - 1])
                known += 1
        self.has_reminder |= moved
        return ListMatch(known, len(given.start) + logged, ids)

    def new_ids(self, given: GivenList, known: int) -> list[str]:
        """Returns ids for the messages of a list after the known ones, as the log continues with them."""
        return list(given.after(self.ids[-1] if self.ids else "", known))


def common_length(some: Sequence[str], other: Sequence[str]) -> int:
    """Returns the length of the common beginning of chained ids: once they differ, they never agree again."""
    low, high = 0, min(len(some), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if some[middle - 1] == other[middle - 1] else (low, middle - 1)
    return low


def count_leading_system(messages: Sequence[Any]) -> int:
    """Counts the system messages that a list begins with, which may change; a note of a compaction is none of them."""
    return next((at for at, message in enumerate(messages) if not _is_leading(message)), len(messages))


def _is_leading(message: Any) -> bool:
    if framework_of(message) is None:
        role = message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)
        if role not in _SYSTEM_ROLES:
            return False
    decoded, _ = decode_all([message])
    return all(one.role == "system" and not is_note(one) for one in decoded)


class MovedReminder:
    """A reminder that a client moves along with the newest user message.

    aider ends its newest user message with its rules, or sends them as a system message after it; the same message
    has none of it in the next request.
    """

    def __init__(self, messages: Sequence[Json | Message]) -> None:
        self._messages = messages
        spoken = (at for at in reversed(range(len(messages))) if _is_spoken(self._payload(at)))
        self.newest = next(spoken, 0)
        """Index of the newest message with words of the user."""

    def _payload(self, index: int) -> Json:
        message = self._messages[index]
        if not isinstance(message, Message):
            return message
        return {"role": message.role, "content": message.text} if message.payload is None else message.payload

    def with_suffix(self, index: int) -> Iterator[Json]:
        """Yields a user message with each end of the newest one: as it was sent when it was the newest itself."""
        payload = self._payload(index)
        if index >= self.newest or not _is_spoken(payload):
            return
        name, blocks = _blocks(payload)
        _, newest = _blocks(self._payload(self.newest))
        for at in range(len(newest) - 1, 0, -1):
            yield payload | {name: [*blocks, *newest[at:]]}
        own, last = blocks[-1], newest[-1]
        if isinstance(own.get("text"), str) and isinstance(text := last.get("text"), str):
            start, first = len(text), max(0, len(text) - _MAX_SUFFIX_CHARS)
            for _ in range(min(_MAX_SUFFIXES, _MAX_COMPARED_CHARS // (len(own["text"]) + _MAX_SUFFIX_CHARS))):
                if (start := text.rfind("\n", first, start)) < 0:
                    break
                yield payload | {name: [*blocks[:-1], own | {"text": own["text"] + text[start:]}]}

    def follower(self) -> Json | None:
        """Returns the message at the end that followed an earlier user message, if the list ends with one."""
        last = len(self._messages) - 1
        if last < 1 or self._payload(last).get("role") not in ("user", *_SYSTEM_ROLES):
            return None
        return self._payload(last) if _is_spoken(self._payload(last - 1)) else None


def _is_spoken(payload: Json) -> bool:
    """Whether this is a message of the user that has text: not only results of tools."""
    return payload.get("role") == "user" and any("text" in block for block in _blocks(payload)[1])


def _blocks(payload: Json) -> tuple[str, list[Json]]:
    """Returns the blocks of a message and the field that has them; of a text alone, that text as a block."""
    name = "parts" if "parts" in payload else "content"
    content = payload.get(name)
    if isinstance(content, str):
        return name, [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    return name, [block for block in blocks if isinstance(block, dict)]


# -- without reading it ------------------------------------------------------------------------------------------------


class KnownObjects:
    """The objects of a caller's last list, by which a list that grew is recognised cheaply."""

    def __init__(
        self, objects: Iterable[Any] = (), same: Callable[[Sequence[Any], Sequence[Any]], bool] | None = None
    ) -> None:
        self._objects = list(objects)
        self._same = same
        self._next = 0

    def __len__(self) -> int:
        return len(self._objects)

    def extend(self, objects: Iterable[Any]) -> None:
        """Adds objects at the end."""
        self._objects += objects

    def is_start_of(self, messages: Sequence[Any], first: int = 0) -> bool:
        """Whether a list from `first` on starts with these objects.

        They are compared by `same`, or else by identity in constant work: of a long list the newest each time and the
        others in turn.
        """
        known = len(self._objects)
        if not known or len(messages) - first < known:
            return False
        if self._same is not None:
            return self._same(list(messages[first : first + known]), self._objects)
        start, self._next = self._next, 0 if self._next + _COMPARED >= known else self._next + _COMPARED
        stretches = (max(0, known - _COMPARED), known), (start, min(known, start + _COMPARED))
        return all(
            all(map(is_, messages[first + begin : first + end], self._objects[begin:end])) for begin, end in stretches
        )


class KnownBytes:
    """How a client's last list began, as sent: the next one usually begins with the same bytes."""

    def __init__(self, start: memoryview = _NOTHING, count: int = 0) -> None:
        self._start = start
        self.count = count
        """Messages of the log that the beginning stands for."""

    def __len__(self) -> int:
        return len(self._start)

    @property
    def held_bytes(self) -> int:
        """Bytes of the request that is kept for it."""
        return memoryview(self._start.obj).nbytes

    def rest_of(self, raw: bytes) -> bytes | None:
        """Returns the JSON list of what follows this beginning; None if a list does not begin with it."""
        if not self.count or not raw.startswith(self._start):
            return None
        rest = raw[len(self._start) :].lstrip()
        return b"[" + rest.removeprefix(b",") if rest[:1] in (b",", b"]") else None

    def extended(self, raw: bytes, items: Sequence[bytes], count: int) -> KnownBytes:
        """Returns the beginning of a list up to and with these items, which follow this one; itself if they do not."""
        at = len(self._start)
        added = ((separator if at else b"[") + separator.join(items) for separator in _SEPARATORS)
        end = next((at + len(text) for text in added if items and raw.startswith(text, at)), None)
        return self if end is None else KnownBytes(memoryview(raw)[:end], count)
