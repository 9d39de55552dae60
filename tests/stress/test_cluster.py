"""Applications and workers that are killed: only correct writes can have made what they leave (W12, W13, S3, H1)."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec
import pytest

from holdfast import MemoryStore, SessionService, SlidingWindow
from holdfast.context.events import Event, LaneTip, SessionRecord
from holdfast.triggers import always
from stress.cluster import run_cluster
from stress.replay import Labelled, batch_ids, replay

Log = tuple[list[Event], SessionRecord]


@pytest.mark.timeout(120)
def test_cluster_of_killed_processes_leaves_correct_logs() -> None:
    seconds = float(os.environ.get("HOLDFAST_CLUSTER_SECONDS", "2"))
    problems, counts = run_cluster("sqlite", seconds, applications=2, workers=1, sessions=3)
    assert problems == []
    assert counts["events acknowledged"] >= 3


async def write_log() -> Log:
    """A correct log with a batch, two compactions, pins and an undo."""
    async with SessionService(MemoryStore(), estimator="chars/4") as service:
        await service.create(id="s", format="openai-chat")
        for turn in range(4):
            turns = [{"role": role, "content": f"{role} {turn} says a word"} for role in ("user", "assistant")]
            await service.append("s", turns, id=batch_ids(f"turn{turn}", 2))
        for number, mode in enumerate(("skip", "rebase")):
            await service.compact("s", always, Labelled(SlidingWindow(4 - 2 * number), f"c{number}", mode))
            await service.pin("s", "turn3.0/2", pinned=not number)
        await service.undo("s")
        return await service.events("s"), await service.get("s")


def _moved(event: Event, seq: int) -> Event:
    return msgspec.structs.replace(event, seq=seq)


def _without_a_part(log: Log) -> Log:
    """A batch of which only the first event was committed."""
    events, record = log
    kept = [_moved(event, seq) for seq, event in enumerate([events[0], *events[2:]], 1)]
    return kept, msgspec.structs.replace(record, version=len(kept))


def _torn_apart(log: Log) -> Log:
    """Another writer's event between two events of a batch."""
    events, record = log
    order = [events[0], events[2], events[1], *events[3:]]
    return [_moved(event, seq) for seq, event in enumerate(order, 1)], record


def _unseen_append(log: Log) -> Log:
    """A strict compaction that was committed although the session had moved."""
    return _with_strategy(log, 0, "c0 skip saw 6")


def _unseen_pin(log: Log) -> Log:
    """A rebased compaction that was committed although another writer had pinned."""
    return _with_strategy(log, 1, "c1 rebase saw 9")


def _with_strategy(log: Log, number: int, strategy: str) -> Log:
    events, record = log
    chosen = [event for event in events if event.kind == "compaction"][number]
    changed = msgspec.structs.replace(chosen, body={**chosen.body, "strategy": strategy})
    return [changed if event is chosen else event for event in events], record


def _other_predecessor(log: Log) -> Log:
    """A compaction of a view that had not seen the first one."""
    events, record = log
    chosen = [event for event in events if event.kind == "compaction"][1]
    changed = msgspec.structs.replace(chosen, body={**chosen.body, "previous": None})
    return [changed if event is chosen else event for event in events], record


def _undo_of_something_else(log: Log) -> Log:
    events, record = log
    undo = msgspec.structs.replace(events[-1], body={"to": None})
    tip = LaneTip(events[-1].seq, None)
    return [*events[:-1], undo], msgspec.structs.replace(record, lanes={"": tip})


def _mark_that_did_not_move(log: Log) -> Log:
    events, record = log
    tip = msgspec.structs.replace(record.lanes[""], mark=events[-1].seq - 1)
    return events, msgspec.structs.replace(record, lanes={"": tip})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (_without_a_part, "batch turn0 of 2"),
        (_torn_apart, "batch turn0 of 2"),
        (_unseen_append, r"did not see \[7, 8\]"),
        (_unseen_pin, r"did not see \[10\]"),
        (_other_predecessor, "replaced None"),
        (_undo_of_something_else, "goes to None"),
        (_mark_that_did_not_move, "the last mark is at"),
    ],
)
async def test_replay_finds_writes_that_no_condition_allows(damage: Callable[[Log], Log], found: str) -> None:
    log = await write_log()
    assert replay(*log) == []
    with pytest.raises(AssertionError, match=found):
        assert replay(*damage(log)) == []
