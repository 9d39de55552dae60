"""Classification of errors by status, message and body."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import pytest

from holdfast.models import classify, failure_from_exception
from holdfast.models.failures import retry_after


@pytest.mark.parametrize(
    ("status", "message", "body", "kind"),
    [
        (401, "no", None, "auth"),
        (402, "pay", None, "auth"),
        (403, "forbidden", None, "auth"),
        (429, "You exceeded your current quota", {"error": {"code": "insufficient_quota"}}, "auth"),
        (429, "You exceeded your current quota", {"error": {"status": "RESOURCE_EXHAUSTED"}}, "transport"),
        (400, "Your credit balance is too low to access the Anthropic API.", None, "auth"),
        (400, "API key not valid. Please pass a valid API key.", None, "auth"),
        (429, "slow down", None, "transport"),
        (409, "conflict", None, "transport"),
        (500, "oops", None, "transport"),
        (529, "Overloaded", None, "transport"),
        (408, "slow", None, "timeout"),
        (504, "slow", None, "timeout"),
        (404, "no such model", None, "request"),
        (422, "bad", None, "request"),
        (None, "Connection error.", None, "transport"),
        (None, "Overloaded", {"type": "error", "error": {"type": "overloaded_error"}}, "transport"),
        (200, "bad", {"error": {"type": "invalid_request_error"}}, "request"),
        (None, "bad", {"error": {"code": 400}}, "request"),
        (None, "no", {"error": {"type": "authentication_error"}}, "auth"),
        (None, "slow", {"error": {"type": "timeout_error"}}, "timeout"),
        (None, "?", [{"error": {"code": 503, "status": "UNAVAILABLE"}}], "transport"),
    ],
)  # fmt: skip
def test_classify_kinds(status: int | None, message: str, body: Any, kind: str) -> None:
    assert classify(status, message, body).kind == kind


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid content type. image_url is only supported by certain models."),
        (400, "You uploaded an unsupported image."),
        (400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6 bytes > 5 bytes"),
        (400, "Could not process image"),
        (400, "messages.0.content.1.image.source.base64.media_type: Input should be 'image/jpeg'"),
        (400, "At most 0 image(s) may be provided in one prompt."),
        (400, "qwen is not a multimodal model"),
        (400, "Unsupported MIME type: image/heic"),
        (404, "No endpoints found that support image input"),
        (415, "Unsupported media type"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
        (422, "unknown variant `image_url`, expected `text`"),
    ],
)
def test_classify_refused_media(status: int, message: str) -> None:
    assert classify(status, message).kind == "media"


def test_classify_reason_is_short_and_has_the_status() -> None:
    assert classify(500, "Oops").why == "Oops (HTTP 500)"
    assert classify(None, "Oops").why == "Oops"
    assert len(classify(502, "<html>" + "x" * 9_000).why) < 450


def test_classify_retry_after_only_for_transient_failures() -> None:
    assert classify(429, "slow down", wait=3.0).retry_after == 3.0
    assert classify(401, "no", wait=3.0).retry_after is None


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "12"}, None, 12.0),
        ({"retry-after": "0.5"}, None, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, None, 1.5),
        ({"retry-after": "-3"}, None, 0.0),
        ({"retry-after": "soon"}, None, None),
        ({"retry-after": "inf"}, None, None),
        ({}, {"error": {"details": [{"@type": "…/google.rpc.RetryInfo", "retryDelay": "36s"}]}}, 36.0),
        ({}, None, None),
    ],
)
def test_retry_after_formats(headers: dict[str, str], body: Any, seconds: float | None) -> None:
    assert retry_after(headers, body) == seconds


def test_retry_after_http_date() -> None:
    seconds = retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert seconds is not None and 55 < seconds <= 60
    assert retry_after({"retry-after": formatdate(time.time() - 60, usegmt=True)}) == 0


def test_failure_from_exception_without_sdk() -> None:
    assert failure_from_exception(TimeoutError()).kind == "timeout"
    assert failure_from_exception(ConnectionResetError(104, "reset")).kind == "transport"
    assert failure_from_exception(KeyError("x")).why == "'x'"
    caused = RuntimeError("outer")
    caused.__cause__ = OSError("inner")
    assert failure_from_exception(caused).why == "outer inner"
