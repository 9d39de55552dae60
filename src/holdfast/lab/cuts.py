"""Where a session is cut: always where its whole history was still visible."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..messages import Message, decode_all
from ..transcripts.transcript import Transcript
from .needs import HORIZON
from .reading import texts

LEAST_TOKENS = 15_000
"""A shorter history says little about compaction."""
LEAST_CALLS = 10
CUTS = 7
"""In how many places each session is cut, unless somebody with few sessions wants to know it more exactly."""


class Cut(msgspec.Struct, frozen=True):
    """A session parted in two: what is compacted, and what says what was needed."""

    format: str
    before: list[Message]
    """Without system messages: they stand beside the history, whoever compacts it."""
    after: list[Message]
    summary: str | None = None
    """The summary that was really written here, if one was."""


def evenly(count: int) -> tuple[float, ...]:
    """So many places, with as much between any two of them as before the first."""
    return tuple(place / (count + 1) for place in range(1, count + 1))


def cuts(transcript: Transcript, places: tuple[float, ...] = evenly(CUTS)) -> Iterator[Cut]:
    """At these shares of what was visible before the first compaction, where calls follow; 1.0 is its very end."""
    messages, format = decode_all(transcript.messages, transcript.format)
    compactions = transcript.compactions
    visible = compactions[0].after if compactions else len(messages)
    summaries = {item.after for item in compactions if item.summary}
    done: set[int] = set()
    for place in places:
        at = _at_reply(messages, int(visible * place), visible)
        before = [message for message in messages[:at] if message.role != "system"]
        rest = [m for index, m in enumerate(messages[at:], at) if index not in summaries]
        if at in done or sum(len(m.calls) for m in rest) < LEAST_CALLS or _size(before) < LEAST_TOKENS:
            continue
        done.add(at)
        real = compactions[0].summary if compactions and at == visible else None
        yield Cut(format, before, _horizon(rest), real)


def _at_reply(messages: list[Message], place: int, visible: int) -> int:
    """The next place where a model would be asked: before a reply."""
    while place < visible and messages[place].role != "assistant":
        place += 1
    return place


def _horizon(rest: list[Message]) -> list[Message]:
    calls = 0
    for index, message in enumerate(rest):
        calls += len(message.calls)
        if calls >= HORIZON:
            return rest[: index + 1]
    return rest


def _size(messages: list[Message]) -> int:
    return sum(len(text) for m in messages for text in texts(m)) // 4
