"""Fair timing of several calls on a busy machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec


class Ratio(msgspec.Struct, frozen=True):
    """One result line: a ratio and its aim."""

    name: str
    compares: str
    """Numerator and denominator in words."""
    ratio: float
    aim: float | None = None
    """None if the figure is only reported."""
    wanted: Literal["at most", "at least"] = "at most"
    seconds: dict[str, float] = {}
    """Timings in seconds."""

    @property
    def met(self) -> bool | None:
        if self.aim is None:
            return None
        return self.ratio <= self.aim if self.wanted == "at most" else self.ratio >= self.aim


class Options(msgspec.Struct, frozen=True):
    quick: bool = False


def fastest(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Shortest time of each call, measured in turns so that slow moments affect all alike."""
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


async def time_awaitable(call: Callable[[], Awaitable[object]]) -> float:
    """Times an awaitable."""
    gc.disable()
    try:
        started = time.perf_counter()
        await call()
        return time.perf_counter() - started
    finally:
        gc.enable()


def repeat(call: Callable[[], object], times: int) -> Callable[[], object]:
    """Repeats a call that is too short to time alone."""

    def run() -> None:
        for _ in range(times):
            call()

    return run
