"""Ids of messages without a session, and the checkpoint that refers to them.

An id is a chained digest of a message and of all before it. The chain makes a checkpoint of one call fit the messages
of the next, whether those are the whole history or the last result's messages and all that came after.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, overload

import msgspec

from ..context import Checkpoint
from ..errors import CheckpointMismatch
from ..messages import Json, Message, decode_one, to_json, without_generated_id
from ..messages.frameworks import framework_in
from ..messages.json_text import decodable

_ENCODER = msgspec.json.Encoder(order="sorted")


class PrefixIds(Sequence[str]):
    """The id of each message of a list, computed when it is first read."""

    def __init__(self, messages: Sequence[Any], known: Sequence[str] = (), before: str = "") -> None:
        self._messages = messages
        self._ids = list(known)
        self._before = before

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return _IdSlice(self, range(len(self))[index])
        index = range(len(self))[index]
        while len(self._ids) <= index:
            before = self._ids[-1] if self._ids else self._before
            message = self._messages[len(self._ids)]
            self._ids.append(self.digest(before, message))
        return self._ids[index]

    @staticmethod
    def digest(before: str, message: Any) -> str:
        """Returns the digest of a message and of the digest before it; ids that a codec generated do not count."""
        content = (before, message.role, [without_generated_id(part) for part in message.parts])
        try:
            encoded = _ENCODER.encode(content)
        except UnicodeEncodeError:
            encoded = repr(content).encode(errors="surrogatepass")
        return hashlib.blake2b(encoded, digest_size=16).hexdigest()


class PayloadIds(PrefixIds):
    """Ids of payloads: every field counts, also those that no codec reads, as marks for the prompt cache.

    Of a framework's message only its content counts: frameworks add names, ids and annotations to it later.
    """

    @staticmethod
    def digest(before: str, message: Any) -> str:
        """Returns the digest of a payload and of the digest before it."""
        name = framework_in(message) if isinstance(message, dict) else None
        if name is not None:
            return PrefixIds.digest(before, decode_one(message, name))
        return hashlib.blake2b(f"{before}{to_json(message)}".encode(errors="surrogatepass"), digest_size=16).hexdigest()


class _IdSlice(Sequence[str]):
    """A slice of the ids, as lazy as the whole."""

    def __init__(self, ids: Sequence[str], indices: range) -> None:
        self._ids, self._indices = ids, indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return _IdSlice(self._ids, self._indices[index])
        return self._ids[self._indices[index]]


class Prefix(NamedTuple):
    """A list of messages by length and digest: enough to recognise a longer list that starts with it."""

    length: int
    digest: str

    @classmethod
    def of(cls, ids: Sequence[str]) -> Self:
        """The whole list with these ids."""
        return cls(len(ids), ids[-1] if ids else "")

    def extended(self, payloads: Sequence[Json]) -> Prefix:
        """This list of payloads, followed by these."""
        ids = PayloadIds(payloads, before=self.digest)
        return Prefix(self.length + len(payloads), ids[-1]) if payloads else self

    def starts(self, ids: Sequence[str]) -> bool:
        """Whether the list with these ids starts with this one."""
        return 0 < self.length <= len(ids) and ids[self.length - 1] == self.digest


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

    @property
    def result(self) -> Prefix:
        """The messages that the compaction returned, as a prefix of the next input."""
        return Prefix(self.shown, self.shown_digest)


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
        raise CheckpointMismatch(
            f"previous= takes the `checkpoint` of an earlier result, not {type(previous).__name__} ({problem})."
        ) from problem


def locate(messages: Sequence[Message], previous: PrefixCheckpoint) -> tuple[int, Sequence[str], bool]:
    """Returns where the live messages start, their ids, and whether the list is the whole history.

    Raises CheckpointMismatch if the list continues neither the history nor the result.
    """
    ids = PrefixIds(messages)
    last_kept = previous.kept[-1] if previous.kept else None
    for index in range(len(messages) - len(previous.kept)):
        if ids[index] == previous.boundary and last_kept in (None, ids[index + len(previous.kept)]):
            return index + 1, ids[index + 1 :], True
    if previous.result.starts(ids):
        last = last_kept or previous.boundary or ""
        live = messages[previous.lead :]
        return previous.lead, PrefixIds(live, previous.kept, last), False
    if previous.boundary is None:
        return 0, ids, True
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
