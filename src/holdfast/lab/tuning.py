"""Finds the compaction policy that retains most at the lowest cost on given sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ..errors import HoldfastError, InvalidInput
from ..messages.json_text import decodable
from ..tokens import estimator_for
from ..tokens.catalog import CATALOG, READ_RATIO
from ..transcripts import read_transcript
from .corpus import in_half, session_name
from .results import LabSettings
from .run import map_files
from .simulation import POLICIES, SimulatedPolicy, SimulatedRun, Simulation

KEPT_TOLERANCE = 0.02
"""Policies within this distance of the best retention count as equal; the cheapest of them wins."""


class SimulatedSession(msgspec.Struct, frozen=True):
    """One session simulated under every policy."""

    session: str
    model: str | None
    window: int
    tokens: int
    runs: tuple[SimulatedRun, ...]


class PolicyResult(msgspec.Struct, frozen=True):
    """Totals of one policy over all sessions."""

    policy: SimulatedPolicy
    compactions: int
    sent: int
    cached: int
    cost: float | None
    """Input cost in USD; None if a model has no price in the catalog."""
    units: float
    """Input tokens with cached ones at a tenth: the cost measure without prices."""
    kept: float | None


@decodable
class TuningAdvice(msgspec.Struct, frozen=True):
    """Results of all policies, and a recommendation."""

    sessions: int
    compacted: int
    """Sessions compacted by at least one policy."""
    calls: int
    lines: list[PolicyResult]
    best: PolicyResult | None
    sentence: str


def tune(
    files: Sequence[Path],
    settings: LabSettings,
    *,
    model: str | None = None,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> list[SimulatedSession]:
    found = []
    for simulated in map_files(partial(simulate_file, settings=settings, model=model), files, jobs):
        progress()
        if simulated is not None:
            found.append(simulated)
    if not found:
        other_half = "" if settings.half == "all" else "try --half all, or "
        raise InvalidInput(f"No session could be simulated: {other_half}name a folder with sessions.")
    return sorted(found, key=lambda one: one.session)


def simulate_file(file: Path, settings: LabSettings, model: str | None = None) -> SimulatedSession | None:
    """Simulates one file under every policy; None if it is in the other half or not a session."""
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
    return SimulatedSession(session, name, window, simulation.largest, runs)


def choose_policy(sessions: Sequence[SimulatedSession]) -> TuningAdvice:
    """Chooses the cheapest of the policies with about the best retention."""
    lines = [_policy_result(place, policy, sessions) for place, policy in enumerate(POLICIES)]
    compacted = sum(any(run.compactions for run in one.runs) for one in sessions)
    most = max((line.kept for line in lines if line.kept is not None), default=None)
    good = [line for line in lines if most is not None and line.kept is not None and line.kept >= most - KEPT_TOLERANCE]
    best = min(good, key=lambda line: line.units if line.cost is None else line.cost, default=None)
    calls = sum(one.runs[0].calls for one in sessions)
    return TuningAdvice(len(sessions), compacted, calls, lines, best, _sentence(best, lines, compacted))


def _policy_result(place: int, policy: SimulatedPolicy, sessions: Sequence[SimulatedSession]) -> PolicyResult:
    runs = [one.runs[place] for one in sessions]
    costs = [_cost(one.model, run) for one, run in zip(sessions, runs, strict=True)]
    kept = [share for run in runs for share in run.kept]
    return PolicyResult(
        policy=policy,
        compactions=sum(run.compactions for run in runs),
        sent=sum(run.sent for run in runs),
        cached=sum(run.cached for run in runs),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
        units=sum(run.uncached + READ_RATIO * run.cached for run in runs),
        kept=sum(kept) / len(kept) if kept else None,
    )


def _cost(model: str | None, run: SimulatedRun) -> float | None:
    """Prices new input as cache writes where they have a price, and the rest as cache reads."""
    entry = CATALOG.find(model) if model else None
    if entry is None or entry.input_price is None:
        return None
    written = entry.input_price if entry.cache_write_price is None else entry.cache_write_price
    read = READ_RATIO * entry.input_price if entry.cache_read_price is None else entry.cache_read_price
    return (run.uncached * written + run.cached * read) / 1_000_000


def _sentence(best: PolicyResult | None, lines: Sequence[PolicyResult], compacted: int) -> str:
    if not compacted:
        return "No session exceeds half of its window and can be compacted: there is nothing to tune."
    if best is None or best.kept is None:
        return "No call after a compaction needs an earlier name: these sessions do not show which policy is best."
    price = "" if best.cost is None else f", for ${best.cost:,.2f} of input"
    others = [line for line in lines if line.kept is not None and line.policy.strategy != best.policy.strategy]
    text = (
        f"Best for these sessions: {best.policy.description} of the window: {best.kept:.0%} of the names needed later"
    )
    times = "one compaction" if best.compactions == 1 else f"{best.compactions} compactions"
    text += f" stay in context{price}, over {times}."
    if second := max(others, key=lambda line: line.kept or 0, default=None):
        cost = "" if second.cost is None else f" for ${second.cost:,.2f}"
        text += f" The best without it, {second.policy.description}, keeps {second.kept:.0%}{cost}."
    return text
