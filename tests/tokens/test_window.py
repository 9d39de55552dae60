"""`WindowFacts.window`: one answer from all that states a model's context window."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.tokens.window import PROBE_AFTER, Window, WindowFacts, listed_windows

KNOWN = "claude-sonnet-4-5"
"""A model of the catalog with a window of 200,000 tokens."""


@pytest.mark.parametrize(
    ("facts", "given", "usual", "tokens", "basis"),
    [
        (WindowFacts(), None, 128_000, 128_000, "default"),
        (WindowFacts(model="nobody/knows"), None, 128_000, 128_000, "default"),
        (WindowFacts(model=KNOWN), None, 128_000, 200_000, "catalog"),
        (WindowFacts(model=KNOWN, reported=32_768), None, 128_000, 32_768, "reported"),
        (WindowFacts(model=KNOWN, reported=32_768, recorded=258_400), None, 1, 258_400, "recorded"),
        (WindowFacts(model=KNOWN, recorded=258_400, learned=190_000), None, 1, 190_000, "learned"),
        (WindowFacts(model=KNOWN, learned=250_000), None, 1, 250_000, "learned"),
        (WindowFacts(model=KNOWN, learned=190_000), 16_000, 1, 16_000, "given"),
        (WindowFacts(model=KNOWN, learned=8_000), 16_000, 1, 8_000, "learned"),
        (WindowFacts(model=KNOWN, given=12_000), 16_000, 1, 12_000, "given"),
        (WindowFacts(model=KNOWN, given=12_000, tried=5_000), 16_000, 1, 5_000, "learned"),
    ],
)
def test_window_is_the_first_that_states_it_but_not_above_an_overflow(
    facts: WindowFacts, given: int | None, usual: int, tokens: int, basis: str
) -> None:
    window = facts.window(given, usual)
    assert window is not None and (window.tokens, window.basis) == (tokens, basis)


def test_window_is_none_where_nothing_states_it() -> None:
    assert WindowFacts().window() is None


def test_overflow_with_a_number_is_a_fact_and_is_not_probed() -> None:
    facts = WindowFacts(given=16_000).after_overflow(Window(16_000, "given"), 8_000, 9_000, "maximum is 8000 tokens")
    for _ in range(10 * PROBE_AFTER):
        facts = facts.after_reply()
    assert facts.window() == Window(8_000, "learned")


def test_overflow_without_a_number_is_probed_upwards_to_the_given_window() -> None:
    """H8."""
    facts = WindowFacts(given=16_000).after_overflow(Window(16_000, "given"), None, 5_000, "prompt is too long")
    seen = []
    for _ in range(2 * PROBE_AFTER + 1):
        window = facts.window()
        assert window is not None
        seen.append(window.tokens)
        facts = facts.after_reply()
    assert (seen[0], seen[PROBE_AFTER - 1], seen[PROBE_AFTER], seen[2 * PROBE_AFTER]) == (5_000, 5_000, 10_000, 16_000)


def test_each_failed_attempt_doubles_the_wait_for_the_next() -> None:
    facts, window = WindowFacts(given=16_000), Window(16_000, "given")
    for _ in range(2):
        facts = facts.after_overflow(window, None, 5_000, "prompt is too long")
    for _ in range(2 * PROBE_AFTER - 1):
        facts = facts.after_reply()
    assert facts.window() == Window(5_000, "learned")
    assert facts.after_reply().window() == Window(10_000, "learned")


def test_another_model_has_its_own_window() -> None:
    facts = WindowFacts(model="a", given=None, learned=9_000, recorded=258_400).of_model(KNOWN)
    assert facts == WindowFacts(model=KNOWN)
    assert facts.of_model(None) is facts


@pytest.mark.parametrize(
    ("models", "windows"),
    [
        ({"data": [{"id": "a", "max_input_tokens": 200_000}, {"id": "b", "max_model_len": 8_192}, {"id": "c"}]},
         {"a": 200_000, "b": 8_192}),
        ({"models": [{"name": "models/gemini-3-pro", "inputTokenLimit": 1_048_576}]}, {"gemini-3-pro": 1_048_576}),
        ({"data": [{"id": "d", "context_length": True}, {"id": "e", "context_length": 0}, "f", {}]}, {}),
        ({"data": {"id": "a"}}, {}), ([], {}), (None, {}), ("data", {}),
    ],
)  # fmt: skip
def test_windows_are_read_from_a_list_of_models(models: Any, windows: dict[str, int]) -> None:
    assert listed_windows(models) == windows
