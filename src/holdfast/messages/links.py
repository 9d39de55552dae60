"""Links: what belongs together on the wire, the units that it forms, and the cuts between them.

Edges join a call and its result, a program and the calls that it makes, an approval request and its response,
reasoning and the item that it led to, a reference to a stored item and the output of that item. A unit is a connected
run of messages. A cut between two units leaves both sides valid. As events are appended, `Pairing` completes or drops
what would be left without its other end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING

import msgspec

from .codec import CODECS, codec_for
from .edit import as_user, drop_parts, fold_edits, rename_calls
from .frame import is_from_user
from .openai_responses import REFERENCE, REFERENCE_ITEM, may_have_output, needs_output
from .parts import End, Json, Media, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from .payload import INTERRUPTED_TEXT
from .tool_calls import item_id, without_item_id

if TYPE_CHECKING:
    from .validate import FormatRules

_READ_ENDS: dict[str | None, Callable[[Json], Sequence[End]]] = {
    codec.name: codec.ends for codec in CODECS.values() if codec.ends is not None
}
"""Readers of the ends in a payload, by format."""
_WITHOUT_ENDS: frozenset[type] = frozenset((Text, ToolResult, Reasoning, Media))
"""Parts that never have an end of their own; a result belongs to its call."""


def ends_of(message: Message) -> Sequence[End]:
    """Returns the ends of a message's edges other than those between calls and results."""
    read, parts = _READ_ENDS.get(message.format), message.parts
    if read is None or not parts or (len(parts) == 1 and type(parts[0]) in _WITHOUT_ENDS):
        return ()
    payload = message.payload if message.edits else message.raw
    return () if payload is None else read(payload)


def has_ends(format: str) -> bool:
    """Whether this format has edges other than those between calls and results."""
    return format in _READ_ENDS


def unanswered_reference(messages: Sequence[Message], index: int) -> End | None:
    """Returns the reference right before this index if it stands for a call without an output.

    Not if another one comes before it: that may be the call, and this one its output.
    """
    end = _call_reference(messages[index - 1]) if index else None
    return None if end is None or (index > 1 and _call_reference(messages[index - 2])) else end


def _call_reference(message: Message) -> End | None:
    parts = message.parts
    if len(parts) != 1 or type(only := parts[0]) is not Opaque or only.kind != REFERENCE_ITEM:
        return None
    return next((end for end in ends_of(message) if needs_output(end)), None)


_BEFORE_SYSTEM = ("user", "tool")


def can_precede_system(previous: Message) -> bool:
    """Whether a system message may directly follow this one."""
    return previous.role in _BEFORE_SYSTEM


def has_calls(message: Message) -> bool:
    """Returns whether the message calls a tool."""
    return ToolCall in map(type, message.parts)


def only_reasoning(message: Message) -> bool:
    """Returns whether the message has parts, all of them reasoning."""
    return {*map(type, message.parts)} == {Reasoning}


class Opened(msgspec.Struct):
    """What one end opened: a program, a server tool, an approval request."""

    end: End
    message: Message
    start: int
    """Index of its message."""
    last: int
    """Index of the newest message that refers to it."""
    left_at: int | None = None
    """Index of the user's words after that message; None if there are none."""

    def closing(self) -> Message | None:
        """Returns the message that closes it in the provider's place; None if it may stay open."""
        payload, codec = self.message.payload, codec_for(self.message.format)
        closing = None if payload is None or codec.closing is None else codec.closing(payload, self.end)
        return None if closing is None else codec.decode(closing)


class Edges:
    """The edges of a conversation, end by end: finds what each end refers to, and what is still open."""

    def __init__(self) -> None:
        self.open: dict[tuple[str, str], Opened] = {}
        self._closed: dict[tuple[str, str], Opened] = {}
        self._references: dict[str, int] = {}
        """Indices of references that may stand for a missing item, by its id; each does so once."""

    def add(self, end: End, message: Message, index: int) -> int | None:
        """Adds the next end; returns the index of the message that it belongs to, None if its edge dangles."""
        key = (end.kind, end.key)
        if end.role == "opens":
            self.open[key] = Opened(end, message, index, index)
            return index
        if end.role == "leads":
            if may_have_output(end):
                self._references[end.key] = index
            return index
        opened = self.open.get(key) or self._closed.get(key)
        if opened is None:
            if (start := self.claim_reference(end.key)) is None:
                return None
            opened = Opened(End(0, REFERENCE, end.key, "leads"), message, start, start)
        opened.last, opened.left_at = index, None
        if end.role == "closes":
            self.open.pop(key, None)
            if end.key:
                self._closed[key] = opened  # an approved call still refers to its request
        elif key not in self._closed:
            self.open[key] = opened
        return opened.start

    def read(self, ends: Iterable[End], message: Message, index: int) -> list[End]:
        """Adds the ends of a message; returns those that dangle, one for each part, whose other ends do not count."""
        dangling: dict[int, End] = {}
        for end in ends:
            if end.part not in dangling and self.add(end, message, index) is None:
                dangling[end.part] = end
        return list(dangling.values())

    def claim_reference(self, id: str = "") -> int | None:
        """Returns the index of the reference that stands for a missing item: the one with its id, else the newest."""
        if not self._references:
            return None
        return self._references.pop(id if id in self._references else next(reversed(self._references)))

    def copy(self) -> Edges:
        """Returns edges that later ends do not change."""
        duplicate = Edges()
        for name in ("open", "_closed"):
            known = getattr(self, name)
            setattr(duplicate, name, {key: msgspec.structs.replace(opened) for key, opened in known.items()})
        duplicate._references = dict(self._references)
        return duplicate

    def leave(self, index: int) -> None:
        """Notes that the user's words at this index leave behind what is open."""
        for opened in self.open.values():
            if opened.left_at is None:
                opened.left_at = index

    @property
    def unfinished(self) -> list[tuple[Opened, Message]]:
        """What the user's words left behind open although it must be closed, with the messages that close it."""
        left = (opened for opened in self.open.values() if opened.left_at is not None)
        return [(opened, closing) for opened in left if (closing := opened.closing()) is not None]


