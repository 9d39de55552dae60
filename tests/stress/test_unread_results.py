"""A sample of the random histories of `tests.stress.unread_results`: unread results are whole where they fit (H10)."""

from __future__ import annotations

import pytest
from tests.stress.unread_results import POLICIES, cases, run_case


@pytest.mark.sampled(8)
@pytest.mark.parametrize("policy", POLICIES)
def test_h10_unread_results_are_whole_wherever_they_fit(policy: str) -> None:
    done = [run_case(case) for case in cases(5, seed=7, only=policy) if case.policy == policy]
    assert [line for one in done for line in (*one.cut, *one.invalid)] == []
    assert sum(one.fitted for one in done) or len(done) < 5
