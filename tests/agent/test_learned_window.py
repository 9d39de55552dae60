"""What a refusal teaches about a model's window (G3): tokens count, bytes do not."""

from __future__ import annotations

import pytest

from holdfast.agent import Window
from holdfast.models import classify

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
def test_too_many_bytes_leave_the_window_as_it_is(status: int, words: str) -> None:
    failure, window = classify(status, words), Window(200_000, None, 1)
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
def test_too_many_tokens_without_a_number_are_more_than_fit(words: str) -> None:
    failure, window = classify(400, words), Window(200_000, None, 1)
    assert (failure.kind, failure.window) == ("overflow", None)
    window.learn(None, SENT, failure.why)
    assert window.size == SENT
    window.learn(None, 9_000, failure.why)
    assert window.size == SENT, "what was refused is never more than what was refused before"


def test_a_number_that_is_told_is_taken() -> None:
    failure, window = classify(413, "prompt is too long: 9000 tokens > 3000 maximum"), Window(200_000, None, 1)
    window.learn(failure.window, SENT, failure.why)
    assert window.size == 3_000