class Links:
    """The units of a conversation, in amortised constant work per message. Each query is a bisection.

    Expects repaired messages, in which results directly follow the calls they answer.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.count = 0
        """Number of messages."""
        self.starts: list[int] = []
        """Index of the first message of each unit, ascending."""
        self.last_spoken = -1
        """Index of the last message that is not a system message; -1 if there is none."""
        self._edges = Edges()
        self._previous: Role = "user"
        self._linked = False
        """Whether an edge may have been opened."""
        self._in_batch = False
        """Whether the newest messages are a run of the assistant's with a call."""
        self._leads = False
        """Whether what follows belongs to the newest message: to reasoning, or to a reference."""
        self.is_unfinished = False
        """Whether something is still to be done before the final reply to the last spoken message."""
        self.extend(messages)

    def copy(self) -> Links:
        """Returns links that later messages do not change."""
        duplicate = copy(self)
        duplicate.starts, duplicate._edges = self.starts[:], self._edges.copy()
        return duplicate

    def add(self, message: Message) -> None:
        """Adds the next message."""
        self.extend((message,))

    def extend(self, messages: Iterable[Message]) -> None:
        """Adds the next messages.

        None starts a unit that holds results or another answer of a program; that follows a call, reasoning or a
        reference in a run of the assistant's messages; or that is a system message after the user's or a result.
        """
        index, starts, previous, linked = self.count, self.starts, self._previous, self._linked
        last_spoken, in_batch, leads, waits = self.last_spoken, self._in_batch, self._leads, self.is_unfinished
        for message in messages:  # asked of ten thousand at a time: what most are is decided first
            role, parts = message.role, message.parts
            kind = type(parts[0]) if len(parts) == 1 else None
            if role == "assistant":
                is_start = not (in_batch or leads)
                waits = leads = False
                if kind is ToolCall or (kind is not Text and has_calls(message)):
                    waits = in_batch = True
                elif kind is not Text:
                    leads = only_reasoning(message)
            elif role == "system":
                is_start = previous not in _BEFORE_SYSTEM
                in_batch = leads = False
            else:
                is_start = role == "user" and (kind is Text or is_from_user(message))
                waits, in_batch, leads = role == "tool", False, False
            if is_start or not index:
                starts.append(index)
            if role != "system":
                last_spoken = index
            linked = linked or (kind not in _WITHOUT_ENDS and Opaque in map(type, parts))  # no other part opens an edge
            if linked and (ends := ends_of(message)):
                self._link(ends, message, index)
                leads = leads or any(end.role == "leads" for end in ends)
                waits = waits or leads or self._goes_on(ends, message)
            index += 1
            previous = role
        self.count, self._previous, self._linked, self.last_spoken = index, previous, linked, last_spoken
        self._in_batch, self._leads, self.is_unfinished = in_batch, leads, waits

    def _link(self, ends: Sequence[End], message: Message, index: int) -> None:
        """Joins a message with those that its edges lead to."""
        for end in ends:
            start = self._edges.add(end, message, index)
            while start is not None and self.starts[-1] > start:
                self.starts.pop()

    def _goes_on(self, ends: Sequence[End], message: Message) -> bool:
        """Whether the provider goes on after this message: it answers the provider, or leaves something open."""
        return any(
            (end.role == "closes" and message.role == "user")
            or (end.role == "opens" and (end.kind, end.key) in self._edges.open)
            for end in ends
        )

    def is_legal_cut(self, cut: int) -> bool:
        """Whether the messages from this index on are valid without the earlier ones."""
        if not 0 < cut < self.count:
            return True
        return self.starts[bisect_right(self.starts, cut) - 1] == cut

    def cut_at_or_after(self, cut: int) -> int:
        """Returns the first legal cut at or after this index."""
        if cut <= 0 or cut >= self.count:
            return cut
        following = bisect_left(self.starts, cut)
        return self.starts[following] if following < len(self.starts) else self.count

    def cut_at_or_before(self, cut: int) -> int:
        """Returns the last legal cut at or before this index."""
        return cut if cut <= 0 or cut >= self.count else self.starts[bisect_right(self.starts, cut) - 1]

    def has_open(self, start: int) -> bool:
        """Whether something that the provider runs, or asks for, is open since this index."""
        return any(opened.start >= start for opened in self._edges.open.values())

    @property
    def open_tool_loop_start(self) -> int:
        """The start of the newest tool loop without a final reply; the end if there is none."""
        return self.cut_at_or_before(self.last_spoken) if self.is_unfinished else self.count


