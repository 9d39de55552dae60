"""Kills a process at every system call that writes, in each operation of a session, and checks what is left (H1).

An operation starts from a copy of the same files each time, and gives the same events each time; so after a kill the
store must be exactly as before the operation or as after it, as after it if it was acknowledged. It must be possible
to repeat the operation, and a redacted text must be in no file. The calls of a run that is not killed must show that
everything written was synced to disk before the acknowledgement.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import msgspec

from holdfast import MemoryStore, PruneToolResults, SessionService, SlidingWindow
from holdfast.context import events as event_module
from holdfast.stores import PostgresStore, Slice
from holdfast.stores.sqlite import writer
from holdfast.strategies import KeepLedger
from holdfast.triggers import always
from stress.scenes import Scene
from stress.system_calls import SYNCS, WRITES, Call, Trace, run_traced

S = "s"
SECRET, WORD = "skq7Hq2Zr9Wt4", "wharfword77"
CACHES = (".index.db", ".lease", "-shm", ".lock")
"""Files that may be lost: an index that is rebuilt, and leases, which end with their process."""
ROUND_CALLS = {"sqlite": 1_000, "jsonl": 1_800, "postgres": 300}
ROUND_OPERATIONS = 20
"""About the number of calls in one round of all operations, and their number."""
Run = Callable[[SessionService], Awaitable[Any]]


class Operation(msgspec.Struct):
    """One operation; `idempotent` means that it may be repeated although it took effect."""

    name: str
    run: Run
    idempotent: bool = False
    gone: str | None = None
    """Text that no file may have afterwards."""


class PointCounts(msgspec.Struct):
    """What the points of one store gave."""

    points: int = 0
    torn: int = 0
    """Kills in the middle of a write."""
    acknowledged: int = 0
    """Kills after the acknowledgement."""
    taken: Counter[str] = msgspec.field(default_factory=Counter)
    """Points by operation."""
    problems: list[str] = msgspec.field(default_factory=list)


async def prepare(service: SessionService, words: int) -> None:
    """A session with tool results, media, a lane and a fork; the second result has the secret."""
    await service.create(id=S, system=f"Use {WORD}.", format="openai-chat", metadata={"title": WORD})
    for turn in range(5):
        await service.append(S, {"role": "user", "content": f"Part {turn} of the harbour, {WORD}."}, id=f"u{turn}")
        function = {"name": "bash", "arguments": f'{{"command": "make part{turn}"}}'}
        calls = [{"id": f"c{turn}", "type": "function", "function": function}]
        await service.append(S, {"role": "assistant", "content": None, "tool_calls": calls})
        output = f"ERROR in /srv/deploy_{turn}.py: exit {turn}\n" + "The water is deep. " * words
        output += f"\nERROR denied: API_TOKEN={SECRET}\n" if turn == 1 else ""
        await service.append(S, {"role": "tool", "tool_call_id": f"c{turn}", "content": output}, id=f"r{turn}")
        await service.append(S, {"role": "assistant", "content": f"Part {turn} is done."})
    await service.append(S, picture("iVBORw0K", words), id="p1")
    for text in ("Look.", "Look again."):
        await service.append(S, {"role": "user", "content": text}, lane="sub")
    await service.fork(S, id="f")
    await service.append("f", {"role": "user", "content": f"In the fork: {WORD}."})


def picture(data: str, times: int) -> dict[str, Any]:
    url = f"data:image/png;base64,{data * times}"
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


def operations(words: int) -> Iterator[Operation]:
    """The operations, in the order in which they are applied to the same session."""
    user = {"role": "user", "content": "More. " * words}
    done = {"role": "assistant", "content": "Done."}

    def compact(strategy: Any, mode: Any, lane: str | None = None) -> Run:
        return lambda service: service.compact(S, always, strategy, mode, lane=lane)

    yield Operation("append", lambda service: service.append(S, user, id="a1"), True)
    yield Operation("append several", lambda service: service.append(S, [done, user], id=["b1", "b2"]), True)
    yield Operation("append media", lambda service: service.append(S, picture("R0lGOD", words), id="m1"), True)
    yield Operation("append to a new lane", lambda service: service.append(S, user, "new", id="n1"), True)
    yield Operation("pin", lambda service: service.pin(S, "r1", id="pin1"), True)
    yield Operation("compact by the ledger", compact(KeepLedger(700), "skip"))
    yield Operation("undo", lambda service: service.undo(S))
    yield Operation("compact to a window", compact(SlidingWindow(6), "rebase"))
    yield Operation("unpin", lambda service: service.pin(S, "r1", pinned=False, id="pin2"), True)
    yield Operation("compact a lane", compact(SlidingWindow(1), "rebase", "sub"))
    yield Operation("fork", lambda service: service.fork(S, id="g"))
    yield Operation("restore", lambda service: service.restore(S, "r1", id="copy"), True)
    yield Operation("remember", lambda service: service.remember(S, "The tide is low.", id="note"), True)
    yield Operation("append a result", append_result(words), True)
    yield Operation("prune", lambda service: service.prune(S, PruneToolResults(0, 0)))
    yield Operation("compact the fork", lambda service: service.compact("g", always, KeepLedger(500)))
    yield Operation("redact", lambda service: service.redact(S, "r1"), True, f"API_TOKEN={SECRET}")
    yield Operation("redact media", lambda service: service.redact(S, "p1"), True, "iVBORw0K" * 12)
    yield Operation("redact a text", lambda service: service.redact_text(S, WORD), True, WORD)
    yield Operation("create", lambda service: service.create(id="h", system="Work."))


def append_result(words: int) -> Run:
    """Appends a call and its result, and a user message: something to prune."""
    function = {"name": "bash", "arguments": '{"command": "make all"}'}
    calls = [{"id": "c9", "type": "function", "function": function}]
    messages = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c9", "content": "All parts are built. " * words},
        {"role": "user", "content": "Go on."},
    ]
    return lambda service: service.append(S, messages, id=["x1", "x2", "x3"])


def fix_ids(start: int) -> None:
    """Makes the ids and times of events the same in each run, in this process."""
    numbers = count(start * 1000)
    event_module.secrets = SimpleNamespace(token_hex=lambda size: f"{next(numbers):0{2 * size}x}")  # type: ignore[attr-defined]
    event_module.time = SimpleNamespace(time_ns=lambda: start * 10**9)  # type: ignore[attr-defined]
    event_module.now.__globals__["datetime"] = SimpleNamespace(now=lambda zone: _Moment())


class _Moment:
    def isoformat(self, timespec: str) -> str:
        return "2026-01-01T00:00:00.000Z"


def perform(scene: Scene, name: str, run: Run, number: int, acknowledge: Callable[[], None], idle: float = 0.0) -> None:
    """Runs an operation in this process; `idle` is how long SQLite waits before it fills its search index."""
    fix_ids(number)
    writer.IDLE_SECONDS = idle

    async def main() -> None:
        async with SessionService(scene.open(name), estimator="chars/4") as service:
            await run(service)
            acknowledge()
            await asyncio.sleep(0.003)

    asyncio.run(main())


async def read_state(service: SessionService) -> Any:
    """Everything that the store has: equal logs give equal contexts.

    Torn lines that a crash left are no problem, and a lease on a server has to run out.
    """
    state: dict[str, Any] = {}
    for record in sorted(await service.list(), key=lambda record: record.id):
        events = await service.store.read(record.id, Slice(any_lane=True))
        digests = sorted({digest for event in events for digest in event.body.get("media", ())})
        state[record.id] = {
            "record": msgspec.to_builtins(record),
            "events": [msgspec.to_builtins(event) for event in events],
            "media": await service.store.media(record.id, digests),
            "problems": [each for each in await service.store.problems(record.id) if "skipped" not in each],
            "held": None
            if isinstance(service.store, PostgresStore)
            else await service.store.held(record.id, "compaction"),  # type: ignore[attr-defined]
        }
    return msgspec.json.decode(msgspec.json.encode(state))


def in_fork(work: Callable[[], Any]) -> Any:
    """Runs a function in a forked process and returns its result: this process never opens a store itself."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = msgspec.json.encode(work())
            with open(sender, "wb") as pipe:
                pipe.write(result)
        finally:
            os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return msgspec.json.decode(data) if data else None


