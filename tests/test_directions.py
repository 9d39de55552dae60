"""Each question that comes up on every path is answered in one place: the check finds a second answer."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).resolve().parent.parent / "scripts" / "directions.py"))
answers_in: Callable[[str, str], Iterator[str]] = SCRIPT["answers_in"]

SECOND_ANSWERS = {
    "a limit halved": ("strategies/x.py", "target = request.budget // 2", "compaction/policy.py"),
    "units turned into tokens": ("sessions/x.py", "size = view._tokens_of(units)", "context/view.py"),
    "a size calibrated": ("triggers/x.py", "size = view.calibration.tokens(estimate)", "context/view.py"),
    "an id looked for": ("compaction/x.py", "for at in places:\n    if ids[at] == known: break", "follow/"),
    "two lists bisected": (
        "gateway/x.py",
        "while low < high:\n    middle = (low + high) // 2\n    if some[middle] != other[middle]: high = middle",
        "follow/",
    ),
}


@pytest.mark.parametrize(("name", "source", "place"), SECOND_ANSWERS.values(), ids=SECOND_ANSWERS)
def test_second_answer_is_found_outside_its_place_only(name: str, source: str, place: str) -> None:
    found = list(answers_in(name, source))
    assert len(found) == 1
    assert found[0].startswith(f"{name}:")
    assert place in found[0]
    assert not list(answers_in(f"{place}x.py" if place.endswith("/") else place, source))


@pytest.mark.parametrize("source", ["half = len(messages) // 2", "size = view.tokens", "if ids[0] == known: pass"])
def test_code_that_answers_nothing_passes(source: str) -> None:
    assert not list(answers_in("strategies/x.py", source))
