"""The digest of a message, and its id: the digest of its content and of the id before it.

The chain makes two lists with one id in common equal up to there, so that a single id stands for a whole beginning.
Every caller uses this digest: checkpoints without a session, lists of programs, requests at the gateway, and events.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import overload

import msgspec

from ..messages import Json, Message, decode_one, to_json, without_generated_id
from ..messages.frameworks import framework_in
from ..messages.parts import Text
from .tolerances import stable_form

_encode = msgspec.json.Encoder(order="sorted").encode


def content_digest(item: Json | Message) -> str:
    """Returns the digest of a message's canonical form: its payload with sorted keys, without what clients change.

    Of a framework's message only its content counts: frameworks add names, ids and annotations to it later.
    """
    if isinstance(item, Message):
        canonical = _neutral_form(item) if item.raw is None else _payload_form(item.raw)
    else:
        canonical = _payload_form(item)
    return hashlib.blake2b(canonical, digest_size=16).hexdigest()


def chained_id(before: str, content: str) -> str:
    """Returns the id of a message, given the id before it and the digest of its content."""
    return hashlib.blake2b(f"{before}{content}".encode(), digest_size=16).hexdigest()


def _payload_form(payload: Json) -> bytes:
    name = framework_in(payload)
    if name is not None:
        return _neutral_form(decode_one(payload, name))
    return _sorted_json(stable_form(payload))


def _neutral_form(message: Message) -> bytes:
    """Of a message without a payload: that of the plain text message that it is, else its parts."""
    match message.parts:
        case (Text(text=text, signature=None),):
            return _sorted_json({"role": message.role, "content": text})
    return _sorted_json({"role": message.role, "content": [without_generated_id(part) for part in message.parts]})


def _sorted_json(value: Json) -> bytes:
    try:
        return _encode(value)
    except ValueError:  # lone surrogates, or integers that are too long
        return json.dumps(json.loads(to_json(msgspec.to_builtins(value))), sort_keys=True).encode()


class ChainedIds(Sequence[str]):
    """The id of each message of a list, computed when it is first read.

    `known` are the ids of its first messages; `before` is the id that precedes the list.
    """

    def __init__(self, messages: Sequence[Json | Message], known: Sequence[str] = (), before: str = "") -> None:
        self._messages = messages
        self._ids = list(known)
        self._before = before

    def __len__(self) -> int:
        return len(self._messages)

    def find(self, id: str) -> int | None:
        """Returns the index of the message with this id, if there is one."""
        return next((index for index, own in enumerate(self) if own == id), None)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return _SlicedIds(self, range(len(self))[index])
        index = range(len(self))[index]
        while len(self._ids) <= index:
            before = self._ids[-1] if self._ids else self._before
            self._ids.append(chained_id(before, content_digest(self._messages[len(self._ids)])))
        return self._ids[index]


class _SlicedIds(Sequence[str]):
    """Some of the ids of a list, which are computed when they are first read, too: each takes the whole message."""

    def __init__(self, ids: ChainedIds, places: range) -> None:
        self._ids = ids
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return (
            _SlicedIds(self._ids, self._places[index]) if isinstance(index, slice) else self._ids[self._places[index]]
        )
