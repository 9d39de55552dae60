"""A window is learned from errors about tokens, not about bytes (G3)."""

from __future__ import annotations

import pytest

from holdfast.models import classify
from holdfast.models.calls import Failure
from holdfast.tokens.window import WindowFacts

SENT = 3_529


def after(failure: Failure, sent: int, facts: WindowFacts) -> WindowFacts:
    """Returns the facts after a prompt of this size was refused."""
    known = facts.window()
    assert known is not None
    return facts.after_overflow(known, failure.window, sent, failure.why)


def size(facts: WindowFacts) -> int:
    known = facts.window()
    return 0 if known is None else known.tokens


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (413, "Payload Too Large: image of 12 MB"),
        (413, "request_too_large: Request exceeds the maximum size"),
        (413, "Request Entity Too Large"),
        (413, "the value of Content-Length is above 20971520 bytes"),
        (413, "413 (no body)"),
        (400, "400 status code (no body)"),
    ],
)
def test_byte_limit_error_keeps_the_window(status: int, words: str) -> None:
    failure = classify(status, words)
    assert failure.kind == "overflow"
    assert size(after(failure, SENT, WindowFacts(given=200_000))) == 200_000


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long",
        "context_length_exceeded",
        "Input is too long for requested model.",
        "Please reduce the length of the messages or completion.",
        "tokens in request more than max tokens allowed",
        "Request too large for gpt-4o on tokens per min (TPM): Limit 3000, Requested 3529",
        "invalid params, context window exceeds limit (2013)",
    ],
)
def test_token_limit_error_without_a_number_shrinks_the_window(words: str) -> None:
    failure = classify(400, words)
    assert (failure.kind, failure.window) == ("overflow", None)
    facts = after(failure, SENT, WindowFacts(given=200_000))
    assert size(facts) == SENT
    assert size(after(failure, 9_000, facts)) == SENT, "a later, larger prompt does not enlarge the window"


def test_token_limit_error_with_a_number_sets_the_window() -> None:
    failure = classify(413, "prompt is too long: 9000 tokens > 3000 maximum")
    assert size(after(failure, SENT, WindowFacts(given=200_000))) == 3_000


def test_window_of_a_model_with_the_suffix_for_a_long_context() -> None:
    """G1: 1,000,000 by a flag where the model has it."""
    assert size(WindowFacts(model="claude-sonnet-4-5[1m]")) == 1_000_000
    assert size(WindowFacts(model="anthropic:claude-sonnet-4-5[1m]")) == 1_000_000
    assert size(WindowFacts(model="claude-sonnet-4-5")) == 200_000
