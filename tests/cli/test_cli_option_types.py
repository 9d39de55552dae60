"""Parsing of counts and strategies, and suggestions for misspelled names."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Pipeline, PruneToolResults, SlidingWindow, TokenWindow, Truncate, TurnWindow
from holdfast.cli.compaction import parse_strategy
from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.io.arguments import did_you_mean, parse_count
from holdfast.strategies import KeepFraction, KeepLast
from holdfast.strategies.names import STRATEGY_NAMES


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
def test_parse_count_accepts_every_spelling(text: str, number: int) -> None:
    assert parse_count(text, "--budget") == number


@pytest.mark.parametrize(
    "text", ["", "0", "0k", "-5", "-100k", "1.5", "1.0005k", "k", "10kk", "1,00", "1,0000", "1e5", "ten", "٣", "1 000"]
)
def test_parse_count_refuses_other_text(text: str) -> None:
    with pytest.raises(InvalidLimit, match="--budget takes a whole number of at least 1, like 100000"):
        parse_count(text, "--budget")


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
def test_parse_strategy_by_name(text: str, kind: type, fields: dict[str, Any]) -> None:
    found = parse_strategy(text)
    assert type(found) is kind
    assert {name: getattr(found, name) for name in fields} == fields


def test_parse_strategy_plus_builds_pipeline() -> None:
    found = parse_strategy("prune + tokens:50k")
    assert isinstance(found, Pipeline)
    assert [type(stage) for stage in found.stages] == [PruneToolResults, TokenWindow]


def test_parse_strategy_default_is_none() -> None:
    assert parse_strategy("default") is None
    with pytest.raises(InvalidInput, match="cannot be part of a pipeline"):
        parse_strategy("prune+default")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slide:3", "did you mean 'sliding'"),
        ("token:3", "did you mean 'tokens'"),
        ("sliding:0", "'sliding' takes a whole number of at least 1"),
        ("sliding:", "'sliding' takes a whole number of at least 1"),
        ("fraction:half", "a number between 0 and 1"),
        ("fraction:1.5", "between 0 and 1"),
        ("prune+", "is not a strategy"),
        ("", "is not a strategy"),
    ],
)
def test_parse_strategy_unknown_suggests_name(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_strategy(text)


def test_parse_strategy_number_is_optional() -> None:
    for name in STRATEGY_NAMES:
        parse_strategy(name)


def test_did_you_mean_ignores_distant_names() -> None:
    assert did_you_mean("antropic", ["anthropic", "gemini"]) == "did you mean 'anthropic'?"
    assert did_you_mean("xyzzy", ["anthropic", "gemini"]) == ""
