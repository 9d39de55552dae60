"""Ten rounds with models that forget half, invent a tenth, or answer in prose; all of them with HOLDFAST_WHOLE set."""

from __future__ import annotations

import os
from itertools import product

import pytest

from stress.bad_models import MODELS, SUMMARIZING, run

RUNS = list(product(SUMMARIZING, MODELS, (True, False)))
SAMPLED = RUNS if os.environ.get("HOLDFAST_WHOLE") else RUNS[::5]
"""Each preset and each model, with and without the checkpoint."""


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "model", "carried"), SAMPLED)
def test_h3_ten_rounds_keep_what_must_survive_and_nothing_invented(name: str, model: str, carried: bool) -> None:
    """The task, rules in five languages, changed files, open steps, the newest request, in every preset."""
    report = run(name, model, carried=carried, target=8_000)
    assert (report.lost, report.invented) == ((), ())