def state_of(scene: Scene, name: str) -> Any:
    async def main() -> Any:
        async with SessionService(scene.open(name), estimator="chars/4") as service:
            return await read_state(service)

    return in_fork(lambda: asyncio.run(main()))


def check_left(scene: Scene, operation: Operation, number: int, before: Any, after: Any, acknowledged: bool) -> Any:
    """Checks what a killed process left, repeats the operation, and checks again; runs in a fork."""
    problems: list[str] = []

    async def main() -> None:
        async with SessionService(scene.open("work"), estimator="chars/4") as service:
            left = await read_state(service)
            if left not in (before, after):
                problems.append(f"half-done: {_difference(left, before, after)}")
            if acknowledged and left != after:
                problems.append(f"lost: {_difference(left, after, after)}")
            if acknowledged and operation.gone and (places := await scene.places_with(operation.gone)):
                problems.append(f"acknowledged, and {places} have the redacted text")
            if left == before or operation.idempotent:
                fix_ids(number if left == before else number + 100)
                await asyncio.wait_for(operation.run(service), 60)
                again = await read_state(service)
                if again != after and not (left == after and operation.name == "redact a text"):
                    problems.append(f"repeated: {_difference(again, after, after)}")
            if operation.gone and await service.store.search(operation.gone.rpartition("=")[2]):  # type: ignore[attr-defined]
                problems.append("a search finds the redacted text")
            await service.append(S, {"role": "user", "content": "Still there?"}, id="last")
            if found := [each for each in await service.verify(S) if "skipped" not in each]:
                problems.append(f"afterwards: {found}")
        if operation.gone and (places := await scene.places_with(operation.gone)):
            problems.append(f"repeated, and {places} have the redacted text")

    try:
        asyncio.run(main())
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}")
    return problems


