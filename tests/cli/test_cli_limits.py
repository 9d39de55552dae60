"""Numbers, strategies and names as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import (
    KeepFraction,
    KeepLast,
    Pipeline,
    PruneToolResults,
    SlidingWindow,
    TokenWindow,
    Truncate,
    TurnWindow,
)
from holdfast.cli.limits import whole_number
from holdfast.cli.names import did_you_mean
from holdfast.cli.strategies import NAMES, strategy_named
from holdfast.errors import InvalidInput, InvalidLimit


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("100000", 100_000),
        ("100k", 100_000),
        ("100K", 100_000),
        ("1.5M", 1_500_000),
        ("0.5k", 500),
        ("100_000", 100_000),
        ("100,000", 100_000),
        ("1,000,000", 1_000_000),
        (" 8k ", 8_000),
        ("2.50k", 2_500),
    ],
)
def test_every_spelling_of_a_number(text: str, number: int) -> None:
    assert whole_number(text, "--budget") == number


@pytest.mark.parametrize(
    "text", ["", "0", "0k", "-5", "-100k", "1.5", "1.0005k", "k", "10kk", "1,00", "1,0000", "1e5", "ten", "٣", "1 000"]
)
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidLimit, match="--budget takes a whole number of at least 1, like 100000"):
        whole_number(text, "--budget")


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("sliding:20", SlidingWindow, {"max_events": 20}),
        ("turns:10", TurnWindow, {"max_turns": 10}),
        ("tokens:4k", TokenWindow, {"max_tokens": 4_000}),
        ("last:10", KeepLast, {"keep": 10}),
        ("fraction:0.25", KeepFraction, {"part": 0.25}),
        ("fraction", KeepFraction, {"part": 0.4}),
        ("prune", PruneToolResults, {}),
        ("prune:10k", PruneToolResults, {"protect": 10_000}),
        ("truncate", Truncate, {}),
    ],
)
def test_strategies_have_names(text: str, kind: type, fields: dict[str, Any]) -> None:
    found = strategy_named(text)
    assert type(found) is kind
    assert {name: getattr(found, name) for name in fields} == fields


def test_a_plus_joins_strategies() -> None:
    found = strategy_named("prune + tokens:50k")
    assert isinstance(found, Pipeline)
    assert [type(stage) for stage in found.stages] == [PruneToolResults, TokenWindow]


def test_default_is_the_librarys_own_choice() -> None:
    assert strategy_named("default") is None
    with pytest.raises(InvalidInput, match="stands alone"):
        strategy_named("prune+default")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slide:3", "did you mean 'sliding'"),
        ("token:3", "did you mean 'tokens'"),
        ("sliding:0", "'sliding' takes a whole number of at least 1"),
        ("sliding:", "'sliding' takes a whole number of at least 1"),
        ("fraction:half", "a part between 0 and 1"),
        ("fraction:1.5", "between 0 and 1"),
        ("prune+", "is not a strategy"),
        ("", "is not a strategy"),
    ],
)
def test_a_wrong_strategy_is_answered_with_a_right_one(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        strategy_named(text)


def test_every_strategy_name_works_without_a_number() -> None:
    for name in NAMES:
        strategy_named(name)


def test_far_off_names_get_no_suggestion() -> None:
    assert did_you_mean("antropic", ["anthropic", "gemini"]) == "did you mean 'anthropic'?"
    assert did_you_mean("xyzzy", ["anthropic", "gemini"]) == ""
