"""Faults of a provider in a call, through its real SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from failure_kinds import assert_failure_kinds

from holdfast.messages import Media
from holdfast.models.calls import ModelCall
from providers import Cut, Garbage, Overflow, ProviderServer, RateLimited, Status, StreamError

Connect = Callable[..., Any]
Serve = Callable[..., ProviderServer]
CALL = ModelCall("Summarize this.", media=(Media("image", "image/png", "aGVsbG8="),))
NO_IMAGES = "Invalid content type. image_url is only supported by certain models."


FAULTS: list[tuple[Any, str]] = [
    (Status(500), "transport"),
    (Status(503), "transport"),
    (Status(529), "transport"),
    (Status(502, body="<html>Bad Gateway</html>"), "transport"),
    (Status(504), "timeout"),
    (Status(408), "timeout"),
    (Status(401), "auth"),
    (Status(403), "auth"),
    (Status(429, body={"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}), "auth"),
    (Status(400, "Unknown field."), "request"),
    (Status(404, "There is no such model."), "request"),
    (Status(400, NO_IMAGES), "media"),
    (Status(400, body=""), "overflow"),
    (Status(413, body=""), "overflow"),
    (Status(413, body="<h1>413 Request Entity Too Large</h1>"), "overflow"),
    (Overflow(), "overflow"),
    (Cut(after=2), "transport"),
    (Cut(after=0), "transport"),
    (Cut(after=2, clean=True), "transport"),
    (Cut(after=0, clean=True), "transport"),
    (Garbage(), "transport"),
    (Garbage(b"hello\n\n"), "transport"),
    (StreamError(529, "Overloaded"), "transport"),
    (StreamError(429, "Slow down", None), "transport"),
]


def test_call_fault_kinds(connect: Connect, serve: Serve) -> None:
    server = serve()
    model = connect(server)
    assert_failure_kinds(FAULTS, server, lambda: model(CALL, lambda _: None))


def test_call_retry_after_in_seconds(connect: Connect, serve: Serve) -> None:
    answer = anyio.run(connect(serve(RateLimited(retry_after=7.5))), CALL, lambda _: None)
    assert (answer.kind, answer.retry_after) == ("transport", 7.5)


def test_call_retry_after_in_milliseconds(connect: Connect, serve: Serve) -> None:
    fault = Status(503, headers={"retry-after-ms": "250", "retry-after": "1"})
    assert anyio.run(connect(serve(fault)), CALL, lambda _: None).retry_after == 0.25


def test_call_overflow_reports_the_window(connect: Connect, serve: Serve) -> None:
    server = serve(Overflow(window=32_000, tokens=40_000))
    answer = anyio.run(connect(server), CALL, lambda _: None)
    assert answer.window == (None if server.requests[0].protocol == "openai-responses" else 32_000)


def test_call_overflow_inside_the_stream(connect: Connect, serve: Serve) -> None:
    server = serve(StreamError(400, "prompt is too long: 213462 tokens > 200000 maximum", after=0))
    answer = anyio.run(connect(server), CALL, lambda _: None)
    assert (answer.kind, answer.window) == ("overflow", 200_000)


def test_call_media_error_without_media_is_a_request_failure(connect: Connect, serve: Serve) -> None:
    answer = anyio.run(connect(serve(Status(400, NO_IMAGES))), ModelCall("Summarize this."), lambda _: None)
    assert answer.kind == "request"
