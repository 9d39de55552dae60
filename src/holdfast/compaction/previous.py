"""The checkpoint of a compaction without a session, and the ids by which it refers to messages.

The ids follow from the messages' content. The checkpoint fits the messages of the next call, whether those are the
whole history or the last result's messages and all that came after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ..context import Checkpoint
from ..errors import CheckpointMismatch
from ..follow import ChainedIds, Follower, GivenList
from ..messages import Edit, Message
from ..messages.json_text import decodable
from ..messages.repair import trace_numbers


@decodable
class PrefixCheckpoint(Checkpoint, frozen=True, omit_defaults=True):
    """A checkpoint that refers to messages by digest: plain data, to be stored anywhere."""

    lead: int = 0
    """How many messages of the result precede the kept ones."""
    shown: int = 0
    """Length of the result."""
    shown_digest: str = ""
    kept: tuple[str, ...] = ()
    """Ids of the kept messages in the whole history."""
    numbers: tuple[int, ...] = ()
    """Numbers of the kept messages, unless they continue from the boundary's."""


def as_checkpoint(previous: Any) -> PrefixCheckpoint:
    """Returns the checkpoint of an earlier result, given as the object, as JSON or as a dict."""
    try:
        if isinstance(previous, PrefixCheckpoint):
            return previous
        given = msgspec.json.decode(previous) if isinstance(previous, str | bytes) else previous
        if isinstance(given, Mapping) and given and not set(PrefixCheckpoint.__struct_encode_fields__) & given.keys():
            raise msgspec.ValidationError(f"it has only {', '.join(map(str, given))}")
        return msgspec.convert(given, PrefixCheckpoint)
    except (msgspec.DecodeError, msgspec.ValidationError) as problem:
        if hasattr(previous, "checkpoint"):
            raise CheckpointMismatch("previous= takes the checkpoint of a result: pass result.checkpoint.") from None
        raise CheckpointMismatch(
            f"previous= takes the `checkpoint` of an earlier result, not {type(previous).__name__} ({problem})."
        ) from problem


class Continuation(NamedTuple):
    """How a list of messages continues a checkpoint."""

    start: int
    """Where its live messages start."""
    ids: Sequence[str]
    """Ids of the live messages."""
    whole: bool
    """Whether the list is the whole history."""
    edits: Mapping[str, tuple[Edit, ...]]
    """Edits of the checkpoint by these ids."""


def locate(messages: Sequence[Message], previous: PrefixCheckpoint) -> Continuation:
    """Returns how a list continues the history that the checkpoint was made from, or its result.

    Raises CheckpointMismatch if it continues neither.
    """
    ids, boundary = ChainedIds(messages), previous.boundary
    if boundary is not None and (index := ids.find(boundary)) is not None:
        given, log = GivenList(messages[index + 1 :], (boundary,)), Follower((boundary, *previous.kept))
        if (match := log.match(given)).logged == len(log.ids):
            own, edits = ChainedIds(given.items, before=boundary), previous.edits
            if log.has_reminder:  # without it a message has another id, and so have all after it
                edits = {own[at]: edits[known] for at, known in enumerate(match.ids) if known in edits}
            return Continuation(index + 1, own, True, edits)
    if 0 < previous.shown <= len(messages) and ids[previous.shown - 1] == previous.shown_digest:
        last = previous.kept[-1] if previous.kept else boundary or ""
        live = ChainedIds(messages[previous.lead :], previous.kept, last)
        return Continuation(previous.lead, live, False, previous.edits)
    if boundary is None:
        return Continuation(0, ids, True, previous.edits)
    raise CheckpointMismatch(
        "previous= belongs to other messages: pass the whole history, or the last result's messages "
        "and what came after, or leave previous= out."
    )


def continued_numbers(previous: PrefixCheckpoint, count: int) -> list[int]:
    """Returns numbers for a list that continues a result: 0 for its notes, then on from the kept messages."""
    archived = previous.carry.before_boundary
    known = [0] * previous.lead + list(previous.numbers or range(archived + 1, archived + 1 + len(previous.kept)))
    last = max([archived, *known])
    return [*known, *range(last + 1, last + 1 + count - len(known))][:count]


def message_ids(given: Sequence[Message], history: Sequence[Message], known: Sequence[str] = ()) -> Sequence[str]:
    """Returns an id for each given message: that of the message of the repaired history with the same parts.

    `known` are the ids of the history, unless they are those of a history without a checkpoint.
    """
    own, known = ChainedIds(given), known or ChainedIds(history)
    if history is given:
        return known
    ids: dict[int, str] = {}
    for index, number in enumerate(trace_numbers(history, given, range(1, len(given) + 1))):
        ids.setdefault(number, known[index])
    return [ids.get(number, own[number - 1]) for number in range(1, len(given) + 1)]
