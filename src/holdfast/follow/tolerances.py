"""What may differ between two lists of one conversation: changes that clients make to what they sent before.

Six tolerances concern one payload, whose canonical form does not have what they tolerate: `CACHE_MARKS`,
`CALL_SIGNATURES`, `GENERATED_IDS`, `NULL_FIELDS`, `LONE_TEXT_BLOCK`, `REPLY_FIELDS`. Two concern the list: system
messages at its beginning (LEADING_SYSTEM, `count_leading_system`) and a reminder at its end (MOVED_REMINDER,
`MovedReminder`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any

from ..messages import GENERATED_ID_PREFIX, Json, Message, decode_all, is_note
from ..messages.frameworks import framework_of

CACHE_MARK = "cache_control"
"""Field of a message or block up to which a provider caches the prompt."""
_SIGNATURE = "thoughtSignature"
_ID_FIELDS = frozenset(("id", "call_id", "tool_call_id", "tool_use_id"))
_MAY_CHANGE = _ID_FIELDS | {CACHE_MARK, _SIGNATURE}
_SYSTEM_ROLES = ("system", "developer")
_BLOCK_LISTS = ("content", "parts", "tool_calls")
_MAX_SUFFIXES, _MAX_SUFFIX_CHARS, _MAX_COMPARED_CHARS = 300, 20_000, 10_000_000
"""Line breaks at the end of a message at which a reminder may begin, its length, and that of all texts with it."""


Tolerance = Callable[[Json], Json]
"""Returns a message, or the fields of a message or block, without what may change; the same object if it has none."""


def _without(name: str, fields: Json) -> Json:
    return {key: value for key, value in fields.items() if key != name} if name in fields else fields


def _without_generated_ids(fields: Json) -> Json:
    generated = {key for key in _ID_FIELDS & fields.keys() if str(fields[key]).startswith(GENERATED_ID_PREFIX)}
    return {key: value for key, value in fields.items() if key not in generated} if generated else fields


def _without_nulls(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None} if None in fields.values() else fields


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
LONE_TEXT_BLOCK: Tolerance = _without_text_block
"""Claude Code sends its newest message as a list with one text, and later as that text alone."""
REPLY_FIELDS: Tolerance = _without_reply_fields
"""Programs append a whole reply of Anthropic, of which only role and content may be sent back."""
IN_FIELDS = (CACHE_MARKS, CALL_SIGNATURES, GENERATED_IDS, NULL_FIELDS)
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


# -- tolerances of a list --------------------------------------------------------------------------------------------


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
        return {"role": message.role, "content": message.text} if message.raw is None else message.raw

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
