"""The state of a turn, folded from the message events of its lane after the user's message.

Of the turn `T`, `T/say` is the user's message, `T/n` the n-th reply, `T/n/k` the result of its call k, and `T/n~…` a
prompt to continue after it. A reply of several wire items has `T/n`, `T/n.1`, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from ..context.events import Event, message_in
from ..errors import InvalidInput
from ..messages import CallIdAssigner, ToolCall

TurnStatus = Literal["new", "asked", "called", "done", "superseded"]
"""No message yet, a reply is due, calls are open, the model is done, a newer message came first."""
SAY = "/say"
_STEP = re.compile(r"/say$|/\d+/\d+(\.\d+)?$")
"""Matches ids of events after which a turn still lacks a reply."""


class TurnState(msgspec.Struct, frozen=True):
    """What a turn has so far, and what it lacks."""

    status: TurnStatus
    replies: int = 0
    """How many replies are stored; the next is `T/{replies + 1}`."""
    reply: Event | None = None
    """The last stored reply, or its last item."""
    calls: Mapping[int, ToolCall] = {}
    """Open calls by their place in the reply, with the ids that the session shows."""


def require_turn_id(id: str) -> str:
    if not id or "/" in id:
        raise InvalidInput(f"A turn's id must not be empty or contain a slash, as {id!r}: pass the id of the request.")
    return id


def is_unanswered(event_id: str) -> bool:
    """Whether a lane that ends with this event has a turn without its reply."""
    return _STEP.search(event_id) is not None


def fold_turn(id: str, events: Sequence[Event], pending: Iterable[ToolCall]) -> TurnState:
    """Returns the state from the lane's message events, the first of which is `T/say`; none is a new turn.

    `pending` are the calls of the lane without a result, as its view shows them.
    """
    if not events:
        return TurnState("new")
    own, assign = re.compile(re.escape(id) + r"/(?:(\d+)(?:\.\d+)?|(\d+)/(\d+)(?:\.\d+)?|(\d+)~.*)"), CallIdAssigner()
    replies, items, answered, continued = 0, list[Event](), set[int](), False
    calls: list[ToolCall] = []
    for event in events[1:]:
        named = own.fullmatch(event.id)
        if named is None:
            if event.id.endswith(SAY) and not _is_done(replies, calls, continued=continued):
                return TurnState("superseded", replies)
            if event.id.endswith(SAY):
                break
        elif named[1]:
            if int(named[1]) > replies:
                replies, items, answered, continued, calls = int(named[1]), [], set(), False, []
            items.append(event)
            calls += assign(message_in(event), event.seq).calls
        elif named[2] and int(named[2]) == replies:
            answered.add(int(named[3]))
        elif named[4] and int(named[4]) == replies:
            continued = True
    last = items[-1] if items else None
    if _is_done(replies, calls, continued=continued):
        return TurnState("done", replies, last)
    open_calls = _open_calls(calls, answered, pending)
    return TurnState("called" if open_calls else "asked", replies, last, open_calls)


def _is_done(replies: int, calls: Sequence[ToolCall], *, continued: bool) -> bool:
    return replies > 0 and not calls and not continued


def _open_calls(calls: Sequence[ToolCall], answered: set[int], pending: Iterable[ToolCall]) -> dict[int, ToolCall]:
    """Returns pending calls by their place in the reply; a repeated id is shown with another one."""
    found: dict[int, ToolCall] = {}
    for call in pending:
        same = (
            index
            for index, given in enumerate(calls)
            if index not in answered and index not in found and _is_same(given, call)
        )
        if (place := next(same, None)) is not None:
            found[place] = call
    return dict(sorted(found.items()))


def _is_same(given: ToolCall, shown: ToolCall) -> bool:
    return (given.name, given.arguments) == (shown.name, shown.arguments) and shown.id.startswith(given.id)
