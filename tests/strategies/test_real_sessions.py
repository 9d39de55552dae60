"""The same on every real session, in its own wire format or in another one, in turns (H1, H2).

With HOLDFAST_WHOLE set, in all of them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from strategy_table import CHARS, LIMITED, PROFILES, STRATEGIES, WINDOWS, repaired, size_of, smallest, tokens_of

from holdfast import Outcome, check, compact
from holdfast.messages import encode_all
from holdfast.triggers import always
from judge import judge
from real_sessions import FILES, WHOLE, each_nth_session, format_of, history


@each_nth_session(30)
def test_every_strategy_on_a_real_session(path: Path) -> None:
    outcomes: Counter[Outcome] = Counter()
    place = FILES.index(path)
    turn = PROFILES[place // 2 % len(PROFILES)] if place % 2 else format_of(path)
    for profile in PROFILES if WHOLE else (turn,):
        given = encode_all(history(path), profile)
        before = tokens_of(repaired(given, profile), profile)
        size = size_of(given, profile, 1 / 3)
        limit = size.tokens
        least = smallest(given, profile)
        for name, make in STRATEGIES.items():
            options: dict[str, Any] = {"budget": before, "target": limit, "estimator": CHARS, "format": profile}
            result = compact(given, strategy=make(size), trigger=always, **options)
            if name != "prune" or any(message.results for message in history(path)):
                outcomes[result.outcome] += 1
            assert check(result.messages, profile) == []
            assert judge(result.messages, profile) == []
            assert result.messages
            after = tokens_of(result.messages, profile)
            assert after <= result.tokens_after <= before
            if name in LIMITED:
                assert after <= max(limit, least)
            if profile == turn:
                assert result.messages == compact(given, strategy=make(size), trigger=always, **options).messages
            if name in WINDOWS:
                again = compact(result.messages, strategy=make(size), trigger=always, **options)
                assert again.messages == result.messages
    assert outcomes[Outcome.COMPACTED] >= 0.95 * outcomes.total(), outcomes
