"""One step of `Keeper` on a short and a very long list, and how long reading it blocks the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import cycle

from benchmarks.measure import Options, Ratio, time_awaitable
from benchmarks.mixes import Json, agent, chat
from holdfast import Keeper, MemoryStore, SessionService, SlidingWindow
from holdfast.compaction import Policy
from holdfast.triggers import never

SIZES = (100, 10_000, 100_000)
AIM = 1.3
STEPS = 20
"""Steps in one timing."""
ROUNDS = 30
LIVE = 60
"""Messages in the context of every history, so that only its length differs."""
BLOCKED = 0.1
"""Longest pause of the event loop, as a share of the time that reading the list takes."""
PULSE = 0.001


def run(options: Options) -> Iterator[Ratio]:
    sizes = SIZES[:2] if options.quick else SIZES
    yield from asyncio.run(_compare(sizes))
    yield asyncio.run(_blocked(sizes[-1]))


def _keeper() -> Keeper:
    preset = Policy(name="window", about="", figures={}, trigger=never, strategy=SlidingWindow(LIVE))
    sessions = SessionService(MemoryStore(), estimator="chars/4")
    return Keeper(sessions, preset=preset, window=10**9, format="openai-chat")


async def _compare(sizes: tuple[int, ...]) -> list[Ratio]:
    histories = {size: [await _followed(size)] for size in sizes[1:]}
    histories[sizes[0]] = [await _followed(sizes[0]) for _ in range(ROUNDS)]  # one per round, since it grows
    best = dict.fromkeys(sizes, float("inf"))
    steps = cycle(agent(1_000))
    for turn in range(ROUNDS):
        for size in sizes:
            keeper, history = histories[size][turn if size == sizes[0] else 0]
            await keeper.compact()
            best[size] = min(best[size], await time_awaitable(partial(_steps, keeper, history, steps)))
    shortest = best[sizes[0]]
    return [
        Ratio(
            f"keeper step at {size:,} messages",
            f"prepare_step on a list of {size:,} / of {sizes[0]:,} messages",
            best[size] / shortest,
            AIM,
            seconds={f"at {size}": best[size] / STEPS, f"at {sizes[0]}": shortest / STEPS},
        )
        for size in sizes[1:]
    ]


async def _followed(size: int) -> tuple[Keeper, list[Json]]:
    keeper, history = _keeper(), chat(size)
    await keeper.prepare_step(history)
    return keeper, history


async def _steps(keeper: Keeper, history: list[Json], messages: Iterator[Json]) -> None:
    for _ in range(STEPS):
        history.append(next(messages))
        await keeper.prepare_step(history)


async def _blocked(size: int) -> Ratio:
    keeper, history, pauses = _keeper(), chat(size), [0.0]

    async def pulse() -> None:
        while True:
            slept = time.perf_counter()
            await asyncio.sleep(PULSE)
            pauses.append(time.perf_counter() - slept - PULSE)

    pulsing = asyncio.create_task(pulse())
    taken = await time_awaitable(partial(keeper.prepare_step, history))
    pulsing.cancel()
    with suppress(asyncio.CancelledError):
        await pulsing
    return Ratio(
        f"event loop while {size:,} messages are read",
        "longest pause / time of the first prepare_step",
        max(pauses) / taken,
        BLOCKED,
        seconds={"pause": max(pauses), "step": taken},
    )