def _difference(left: Any, *expected: Any) -> str:
    """The smallest description of how a state differs from the nearest expected one."""
    found = [_first_difference("", left, each) for each in expected]
    return min(found, key=len)[:300]


def _first_difference(path: str, left: Any, right: Any) -> str:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys()):
            if left.get(key) != right.get(key):
                return _first_difference(f"{path}/{key}", left.get(key), right.get(key))
    if isinstance(left, list) and isinstance(right, list):
        for place, (one, other) in enumerate(zip(left, right, strict=False)):
            if one != other:
                return _first_difference(f"{path}/{place}", one, other)
        return f"{path} has {len(left)} items, not {len(right)}"
    return f"{path}: {str(left)[:120]} instead of {str(right)[:120]}"


def unsynced(calls: list[Call]) -> list[str]:
    """Files that were not synced between their last change and the acknowledgement, as a power failure would show."""
    end = next(place for place, call in enumerate(calls) if call.path.startswith("pipe:"))
    before = calls[:end]
    problems = []
    for path in {call.path for call in before if call.name in WRITES and call.path.startswith("/")}:
        names = [path, *(call.target for call in before if call.path == path and call.target)]
        last = max(place for place, call in enumerate(before) if call.path == path and call.name in WRITES)
        if not any(call.path in names for call in before[last:] if call.name in SYNCS) and not _is_cache(path):
            problems.append(f"{path} was not synced before the acknowledgement")
    for place, call in enumerate(before):
        folder = os.path.dirname(call.target)
        if call.target and not any(later.path == folder for later in before[place:] if later.name in SYNCS):
            problems.append(f"the folder of {call.target} was not synced before the acknowledgement")
    return problems