# -- as events are appended -------------------------------------------------------------------------------------------


def interrupted_result(call: ToolCall) -> ToolResult:
    """Returns an error result for a call that was never answered."""
    return ToolResult(call.id, (Text(INTERRUPTED_TEXT),), True, call.name, call.kind)


def without_results(message: Message, late: Sequence[int]) -> Message | None:
    """Returns a message of results without these; None if nothing is left. What is no result is the user's."""
    left = fold_edits(drop_parts(message, late))
    if not left.parts:
        return None
    user = as_user(left)
    return user if not left.results and is_from_user(user) else left


class Pairing:
    """Tracks what is open in one lane: pending tool calls, and programs and tools that the provider runs."""

    def __init__(self) -> None:
        self.pending: dict[str, ToolCall] = {}
        """Calls without a result, by the id they are shown with."""
        self._shown_ids: dict[str, list[str]] = {}
        self._used: set[str] = set()
        self._items: set[str] = set()
        self._in_batch = False
        self._edges = Edges()
        self._count = 0

    def closings(self, message: Message, rules: FormatRules) -> list[Message]:
        """Returns what closes the pending calls, and what the provider runs, that this message would leave open."""
        found = []
        if self.pending and not self._continues_batch(message, rules):
            found.append(Message("tool", tuple(interrupted_result(call) for call in self.pending.values())))
        if self._edges.open and is_from_user(message):
            found += [closing for opened in self._edges.open.values() if (closing := opened.closing()) is not None]
        return found

    def _continues_batch(self, message: Message, rules: FormatRules) -> bool:
        """Whether the pending calls may still be answered after this message."""
        if message.role == "tool" or message.results:
            return True
        if message.role == "assistant":
            return self._in_batch and (rules.items or rules.merges_roles)
        return message.role == "user" and not is_from_user(message)

    def accept(self, message: Message, rules: FormatRules) -> Message | None:
        """Returns the message as shown; None if it is a repeated item, or only holds parts without their other end."""
        if rules.items and (name := item_id(message)):
            if name in self._items:
                if any(type(part) is Reasoning for part in message.parts):
                    return None
                message = without_item_id(message)
            self._items.add(name)
        dangling = [end.part for end in self._edges.read(ends_of(message), message, self._count)]
        self._count += 1
        if len(dangling) == len(message.parts):
            return None if dangling else message
        if dangling:
            message = fold_edits(drop_parts(message, dangling))
        if message.role == "tool" or message.results:
            return self._accept_results(message)
        if message.role == "assistant" or is_from_user(message):
            self._in_batch = message.role == "assistant"
        fresh: dict[int, str] = {}
        for index, part in enumerate(message.parts):
            if type(part) is ToolCall:
                name = self._unused_id(part.id) if rules.unique_call_ids or part.id in self.pending else part.id
                if name != part.id:
                    fresh[index] = name
                self._used.add(name)
                self._shown_ids.setdefault(part.id, []).append(name)
                self.pending[name] = part
        if fresh:
            message = rename_calls(message, fresh)
            self.pending.update((part.id, part) for part in message.calls)
        return message

    def _accept_results(self, message: Message) -> Message | None:
        self._in_batch = False
        fresh: dict[int, str] = {}
        late: list[int] = []
        for index, part in enumerate(message.parts):
            if type(part) is not ToolResult:
                continue
            if (name := self._pop_call(part.call_id)) is None:
                if self._edges.claim_reference() is None:
                    late.append(index)
            elif name != part.call_id:
                fresh[index] = name
        if fresh:
            message = rename_calls(message, fresh)
        if not late:
            return message
        return without_results(message, late)

    def _pop_call(self, call_id: str) -> str | None:
        """Removes the oldest pending call that came with this id; returns the id that it is shown with."""
        names = (*self._shown_ids.get(call_id, ()), call_id)
        return next((name for name in names if self.pending.pop(name, None)), None)

    def _unused_id(self, call_id: str) -> str:
        fresh, number = call_id, 2
        while fresh in self._used:
            fresh, number = f"{call_id}-{number}", number + 1
        return fresh
