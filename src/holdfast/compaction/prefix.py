"""Compaction without a session: ids are chained digests of the messages up to each place.

The chain makes a checkpoint of one call fit the messages of the next, whether those are the whole
history or what the last call returned and all that came after.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, overload

import msgspec

from ..errors import CheckpointMismatch
from ..messages import Message, unnumbered
from ..view import Checkpoint

START = "start"
"""What an edit alone, with nothing archived, has for a boundary."""
_ENCODER = msgspec.json.Encoder(order="sorted")


class PrefixIds(Sequence[str]):
    """The id of each message: a digest of it and of all before it, worked out when asked for."""

    def __init__(self, messages: Sequence[Message], known: Sequence[str] = (), before: str = "") -> None:
        self._messages = messages
        self._ids = list(known)
        self._before = before

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return _Rest(self, range(len(self))[place])
        place = range(len(self))[place]
        while len(self._ids) <= place:
            before = self._ids[-1] if self._ids else self._before
            message = self._messages[len(self._ids)]
            self._ids.append(_digest(before, message))
        return self._ids[place]


def _digest(before: str, message: Message) -> str:
    content = (before, message.role, [unnumbered(part) for part in message.parts])
    try:
        written = _ENCODER.encode(content)
    except UnicodeEncodeError:
        written = repr(content).encode(errors="surrogatepass")
    return hashlib.blake2b(written, digest_size=16).hexdigest()


class _Rest(Sequence[str]):
    """A part of the ids, no less lazy than the whole."""

    def __init__(self, ids: Sequence[str], places: range) -> None:
        self._ids, self._places = ids, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return _Rest(self._ids, self._places[place])
        return self._ids[self._places[place]]


class PrefixCheckpoint(Checkpoint, frozen=True, omit_defaults=True):
    """A checkpoint that knows its messages by digest alone: plain data, to be stored anywhere."""

    lead: int = 0
    """How many of the shown messages come before the kept ones."""
    shown: int = 0
    shown_digest: str = ""
    kept: tuple[str, ...] = ()
    """The ids of the kept messages, as they are in the whole history …"""
    numbers: tuple[int, ...] = ()
    """… and their numbers, where those do not just go on from what was passed."""


def as_checkpoint(previous: Any) -> PrefixCheckpoint:
    """A checkpoint from an earlier result: the object, or the same as JSON or as a dict."""
    try:
        if isinstance(previous, PrefixCheckpoint):
            return previous
        if isinstance(previous, str | bytes):
            return msgspec.json.decode(previous, type=PrefixCheckpoint)
        return msgspec.convert(previous, PrefixCheckpoint)
    except (msgspec.DecodeError, msgspec.ValidationError) as problem:
        raise CheckpointMismatch(
            f"previous= takes the `checkpoint` of an earlier result, not {type(previous).__name__} ({problem})."
        ) from problem


def locate(messages: Sequence[Message], previous: PrefixCheckpoint) -> tuple[int, Sequence[str], bool]:
    """Where the live messages start, their ids, and whether they are the whole history's."""
    ids = PrefixIds(messages)
    last_kept = previous.kept[-1] if previous.kept else None
    for place in range(len(messages) - len(previous.kept)):
        if ids[place] == previous.boundary and last_kept in (None, ids[place + len(previous.kept)]):
            return place + 1, ids[place + 1 :], True
    if 0 < previous.shown <= len(messages) and ids[previous.shown - 1] == previous.shown_digest:
        last = last_kept or previous.boundary or ""
        live = messages[previous.lead :]
        return previous.lead, PrefixIds(live, previous.kept, last), False
    if previous.boundary is None:
        return 0, ids, True
    raise CheckpointMismatch(
        "previous= belongs to other messages: hand in the whole history, or the last result's messages "
        "and what came after, or leave previous= out."
    )


def counted_on(previous: PrefixCheckpoint, count: int) -> list[int]:
    """Numbers for so many messages: what the last call returned, the first of it uncounted, and all that came after."""
    passed = previous.carry.passed
    known = [0] * previous.lead + list(previous.numbers or range(passed + 1, passed + 1 + len(previous.kept)))
    last = max([passed, *known])
    return [*known, *range(last + 1, last + 1 + count - len(known))][:count]