def _is_cache(path: str) -> bool:
    return any(each in os.path.basename(path) for each in CACHES)


def kill_everywhere(
    scene: Scene, limit: int, chance: random.Random, chosen: Sequence[str] | None = None
) -> PointCounts:
    """Kills a process at every call of every operation, round after round, until `limit` points were taken.

    With fewer points than a round has, they are spread over it. Operations that are not chosen are only performed.
    """
    counts = PointCounts()
    asyncio.run(_warm_up())
    gc.freeze()
    while counts.points < limit:
        words = chance.choice((3, 40, 400))
        scene.clear()
        in_fork(partial(perform, scene, "base", partial(prepare, words=words), 1, _nothing))
        left = limit - counts.points
        share = len(chosen) / ROUND_OPERATIONS if chosen else 1.0
        every = max(1, round(share * ROUND_CALLS[scene.kind] / left))
        for number, operation in enumerate(operations(words), 2):
            if chosen is None or operation.name in chosen:
                _kill_operation(scene, operation, number, every, chance, counts)
            else:
                in_fork(partial(perform, scene, "base", operation.run, number, _nothing))
        if not counts.points:
            break
    return counts


def _kill_operation(
    scene: Scene, operation: Operation, number: int, every: int, chance: random.Random, counts: PointCounts
) -> None:
    before = state_of(scene, "base")
    where = f"{scene.kind}, {operation.name}"
    for idle in (10.0, 0.0):
        scene.copy("base", "work")
        trace, _ = _run(scene, operation, number, idle=idle)
        if trace.code:
            counts.problems.append(f"{where}: it failed without a kill")
            return
        if idle and scene.kind != "postgres":
            counts.problems += [f"{where}: {problem}" for problem in unsynced(trace.calls)]
    scene.copy("work", "after")
    after = state_of(scene, "after")
    for at in range(1 + chance.randrange(every), trace.count + 1, every):
        torn = chance.choice((None, 0.1, 0.5, chance.random()))
        scene.copy("base", "work")
        killed, acknowledged = _run(scene, operation, number, at, torn)
        scene.wait_idle()
        found = in_fork(partial(check_left, scene, operation, number, before, after, acknowledged))
        counts.points += killed.killed
        counts.torn += killed.killed and torn is not None and trace.calls[at - 1].name in ("write", "pwrite64")
        counts.acknowledged += acknowledged
        counts.taken[operation.name] += killed.killed
        place = f"{where}, call {at} of {trace.count} ({trace.calls[at - 1].name} {trace.calls[at - 1].path})"
        counts.problems += [f"{place}: {problem}" for problem in (["the check failed"] if found is None else found)]
    scene.copy("after", "base")


def _run(
    scene: Scene,
    operation: Operation,
    number: int,
    at: int | None = None,
    torn: float | None = None,
    idle: float = 0.0,
) -> tuple[Trace, bool]:
    """Runs an operation on the copy, up to a kill; returns its trace, and whether it was acknowledged."""
    receiver, sender = os.pipe()

    def work() -> None:
        perform(scene, "work", operation.run, number, lambda: _acknowledge(sender), idle)

    trace = run_traced(work, at, torn, record=at is None)
    os.close(sender)
    acknowledged = bool(os.read(receiver, 1))
    os.close(receiver)
    return trace, acknowledged


def _acknowledge(pipe: int) -> None:
    os.write(pipe, b"1")


def _nothing() -> None:
    return


async def _warm_up() -> None:
    """Imports what the operations import, once instead of in every fork."""
    async with SessionService(MemoryStore(), estimator="chars/4") as service:
        await prepare(service, 3)
        for operation in operations(3):
            await operation.run(service)
        await read_state(service)
