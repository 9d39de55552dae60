"""Timing two things fairly on a machine that does other things as well."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec


class Ratio(msgspec.Struct, frozen=True):
    """One line of the table."""

    name: str
    compares: str
    """What is above the line and what is below."""
    ratio: float
    aim: float | None = None
    """None where the figure is stated and nothing is promised."""
    wanted: Literal["at most", "at least"] = "at most"
    seconds: dict[str, float] = {}
    """What was timed, each in seconds."""

    @property
    def met(self) -> bool | None:
        if self.aim is None:
            return None
        return self.ratio <= self.aim if self.wanted == "at most" else self.ratio >= self.aim


class Options(msgspec.Struct, frozen=True):
    quick: bool = False


def fastest(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The shortest time of each, taken in turns: a slow moment of the machine hits all alike."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            best[place] = min(best[place], seconds(call))
    return best


def seconds(call: Callable[[], object]) -> float:
    with_gc = gc.isenabled()
    gc.disable()
    try:
        started = time.perf_counter()
        call()
        return time.perf_counter() - started
    finally:
        if with_gc:
            gc.enable()


async def awaited(call: Callable[[], Awaitable[object]]) -> float:
    """The same for what must be awaited."""
    gc.disable()
    try:
        started = time.perf_counter()
        await call()
        return time.perf_counter() - started
    finally:
        gc.enable()


def many(call: Callable[[], object], times: int) -> Callable[[], object]:
    """A call so short that the clock needs several of it."""

    def run() -> None:
        for _ in range(times):
            call()

    return run
