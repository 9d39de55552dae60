"""What a broken history becomes before it is decided about, and which of its messages are which that came in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ..boundaries import find_problems, repair
from ..messages import COMMON, Json, Message, Part, ToolCall, ToolResult, decode_all, encode_all, profile_for


def mended(given: list[Message], name: str) -> list[Message]:
    """Repaired where it had to be, and then as it would come back in once it was sent."""
    profile = profile_for(name)
    if not find_problems(given, profile):
        return given
    return read_back(encode_all(repair(given, profile), name), name)


def read_back(payloads: list[Json], name: str) -> list[Message]:
    return decode_all(payloads, None if name == COMMON else name)[0]


def numbers_in(history: Iterable[Message], given: Sequence[Message], numbers: Sequence[int]) -> list[int]:
    """The number of each message of a mended history: that of the given one whose parts it holds.

    What was put in goes by the message before it.
    """
    found, last = [], 0
    for places in traced(history, given):
        last = numbers[places[0]] if places else last
        found.append(last)
    return found


def traced(messages: Iterable[Message], among: Iterable[Message]) -> Iterator[list[int]]:
    """For each message the places, among others, of those that its parts are found in again, in their order."""
    spots: dict[bytes, deque[int]] = {}
    for place, message in enumerate(among):
        for part in message.parts:
            spots.setdefault(_key(part), deque()).append(place)
    for message in messages:
        yield [spots[key].popleft() for key in map(_key, message.parts) if spots.get(key)]


def _key(part: Part) -> bytes:
    """What a part says, whatever mending did to the ids that join calls and results."""
    if isinstance(part, ToolCall):
        part = ToolCall("", part.name, part.object, part.kind)
    elif isinstance(part, ToolResult):
        part = ToolResult("", part.content, part.is_error)
    try:
        return msgspec.json.encode(part, order="sorted")
    except UnicodeEncodeError:
        return repr(part).encode(errors="surrogatepass")
