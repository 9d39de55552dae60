"""The full-text index: filled after the commit, piece by piece; what it does not have yet is scanned by the search.

In the same statement it would make an append take several times as long: an event has a hundred words, and each has
its own place in the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import anyio.lowlevel
import anyio.to_thread
import msgspec

from ...errors import CorruptLog
from ...events import Event
from ..said import Said, said_in
from ..sieve import LOOK_BACK, tool_of
from .nul import given, kept
from .rows import event_of
from .statements import blocks
from .words import BLOCK, place_tags, tags_of, tokens_of

PIECE = 300
"""Events indexed in one transaction."""
SESSIONS = 20
"""Of at most so many sessions, so that others can index others."""
TURN, HUGE = 5_000, 100_000
"""Characters after which others have their turn, and those of a text that takes too long for one turn."""
T = TypeVar("T")
Done = TypeVar("Done")

_SQL = blocks("search.sql")


class Sought(msgspec.Struct, frozen=True):
    """A call that somebody wants to see: of this session and lane, before this seq."""

    session: int
    lane: str
    seq: int
    call_id: str


async def fill(connection: Any, tenant: str, piece: int = PIECE) -> Literal["more", "busy", "done"]:
    """Index the next piece of what nobody else is indexing, unless somebody must be alone."""
    async with connection.transaction():
        if not await connection.fetchval(_SQL["beside"]):
            return "busy"
        rows = await connection.fetch(_SQL["next"], tenant, piece, SESSIONS)
        if not rows:
            return "done"
        await put(connection, tenant, rows)
        last = {row["session"]: row["seq"] for row in rows}
        await connection.execute(_SQL["done"], tenant, list(last), list(last.values()))
    return "more"


async def put(connection: Any, tenant: str, rows: list[Any]) -> None:
    """Add events to the index, of sessions that the caller has for itself; one that is there already stays."""
    if not rows:
        return
    said = await _gently(_say, rows, rows)
    asked = [_sought(row, call_id) for row, (_, what) in zip(rows, said, strict=True) for call_id in what.answers]
    calls = await earlier(connection, tenant, asked)
    numbers = [row[0] for row in await connection.fetch(_SQL["rows"], len(rows))]

    def words(place: int) -> str:
        row, (event, what) = rows[place], said[place]
        tags = place_tags(numbers[place])
        if event is not None:
            called = (tool_of(calls[_sought(row, call_id)], call_id) for call_id in what.answers)
            tools = {*what.tools, *filter(None, called)}
            tags += tags_of(event, what, tools, row["session"], given(row["owner"]), tenant)
        return tokens_of(what, tags)

    tokens = await _gently(words, range(len(rows)), rows)
    keys, lanes, seqs = ([row[name] for row in rows] for name in ("session", "lane", "seq"))
    await connection.execute(_SQL["add"], numbers, keys, lanes, seqs, tokens)
    await connection.execute(_SQL["span"], [row // BLOCK for row in numbers], [row["time"] for row in rows])


async def _gently(work: Callable[[T], Done], given: Iterable[T], rows: list[Any]) -> list[Done]:
    """Row by row, with a turn for everything else now and then.

    A thread is for huge texts alone: it keeps the interpreter to itself for milliseconds at a time, and all that
    goes on meanwhile waits for it again and again.
    """
    done, since = [], 0
    for one, row in zip(given, rows, strict=True):
        size = len(row["body"])
        done.append(await anyio.to_thread.run_sync(work, one) if size > HUGE else work(one))
        since += size
        if since > TURN:
            since = 0
            await anyio.lowlevel.checkpoint()
    return done


def _say(row: Any) -> tuple[Event | None, Said]:
    """What an event says; one that cannot be read has no words, and `verify` tells of it."""
    try:
        event = event_of(row)
        return event, said_in(event)
    except CorruptLog:
        return None, Said()


def _sought(row: Any, call_id: str) -> Sought:
    return Sought(row["session"], row["lane"], row["seq"], call_id)


async def earlier(connection: Any, tenant: str, sought: Iterable[Sought]) -> dict[Sought, list[Event]]:
    """For each call, the events shortly before that hold it, the nearest first."""
    asked = list(dict.fromkeys(sought))
    found: dict[Sought, list[Event]] = {each: [] for each in asked}
    if not asked:
        return found
    rows = await connection.fetch(
        _SQL["earlier"],
        tenant,
        list(range(len(asked))),
        [each.session for each in asked],
        [each.lane for each in asked],
        [each.seq for each in asked],
        [msgspec.json.encode(each.call_id).decode() for each in asked],
        LOOK_BACK,
    )
    for place, *row in rows:
        found[asked[place]].append(event_of(row))
    return found


def sought(session: int, event: Event, call_id: str) -> Sought:
    return Sought(session, kept(event.lane or ""), event.seq, call_id)
