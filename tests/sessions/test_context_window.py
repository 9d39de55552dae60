"""`ContextWindow` learns its size from errors about tokens, not about bytes (G3)."""

from __future__ import annotations

import pytest

from holdfast.models import classify
from holdfast.sessions.window import ContextWindow

SENT = 3_529


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
    failure, window = classify(status, words), ContextWindow(200_000, None, 1)
    assert failure.kind == "overflow"
    window.learn(failure.window, SENT, failure.why)
    assert window.size == 200_000


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
    failure, window = classify(400, words), ContextWindow(200_000, None, 1)
    assert (failure.kind, failure.window) == ("overflow", None)
    window.learn(None, SENT, failure.why)
    assert window.size == SENT
    window.learn(None, 9_000, failure.why)
    assert window.size == SENT, "a later, larger prompt does not enlarge the window"


def test_token_limit_error_with_a_number_sets_the_window() -> None:
    failure, window = classify(413, "prompt is too long: 9000 tokens > 3000 maximum"), ContextWindow(200_000, None, 1)
    window.learn(failure.window, SENT, failure.why)
    assert window.size == 3_000


def test_window_of_a_model_with_the_suffix_for_a_long_context() -> None:
    """G1: 1,000,000 by a flag where the model has it."""
    assert ContextWindow(None, "claude-sonnet-4-5[1m]", 1).size == 1_000_000
    assert ContextWindow(None, "anthropic:claude-sonnet-4-5[1m]", 1).size == 1_000_000
    assert ContextWindow(None, "claude-sonnet-4-5", 1).size == 200_000
