"""Which policy would have served a user's own sessions best: what it keeps, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ..catalog import CATALOG
from ..catalog.prices import READ_RATIO
from ..errors import HoldfastError, InvalidInput
from ..tokens import estimator_for
from ..transcripts import read_transcript
from .corpus import in_half, session_name
from .policies import POLICIES, Policy
from .run import spread
from .settings import Settings
from .simulation import Run, Simulation

SLACK = 0.02
"""Policies that keep as much as the best, but for this, are as good: the cheapest of them is best."""


class Simulated(msgspec.Struct, frozen=True):
    """One session under every policy."""

    session: str
    model: str | None
    window: int
    tokens: int
    runs: tuple[Run, ...]


class Line(msgspec.Struct, frozen=True):
    """One policy over all sessions."""

    policy: Policy
    compactions: int
    sent: int
    cached: int
    cost: float | None
    """USD for input; None where a model has no price in the catalog."""
    units: float
    """Input tokens, with those from the cache at a tenth: what counts where no price is known."""
    kept: float | None


class Advice(msgspec.Struct, frozen=True):
    """A table and one sentence."""

    sessions: int
    compacted: int
    """Sessions that any policy compacted."""
    calls: int
    lines: list[Line]
    best: Line | None
    sentence: str


def tune(
    files: Sequence[Path],
    settings: Settings,
    *,
    model: str | None = None,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> list[Simulated]:
    found = []
    for simulated in spread(partial(simulate, settings=settings, model=model), files, jobs):
        progress()
        if simulated is not None:
            found.append(simulated)
    if not found:
        other_half = "" if settings.half == "all" else "try --half all, or "
        raise InvalidInput(f"No session could be simulated: {other_half}name a folder with sessions.")
    return sorted(found, key=lambda one: one.session)


def simulate(file: Path, settings: Settings, model: str | None = None) -> Simulated | None:
    """One file under every policy; None where it is of the other half, or no session."""
    try:
        transcript = read_transcript(file)
        session, name = session_name(transcript, file), model or transcript.model
        if not in_half(session, settings.half):
            return None
        window = CATALOG.window(name)
        simulation = Simulation(transcript, window, estimator_for(settings.estimator))
        runs = tuple(map(simulation.run, POLICIES))
    except HoldfastError:
        return None
    return Simulated(session, name, window, simulation.largest, runs)


def advice(sessions: Sequence[Simulated]) -> Advice:
    """Of the policies that keep about as much as the best, the cheapest."""
    lines = [_line(place, policy, sessions) for place, policy in enumerate(POLICIES)]
    compacted = sum(any(run.compactions for run in one.runs) for one in sessions)
    most = max((line.kept for line in lines if line.kept is not None), default=None)
    good = [line for line in lines if most is not None and line.kept is not None and line.kept >= most - SLACK]
    best = min(good, key=lambda line: line.units if line.cost is None else line.cost, default=None)
    calls = sum(one.runs[0].calls for one in sessions)
    return Advice(len(sessions), compacted, calls, lines, best, _sentence(best, lines, compacted))


def _line(place: int, policy: Policy, sessions: Sequence[Simulated]) -> Line:
    runs = [one.runs[place] for one in sessions]
    costs = [_cost(one.model, run) for one, run in zip(sessions, runs, strict=True)]
    kept = [share for run in runs for share in run.kept]
    return Line(
        policy=policy,
        compactions=sum(run.compactions for run in runs),
        sent=sum(run.sent for run in runs),
        cached=sum(run.cached for run in runs),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
        units=sum(run.uncached + READ_RATIO * run.cached for run in runs),
        kept=sum(kept) / len(kept) if kept else None,
    )


def _cost(model: str | None, run: Run) -> float | None:
    """New input is written to the cache where that has a price of its own; the rest is read from it."""
    entry = CATALOG.find(model) if model else None
    if entry is None or entry.input_price is None:
        return None
    written = entry.input_price if entry.cache_write_price is None else entry.cache_write_price
    read = READ_RATIO * entry.input_price if entry.cache_read_price is None else entry.cache_read_price
    return (run.uncached * written + run.cached * read) / 1_000_000


def _sentence(best: Line | None, lines: Sequence[Line], compacted: int) -> str:
    if not compacted:
        return "None of these sessions grows over half of its window and can be compacted: there is nothing to tune."
    if best is None or best.kept is None:
        return "No call after a compaction needs an earlier name: these sessions cannot say which policy is best."
    price = "" if best.cost is None else f", for ${best.cost:,.2f} of input"
    others = [line for line in lines if line.kept is not None and line.policy.strategy != best.policy.strategy]
    said = f"Best for these sessions: {best.policy.words} of the window: {best.kept:.0%} of the names needed later"
    times = "one compaction" if best.compactions == 1 else f"{best.compactions} compactions"
    said += f" stay in context{price}, over {times}."
    if near := max(others, key=lambda line: line.kept or 0, default=None):
        cost = "" if near.cost is None else f" for ${near.cost:,.2f}"
        said += f" The best without it, {near.policy.words}, keeps {near.kept:.0%}{cost}."
    return said
