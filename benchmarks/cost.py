"""What real sessions cost, and what they would have cost had they been compacted at other sizes (H4).

    HOLDFAST_SESSIONS=folder python -m benchmarks --only cost

Without such a folder, on the examples that ship with Holdfast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

import holdfast.examples
from holdfast.budget import Fraction, Tokens
from holdfast.triggers import CostTrigger, OverBudget, never

from .bills import Bill, Compacted, Compacts, Session, leaves, live, logged, sessions
from .measure import Options, Ratio

SIZES = range(60_000, 200_001, 10_000)
"""Fixed sizes among which the best is looked for when all is over."""
Policy = Callable[[Session, Compacted], Compacts]


def as_it_was(session: Session, leaves: Compacted) -> Compacts:
    return lambda request, call: call.afresh


def part_of_window(part: float, reserve: int = 0) -> Policy:
    def policy(session: Session, leaves: Compacted) -> Compacts:
        trigger = OverBudget(Fraction(part, reserve), session.window)
        return lambda request, call: trigger(request)

    return policy


def at(size: int) -> Policy:
    def policy(session: Session, leaves: Compacted) -> Compacts:
        trigger = OverBudget(Tokens(size), session.window)
        return lambda request, call: trigger(request)

    return policy


def cheapest(session: Session, leaves: Compacted) -> Compacts:
    trigger = CostTrigger(session.model, window=session.window, target=leaves.after, summary_tokens=leaves.summary)
    return lambda request, call: trigger(request)


usual = part_of_window(0.85, reserve=16_384)
POLICIES: dict[str, Policy] = {
    "85 % of what a reserve leaves": usual,
    "95 % of the window": part_of_window(0.95),
    "never": lambda session, leaves: lambda request, call: never(request),
    "CostTrigger": cheapest,
}


def run(options: Options) -> Iterator[Ratio]:
    found = list(sessions(_files()[:: 8 if options.quick else 1]))
    if not found:
        return
    left = [leaves(session, found) for session in found]

    def under(policy: Policy, more: float = 1.0, *, pauses: bool = True) -> list[Bill]:
        each = [msgspec.structs.replace(one, after=int(one.after * more)) for one in left]
        pairs = zip(found, each, strict=True)
        return [live(session, policy(session, one), one, pauses=pauses) for session, one in pairs]

    was, real = under(as_it_was), [logged(session) for session in found]
    spent = f"as logged, ${sum(real):,.2f} for {len(found)} sessions of {_calls(found):,} calls"
    furthest = max(abs(bill.calls / paid - 1) for bill, paid in zip(was, real, strict=True))
    yield Ratio(
        "cost: the simulation",
        f"calls with the real compactions / {spent}; furthest off: {furthest:.1%}",
        sum(bill.calls for bill in was) / sum(real),
    )
    yield Ratio(
        "cost: the simulation without pauses",
        f"the same, had no pause emptied the cache / {spent}",
        sum(bill.calls for bill in under(as_it_was, pauses=False)) / sum(real),
    )
    for name, policy in POLICIES.items():
        yield _ratio(name, under(policy), was)
    best = min(SIZES, key=lambda size: sum(bill.total for bill in under(at(size))))
    yield _ratio(f"{best:,}, the best fixed size in hindsight", under(at(best)), was)
    bills = under(cheapest)
    for kind in sorted({session.kind for session in found}):
        mine = [place for place, session in enumerate(found) if session.kind == kind]
        yield _ratio(f"CostTrigger, {kind}", [bills[place] for place in mine], [was[place] for place in mine])
    yield _ratio("CostTrigger, leaving 1.5 times as much", under(cheapest, 1.5), under(usual, 1.5), "at 85 %")
    yield _room(found, bills, was)


def _ratio(name: str, bills: list[Bill], others: list[Bill], called: str = "as it was") -> Ratio:
    cost, other = sum(bill.total for bill in bills), sum(bill.total for bill in others)
    changes = [bill.total / old.total - 1 for bill, old in zip(bills, others, strict=True)]
    cheaper, dearer = sum(change < -0.01 for change in changes), sum(change > 0.01 for change in changes)
    return Ratio(
        f"cost: {name}",
        f"${cost:,.2f} / ${other:,.2f} {called}, of it ${sum(bill.summaries for bill in bills):,.2f} for summaries; "
        f"{sum(bill.compactions for bill in bills)} compactions / {sum(old.compactions for old in others)}; sessions: "
        f"{cheaper} cheaper, {dearer} dearer (the worst {max(changes):+.0%}), "
        f"{len(changes) - cheaper - dearer} the same",
        cost / other,
    )


def _room(found: list[Session], bills: list[Bill], was: list[Bill]) -> Ratio:
    """An agent that lost something asks for it again: how often may it, before all that is saved is gone?"""
    saved = sum(old.total - bill.total for bill, old in zip(bills, was, strict=True))
    more = sum(bill.compactions - old.compactions for bill, old in zip(bills, was, strict=True))
    one_call = sum(bill.calls for bill in bills) / _calls(found)
    return Ratio(
        "cost: CostTrigger, what it may cost the agent",
        f"calls that each of {more} more compactions may bring before nothing is saved; ${one_call:.3f} a call",
        saved / max(1, more) / one_call,
    )


def _calls(found: list[Session]) -> int:
    return sum(len(session.calls) for session in found)


def _files() -> list[Path]:
    folder = os.environ.get("HOLDFAST_SESSIONS")
    where = [folder] if folder else holdfast.examples.__path__
    endings = (".jsonl", ".jsonl.gz", ".json", ".json.gz")
    return sorted(path for root in where for path in Path(root).rglob("*") if path.name.endswith(endings))
