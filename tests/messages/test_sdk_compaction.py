"""Every type of the installed SDKs through compaction: what is kept is as it was, and units are whole.

With HOLDFAST_WHOLE set, every way of compaction with every sample; else a sample of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sdk_cases import Case, each_of, fixed_number, forms
from sdk_changes import unsound
from sdk_conversations import conversation

from holdfast import CompactionResult, PruneToolResults, SlidingWindow, TokenWindow, Truncate, TurnWindow, compact
from holdfast.compaction.presets import PRESETS
from holdfast.strategies import KeepFraction, KeepLast, KeepTrail
from holdfast.triggers import always
from real_sessions import WHOLE

NOTES = "## Completed Work\n- The berths were read.\n## Pending Work\n- [ ] The rest of the berths."
Way = Callable[..., CompactionResult]
within = partial(compact, budget=100_000)
STRATEGIES: dict[str, Way] = {
    "prune": partial(within, strategy=PruneToolResults(protect=0, minimum=0)),
    **{f"trail-{tokens}": partial(within, strategy=KeepTrail(tokens)) for tokens in (150, 400, 800, 1_600)},
    **{f"tokens-{tokens}": partial(within, strategy=TokenWindow(tokens)) for tokens in (300, 600, 1_000, 1_500)},
    **{f"last-{count}": partial(within, strategy=KeepLast(count)) for count in range(6, 12)},
    **{f"sliding-{count}": partial(within, strategy=SlidingWindow(count)) for count in range(6, 12)},
    **{f"turns-{count}": partial(within, strategy=TurnWindow(count)) for count in (1, 3, 4)},
    **{f"truncate-{tokens}": partial(within, strategy=Truncate(max_tokens=tokens)) for tokens in (400, 800, 1_300)},
    **{f"fraction-{share}": partial(within, strategy=KeepFraction(share)) for share in (0.4, 0.7)},
}
WITH_NOTES: dict[str, Way] = {
    **{f"ledger-{budget}": partial(compact, budget=budget) for budget in (600, 1_200, 2_000)},
    **{
        f"{name}-{window}": partial(compact, preset=name, window=window, summarizer=lambda prompt: NOTES)
        for name in PRESETS
        for window in (1_500, 3_000)
    },
}
"""Slower: what is archived is read for the notes."""
WAYS = STRATEGIES | WITH_NOTES


def ways_of(case: Case) -> list[tuple[str, int]]:
    """Ways of compaction, and how many turns follow the sample: pruning, some cuts, and a few with notes."""
    if WHOLE:
        return [(name, after) for name in WAYS for after in (0, 3)]
    number, cuts = fixed_number(case.id), 1 if len(conversation(case).unit) < 3 else 4
    chosen = ["prune", *([*STRATEGIES][(number + step * 7) % len(STRATEGIES)] for step in range(cuts))]
    chosen += [[*WITH_NOTES][number % len(WITH_NOTES)]] if number % 4 == 0 else []
    return [(name, 3 if name == "prune" else (number + step) % 2 * 3) for step, name in enumerate(chosen)]


@each_of(forms())
def test_sdk_type_survives_compaction_whole(case: Case) -> None:
    found: dict[str, list[str]] = {}
    for name, after in ways_of(case):
        given = conversation(case, after=after)
        result = WAYS[name](given.messages, format=case.format, trigger=always)
        if complaints := unsound(given, result.messages, case):
            found[f"{name}, {after} turns after"] = complaints
    assert found == {}
