"""Cost of real sessions, compared with other compaction thresholds.

    HOLDFAST_SESSIONS=folder python -m benchmarks --only cost

Without such a folder it uses the bundled examples.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

import holdfast.transcripts.examples
from benchmarks.bills import (
    Bill,
    BilledSession,
    CompactDecision,
    CompactionEffect,
    expected_effect,
    logged_cost,
    sessions,
    simulate,
)
from benchmarks.measure import Options, Ratio
from holdfast.tokens.budget import Fraction, Tokens
from holdfast.triggers import CostTrigger, OverBudget, never

SIZES = range(60_000, 200_001, 10_000)
"""Fixed thresholds to choose the best from in hindsight."""
Policy = Callable[[BilledSession, CompactionEffect], CompactDecision]


def actual(session: BilledSession, effect: CompactionEffect) -> CompactDecision:
    return lambda request, call: call.after_compaction


def window_share(part: float, reserve: int = 0) -> Policy:
    def policy(session: BilledSession, effect: CompactionEffect) -> CompactDecision:
        trigger = OverBudget(Fraction(part, reserve), session.window)
        return lambda request, call: trigger(request)

    return policy


def fixed_size(size: int) -> Policy:
    def policy(session: BilledSession, effect: CompactionEffect) -> CompactDecision:
        trigger = OverBudget(Tokens(size), session.window)
        return lambda request, call: trigger(request)

    return policy


def cost_trigger(session: BilledSession, effect: CompactionEffect) -> CompactDecision:
    trigger = CostTrigger(session.model, window=session.window, target=effect.after, summary_tokens=effect.summary)
    return lambda request, call: trigger(request)


reserve_policy = window_share(0.85, reserve=16_384)
POLICIES: dict[str, Policy] = {
    "85 % of the window less reserve": reserve_policy,
    "95 % of the window": window_share(0.95),
    "never": lambda session, effect: lambda request, call: never(request),
    "CostTrigger": cost_trigger,
}


def run(options: Options) -> Iterator[Ratio]:
    found = list(sessions(_files()[:: 8 if options.quick else 1]))
    if not found:
        return
    effects = [expected_effect(session, found) for session in found]

    def under(policy: Policy, more: float = 1.0, *, pauses: bool = True) -> list[Bill]:
        each = [msgspec.structs.replace(one, after=int(one.after * more)) for one in effects]
        pairs = zip(found, each, strict=True)
        return [simulate(session, policy(session, one), one, pauses=pauses) for session, one in pairs]

    was, real = under(actual), [logged_cost(session) for session in found]
    spent = f"as logged, ${sum(real):,.2f} for {len(found)} sessions of {_calls(found):,} calls"
    furthest = max(abs(bill.calls / paid - 1) for bill, paid in zip(was, real, strict=True))
    yield Ratio(
        "cost: the simulation",
        f"calls with the real compactions / {spent}; furthest off: {furthest:.1%}",
        sum(bill.calls for bill in was) / sum(real),
    )
    yield Ratio(
        "cost: the simulation without pauses",
        f"the same, if the cache never expired / {spent}",
        sum(bill.calls for bill in under(actual, pauses=False)) / sum(real),
    )
    for name, policy in POLICIES.items():
        yield _ratio(name, under(policy), was)
    best = min(SIZES, key=lambda size: sum(bill.total for bill in under(fixed_size(size))))
    yield _ratio(f"{best:,}, the best fixed size in hindsight", under(fixed_size(best)), was)
    bills = under(cost_trigger)
    for kind in sorted({session.kind for session in found}):
        mine = [place for place, session in enumerate(found) if session.kind == kind]
        yield _ratio(f"CostTrigger, {kind}", [bills[place] for place in mine], [was[place] for place in mine])
    yield _ratio(
        "CostTrigger, leaving 1.5 times as much", under(cost_trigger, 1.5), under(reserve_policy, 1.5), "at 85 %"
    )
    yield _break_even(found, bills, was)


def _ratio(name: str, bills: list[Bill], others: list[Bill], label: str = "actual") -> Ratio:
    cost, other = sum(bill.total for bill in bills), sum(bill.total for bill in others)
    changes = [bill.total / old.total - 1 for bill, old in zip(bills, others, strict=True)]
    cheaper, dearer = sum(change < -0.01 for change in changes), sum(change > 0.01 for change in changes)
    return Ratio(
        f"cost: {name}",
        f"${cost:,.2f} / ${other:,.2f} {label}, of it ${sum(bill.summaries for bill in bills):,.2f} for summaries; "
        f"{sum(bill.compactions for bill in bills)} compactions / {sum(old.compactions for old in others)}; sessions: "
        f"{cheaper} cheaper, {dearer} dearer (the worst {max(changes):+.0%}), "
        f"{len(changes) - cheaper - dearer} the same",
        cost / other,
    )


def _break_even(found: list[BilledSession], bills: list[Bill], was: list[Bill]) -> Ratio:
    """Additional calls per compaction at which the saving is used up."""
    saved = sum(old.total - bill.total for bill, old in zip(bills, was, strict=True))
    more = sum(bill.compactions - old.compactions for bill, old in zip(bills, was, strict=True))
    one_call = sum(bill.calls for bill in bills) / _calls(found)
    return Ratio(
        "cost: CostTrigger, break-even",
        f"additional calls per compaction ({more} more) before nothing is saved; ${one_call:.3f} a call",
        saved / max(1, more) / one_call,
    )


def _calls(found: list[BilledSession]) -> int:
    return sum(len(session.calls) for session in found)


def _files() -> list[Path]:
    folder = os.environ.get("HOLDFAST_SESSIONS")
    where = [folder] if folder else holdfast.transcripts.examples.__path__
    endings = (".jsonl", ".jsonl.gz", ".json", ".json.gz")
    return sorted(path for root in where for path in Path(root).rglob("*") if path.name.endswith(endings))
