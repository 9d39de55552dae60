"""Repairs a list of messages for its wire format, and traces each repaired message to the one it was made from.

Ids and numbers belong to the messages as they were passed; repair may insert, merge and split them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ..follow import ChainedIds
from ..messages import (
    COMMON,
    Json,
    Message,
    Part,
    ToolCall,
    ToolResult,
    decode_all,
    encode_all,
    find_problems,
    repair_messages,
    rules_for,
    split_notes,
)


def repair_input(messages: list[Message], format: str) -> list[Message]:
    """Returns the messages, repaired if their wire format requires it; the same list if not."""
    rules, separate = rules_for(format), split_notes(messages)
    if not find_problems(separate, rules):
        return separate
    return decode_payloads(encode_all(repair_messages(separate, rules), format), format)


def decode_payloads(payloads: list[Json], format: str) -> list[Message]:
    """Decodes what `encode_all` returned for this format."""
    return decode_all(payloads, None if format == COMMON else format)[0]


def trace_numbers(history: Iterable[Message], given: Sequence[Message], numbers: Sequence[int]) -> list[int]:
    """Returns a number for each message of a repaired history: that of the given message with the same parts.

    A message that repair inserted takes the number of the one before it.
    """
    traced, last = [], 0
    for indices in trace_messages(history, given):
        last = numbers[indices[0]] if indices else last
        traced.append(last)
    return traced


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


def trace_messages(messages: Iterable[Message], among: Iterable[Message]) -> Iterator[list[int]]:
    """Yields, for each message, the indices of those among others that have the same parts, in order."""
    indices: dict[bytes, deque[int]] = {}
    for index, message in enumerate(among):
        for part in message.parts:
            indices.setdefault(_content_key(part), deque()).append(index)
    for message in messages:
        yield [indices[key].popleft() for key in map(_content_key, message.parts) if indices.get(key)]


def _content_key(part: Part) -> bytes:
    """A part's content without the ids that join calls and results: repair may change those."""
    if isinstance(part, ToolCall):
        part = ToolCall("", part.name, part.arguments_dict, part.kind)
    elif isinstance(part, ToolResult):
        part = ToolResult("", part.content, part.is_error)
    try:
        return msgspec.json.encode(part, order="sorted")
    except UnicodeEncodeError:
        return repr(part).encode(errors="surrogatepass")
