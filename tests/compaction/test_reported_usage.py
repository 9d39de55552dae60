"""`compact(…, usage=…)`: the size is what the provider reported, plus an estimate of what came after (P3)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Outcome, compact
from holdfast.errors import InvalidInput
from holdfast.tokens import Calibration, ReportedUsage
from sized import assistant, user

HISTORY = [message for _ in range(10) for message in (user(100, "Mend the pier."), assistant(100))]
AFTER = [*HISTORY, user(50)]


def compacted(messages: Any = AFTER, budget: int = 2_500, **options: Any) -> Any:
    return compact(messages, budget=budget, estimator="chars/4", **options)


def test_p3_size_is_the_reported_one_and_an_estimate_of_what_came_after() -> None:
    result = compacted(usage={"input_tokens": 2_400, "output_tokens": 100}, budget=10_000)
    assert (result.outcome, result.tokens_before) == (Outcome.NOT_NEEDED, 2_550)
    assert compacted(budget=10_000).tokens_before == 2_050


def test_p3_reported_size_decides_whether_to_compact() -> None:
    assert compacted().outcome is Outcome.NOT_NEEDED
    result = compacted(usage={"prompt_tokens": 2_400, "completion_tokens": 100})
    assert result.outcome is Outcome.COMPACTED
    assert result.tokens_after <= 1_250, "with the 500 tokens that the estimate does not see"


def test_p3_estimate_above_the_report_is_scaled_down() -> None:
    result = compacted(usage={"input_tokens": 950, "output_tokens": 50}, budget=900)
    assert result.tokens_before == 1_025
    assert 0 < result.tokens_after <= 450


def test_reported_usage_may_cover_fewer_messages() -> None:
    assert compacted(usage=ReportedUsage(1_500, 10), budget=10_000).tokens_before == 1_500 + 1_050


def test_usage_of_messages_that_a_compaction_archived_is_ignored() -> None:
    first = compacted(budget=1_000)
    again = compacted(previous=first.checkpoint, usage=ReportedUsage(90_000, 2), budget=10_000)
    assert again.tokens_before == first.tokens_after


def test_preset_that_counts_by_characters_alone_ignores_the_report() -> None:
    usage = {"input_tokens": 2_400, "output_tokens": 100}
    assert compact(AFTER, preset="layer", window=10_000, usage=usage).tokens_before == 2_050
    assert compact(AFTER, preset="pi", window=10_000, usage=usage).tokens_before == 2_550


def test_usage_without_token_counts_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="usage= takes token counts"):
        compacted(usage={"seconds": 3})


def test_report_out_of_range_leaves_the_estimate() -> None:
    assert Calibration.from_report(100, 0) == Calibration()
