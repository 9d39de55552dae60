"""Simulated policies: compactions, tokens sent, cost."""

from __future__ import annotations

import pytest

from holdfast.lab.simulation import SimulatedRun, Simulation
from holdfast.lab.trial import reply_positions
from holdfast.lab.tuning import POLICIES, SimulatedPolicy, SimulatedSession, _cost, choose_policy
from holdfast.tokens import estimator_for
from holdfast.tokens.catalog import CATALOG
from lab_story import long_history, transcript

CHARS = estimator_for("chars/4")


def simulation(window: int) -> Simulation:
    return Simulation(transcript(long_history(40)), window, CHARS)


def test_large_window_never_compacts() -> None:
    history = long_history(40)
    lived = simulation(10**6)
    run = lived.run(POLICIES[0])
    sizes = [sum(map(CHARS.measure, history[:place])) for place in reply_positions(history)]
    assert (run.compactions, run.kept) == (0, ())
    assert run.calls == len(sizes) and run.sent == sum(sizes)
    assert run.cached == sum(sizes[:-1]), "all that the call before sent is read from the cache"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strategy", ["ledger", "window", "truncation", "pruning"])
def test_small_window_compacts_and_loses_cache(strategy: str) -> None:
    lived = simulation(8_000)
    run = lived.run(SimulatedPolicy(strategy, 0.7, 0.5))
    assert run.compactions >= 2
    assert run.sent < simulation(10**6).run(POLICIES[0]).sent
    assert run.uncached > lived.largest, "after each compaction the whole context is new"
    assert run.kept and all(0 <= share <= 1 for share in run.kept)


def test_lower_target_compacts_less_often() -> None:
    far, near = (simulation(8_000).run(SimulatedPolicy("window", 0.85, target)) for target in (0.25, 0.5))
    assert far.compactions < near.compactions


def test_cost_splits_cache_writes_and_reads() -> None:
    model = CATALOG.find("claude-sonnet-4-5")
    assert model is not None and model.cache_write_price is not None and model.cache_read_price is not None
    run = SimulatedRun(POLICIES[0], 2, 0, sent=3_000_000, cached=2_000_000, kept=())
    assert _cost("claude-sonnet-4-5", run) == pytest.approx(model.cache_write_price + 2 * model.cache_read_price)
    assert _cost("nobody-knows-it", run) is None and _cost(None, run) is None


def _simulated(kept: dict[str, float], sent: dict[str, int]) -> SimulatedSession:
    runs = [
        SimulatedRun(
            policy, 5, 1, sent.get(policy.strategy, 9_000) + round(100 * policy.threshold), 0, (kept[policy.strategy],)
        )
        for policy in POLICIES
    ]
    return SimulatedSession("s", "claude-sonnet-4-5", 200_000, 150_000, tuple(runs))


def test_cheapest_of_best_policies_is_chosen() -> None:
    kept = {"ledger": 0.95, "window": 0.6, "truncation": 0.6, "pruning": 0.94}
    dear = choose_policy([_simulated(kept, {"window": 10, "pruning": 5_000})])
    assert dear.best is not None and dear.best.policy == SimulatedPolicy("pruning", 0.5, 0.25)
    cheap = choose_policy([_simulated(kept, {"window": 10, "ledger": 5_000})])
    assert cheap.best is not None and cheap.best.policy.strategy == "ledger"
    assert "ledger at 50% down to 25%" in cheap.sentence


def test_short_sessions_need_no_tuning() -> None:
    runs = tuple(SimulatedRun(policy, 5, 0, 100, 50, ()) for policy in POLICIES)
    found = choose_policy([SimulatedSession("s", None, 200_000, 1_000, runs)])
    assert found.best is None and "nothing to tune" in found.sentence
    assert found.lines[0].cost is None


def test_sessions_without_needs_give_no_policy() -> None:
    runs = tuple(SimulatedRun(policy, 5, 2, 100, 50, ()) for policy in POLICIES)
    found = choose_policy([SimulatedSession("s", None, 8_000, 100_000, runs)])
    assert (found.best, found.compacted) == (None, 1)
    assert "needs an earlier name" in found.sentence and "grows over half" not in found.sentence
