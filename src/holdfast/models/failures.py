"""Classifies errors of providers and SDKs into failures that a strategy can act on."""

from __future__ import annotations

import math
import re
import ssl
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from ..errors import plain_reason
from ..io.secrets import scrub
from .calls import Failure, FailureKind
from .overflow import detect_overflow, error_codes, error_message, error_text, find_field


def retry_after(headers: Mapping[str, str], body: Any = None) -> float | None:
    """Returns the retry delay in seconds from the headers or from Gemini's error body."""
    given = {name.lower(): value for name, value in headers.items()}
    if (milliseconds := _number(given.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    if (delay := given.get("retry-after")) is not None:
        return _number(delay) if _number(delay) is not None else _seconds_until(delay)
    in_body = find_field(body, "retryDelay")
    return _number(in_body.removesuffix("s")) if isinstance(in_body, str) else None


def _number(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    return max(moment - time.time(), 0.0)


_MAX_REASON = 400
_STATUS_BY_CODE = {
    "invalid_request_error": 400, "invalid_prompt": 400, "invalid_argument": 400, "badrequesterror": 400,
    "authentication_error": 401, "invalid_api_key": 401, "unauthenticated": 401,
    "billing_error": 402, "insufficient_quota": 402,
    "permission_error": 403, "permission_denied": 403,
    "not_found_error": 404, "not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429, "rate_limit_exceeded": 429, "resource_exhausted": 429,
    "api_error": 500, "server_error": 500, "internal": 500, "internalservererror": 500,
    "unavailable": 503,
    "timeout_error": 504, "deadline_exceeded": 504,
    "overloaded_error": 529,
}  # fmt: skip
"""HTTP status for error codes inside a stream, whose own status is 200."""
_KEY_OR_QUOTA = re.compile(
    r"insufficient_quota|billing_error|credit balance is too low|api[ _]key (?:not valid|expired)|api_key_invalid"
    r"|(?:invalid|incorrect) (?:x-)?api[ _-]key|invalid_api_key",
    re.IGNORECASE,
)
_MEDIA = re.compile(
    r"\bimages?\b|image_url|image/|media[ _]?type|mime ?type|multi-?modal|modalit|vision", re.IGNORECASE
)
_REJECTED = re.compile(
    r"support|could not|unable|cannot|can't|invalid|exceed|at most|not a |missing|unknown|not enabled|does not match"
    r"|too (?:large|many|big)|should be",
    re.IGNORECASE,
)
_TIMEOUT_STATUSES = frozenset((408, 504))
_TRANSIENT_STATUSES = frozenset((409, 425, 429))
_AUTH_STATUSES = frozenset((401, 402, 403))


def classify(
    status: int | None, message: str, body: Any = None, *, wait: float | None = None, known: Iterable[str] = ()
) -> Failure:
    """Classifies an error by status, message and body; `wait` is the provider's retry delay.

    Without a status, the codes of the body decide; otherwise the failure counts as transient.
    """
    why = _reason(message, status, known)
    effective = _status_from_codes(body) if status is None or status < 400 else status
    overflow, window = detect_overflow(effective, message, body)
    if overflow:
        return Failure("overflow", why, window=window)
    kind = _kind(effective, error_text(message, body))
    return Failure(kind, why, retry_after=wait if kind in ("transport", "timeout") else None)


def _kind(status: int | None, text: str) -> FailureKind:
    if status in _AUTH_STATUSES or (_KEY_OR_QUOTA.search(text) and (status is None or status < 500)):
        return "auth"
    if status in _TIMEOUT_STATUSES:
        return "timeout"
    if status is None or status in _TRANSIENT_STATUSES:
        return "transport"
    if _MEDIA.search(text) and _REJECTED.search(text):
        return "media"
    return "transport" if status >= 500 else "request"


def _status_from_codes(body: Any) -> int | None:
    for code in error_codes(body):
        if code.isdigit() and 400 <= int(code) < 600:
            return int(code)
        if (status := _STATUS_BY_CODE.get(code.lower())) is not None:
            return status
    return None


def failure_from_exception(problem: BaseException, known: Iterable[str] = ()) -> Failure:
    """Classifies an exception of a provider's SDK, of its HTTP client, or of any other code."""
    status, body, headers = _status(problem), _body(problem), _headers(problem)
    wait = retry_after(headers, body)
    if status is None and body is None and _is_timeout(problem):
        return Failure("timeout", _reason(_exception_text(problem), None, known), retry_after=wait)
    if isinstance(body, Mapping) and body.get("message") == "":
        body = None  # Gemini's SDK makes this of an empty body
    message = error_message(body) or (body if isinstance(body, str) else "")
    fallback = f"Error code: {status}"
    if status is None or body:
        fallback = _connection_words(problem) or _exception_text(problem) or plain_reason(problem)
    return classify(status, message.strip() or fallback, body, wait=wait, known=known)


def _status(problem: BaseException) -> int | None:
    response = getattr(problem, "response", None)
    for given in (getattr(problem, "status_code", None), getattr(response, "status_code", None), _code(problem)):
        if isinstance(given, int) and not isinstance(given, bool) and 400 <= given < 600:
            return given
    return None


def _code(problem: BaseException) -> Any:
    """Returns the status from `code`, as in Gemini's SDK; `OSError` uses it for something else."""
    return None if isinstance(problem, OSError) else getattr(problem, "code", None)


def _body(problem: BaseException) -> Any:
    body = getattr(problem, "body", None)
    return getattr(problem, "details", None) if body is None else body


def _headers(problem: BaseException) -> Mapping[str, str]:
    headers = getattr(getattr(problem, "response", None), "headers", None)
    return headers if isinstance(headers, Mapping) else {}


def _is_timeout(problem: BaseException) -> bool:
    return any("timeout" in kind.__name__.lower() for kind in type(problem).__mro__)


_CONNECT_ERRORS = ("ConnectError", "ClientConnectorError")
_BROKEN_CONNECTION = (
    "ReadError", "WriteError", "RemoteProtocolError", "ConnectionResetError", "BrokenPipeError",
    "ServerDisconnectedError", "ClientPayloadError", "ClientOSError",
)  # fmt: skip
"""Names of exceptions in HTTPX and aiohttp, which the SDKs use."""


def _connection_words(problem: BaseException) -> str:
    """Returns what happened to the connection, in words; empty for other errors."""
    causes = [problem]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and cause not in causes:
        causes.append(cause)
    names = {kind.__name__ for one in causes for kind in type(one).__mro__}
    if not names.isdisjoint(_CONNECT_ERRORS):
        if "gaierror" in names:
            return "the server's name was not found"
        if (tls := next((one for one in causes if isinstance(one, ssl.SSLError)), None)) is not None:
            return f"no secure connection: {getattr(tls, 'verify_message', '') or (tls.reason or '').lower()}"
        return "could not connect to the server"
    if "JSONDecodeError" in names:
        return "a part of the reply is not JSON"
    return "the connection broke" if not names.isdisjoint(_BROKEN_CONNECTION) else ""


def _exception_text(problem: BaseException) -> str:
    """Returns the exception's text with its cause, since SDKs only say "Connection error."."""
    text = str(problem).strip()
    cause = str(problem.__cause__ or "").strip()
    if cause and cause not in text:
        text = f"{text} {cause}".strip()
    return text


def _reason(message: str, status: int | None, known: Iterable[str]) -> str:
    text = " ".join(scrub(_without_html(message), known).split())
    text = text if len(text) <= _MAX_REASON else f"{text[:_MAX_REASON]}…"
    return f"{text} (HTTP {status})".strip() if status is not None and str(status) not in text else text


_HTML = re.compile(r"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_MAX_PAGE = 100


def _without_html(message: str) -> str:
    """Returns the title of an error page, as of a proxy, or the beginning of its text."""
    if not _HTML.match(message):
        return message
    if (title := _TITLE.search(message)) and title[1].strip():
        return title[1][:_MAX_PAGE]
    return " ".join(re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", message, flags=re.DOTALL).split())[:_MAX_PAGE]
