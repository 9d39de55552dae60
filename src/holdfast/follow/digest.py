"""The digest of a message, and its id: the digest of its content and of the id before it.

The chain makes two lists with one id in common equal up to there, so that a single id stands for a whole beginning.
Every caller uses this digest: checkpoints without a session, lists of programs, requests at the gateway, and events.

Clients change what they sent before. Six tolerances concern a payload, whose canonical form does not have what they
tolerate: `CACHE_MARKS`, `CALL_SIGNATURES`, `GENERATED_IDS`, `NULL_FIELDS`, `CALL_ARGUMENTS`, `LONE_TEXT_BLOCK`,
`REPLY_FIELDS`. Those of a list are in `follower`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from typing import overload

import msgspec

from ..messages import GENERATED_ID_PREFIX, Json, Message, decode_one, to_json, without_generated_id
from ..messages.frameworks import framework_in
from ..messages.parts import Text

CACHE_MARK = "cache_control"
"""Field of a message or block up to which a provider caches the prompt."""
_SIGNATURE = "thoughtSignature"
_ID_FIELDS = frozenset(("id", "call_id", "tool_call_id", "tool_use_id"))
_MAY_CHANGE = _ID_FIELDS | {CACHE_MARK, _SIGNATURE}
_BLOCK_LISTS = ("content", "parts", "tool_calls")


Tolerance = Callable[[Json], Json]
"""Returns a message, or the fields of a message or block, without what may change; the same object if it has none."""


def _without(name: str, fields: Json) -> Json:
    return {key: value for key, value in fields.items() if key != name} if name in fields else fields


def _without_generated_ids(fields: Json) -> Json:
    generated = {key for key in _ID_FIELDS & fields.keys() if str(fields[key]).startswith(GENERATED_ID_PREFIX)}
    return {key: value for key, value in fields.items() if key not in generated} if generated else fields


def _without_nulls(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None} if None in fields.values() else fields


def _with_parsed_arguments(fields: Json) -> Json:
    function = fields.get("function")
    if type(function) is dict and (parsed := _with_parsed_arguments(function)) is not function:
        return fields | {"function": parsed}
    if type(written := fields.get("arguments")) is str and written[:1] == "{":
        try:
            return fields | {"arguments": msgspec.json.decode(written)}
        except msgspec.DecodeError:
            return fields
    return fields


def _without_text_block(message: Json) -> Json:
    match message.get("content"):
        case [{"type": "text", "text": str(text), **rest}] if not rest:
            return message | {"content": text}
    return message


def _without_reply_fields(message: Json) -> Json:
    if "stop_reason" in message and "role" in message:
        return {"role": message["role"], "content": message.get("content")}
    return message


CACHE_MARKS: Tolerance = partial(_without, CACHE_MARK)
"""Claude Code marks its newest message for the prompt cache."""
CALL_SIGNATURES: Tolerance = partial(_without, _SIGNATURE)
"""gemini-cli replaces the signatures of calls by a documented dummy, and omits them in later turns."""
GENERATED_IDS: Tolerance = _without_generated_ids
"""Calls of a format without ids have one that depends on their position."""
NULL_FIELDS: Tolerance = _without_nulls
"""LangChain adds `signature: null` to blocks that it sends back; SDKs dump replies with all their fields."""
CALL_ARGUMENTS: Tolerance = _with_parsed_arguments
"""Copilot writes the JSON of a call's arguments with other spaces when it resumes a conversation."""
LONE_TEXT_BLOCK: Tolerance = _without_text_block
"""Claude Code sends its newest message as a list with one text, and later as that text alone."""
REPLY_FIELDS: Tolerance = _without_reply_fields
"""Programs append a whole reply of Anthropic, of which only role and content may be sent back."""
IN_FIELDS = (CACHE_MARKS, CALL_SIGNATURES, GENERATED_IDS, NULL_FIELDS, CALL_ARGUMENTS)
"""Tolerances of the fields of a message, of its blocks and of its calls, but not of what tools are given or return."""


def stable_form(message: Json) -> Json:
    """Returns a message in the form that stays the same while its client repeats it."""
    return LONE_TEXT_BLOCK(in_blocks(REPLY_FIELDS(message), _stable_fields))


def without_cache_marks(message: Json) -> Json:
    """Returns a message without its marks for the prompt cache: clients move them with each request."""
    return in_blocks(message, CACHE_MARKS)


def in_blocks(message: Json, change: Tolerance) -> Json:
    """Changes the fields of a message, of its blocks and of its calls."""
    message = change(message)
    for name in _BLOCK_LISTS:
        if type(blocks := message.get(name)) is list:
            changed = [change(block) if type(block) is dict else block for block in blocks]
            if not all(map(is_, changed, blocks)):
                message = message | {name: changed}
    return message


def _stable_fields(fields: Json) -> Json:
    if None in fields.values() or not _MAY_CHANGE.isdisjoint(fields):
        for tolerance in IN_FIELDS:
            fields = tolerance(fields)
    return fields


_encode = msgspec.json.Encoder(order="sorted").encode


def content_digest(item: Json | Message) -> str:
    """Returns the digest of a message's canonical form: its payload with sorted keys, without what clients change.

    Of a framework's message only its content counts: frameworks add names, ids and annotations to it later.
    """
    if isinstance(item, Message):
        canonical = _neutral_form(item) if item.payload is None else _payload_form(item.payload)
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
