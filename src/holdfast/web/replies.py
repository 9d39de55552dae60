"""Replies of the inspector: JSON, pages and problems, all with a strict content security policy."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from .html import Html, document, tag

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
SECURITY_HEADERS = [
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }.items()
]


def json_reply(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def page_reply(page: Html, status: int = 200) -> Response:
    return Response(page, status, media_type="text/html")


def problem_reply(status: int, message: str, path: str = "/api/") -> Response:
    """Returns a problem as JSON for programs, and as a page for people."""
    if path.startswith("/api/"):
        return json_reply({"error": message}, status)
    return page_reply(document("Holdfast", tag("p", message, class_="lead"), bare=True), status)
