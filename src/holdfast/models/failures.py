"""From what a provider or its SDK says went wrong to a failure that a strategy can act on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..calls import Failure, FailureKind
from ..errors import HoldfastError
from .errorbody import codes, sentence, words
from .overflow import read_overflow
from .patience import retry_after
from .secrets import scrub

_LONGEST = 400
_IMPLIED = {
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
"""What an error means that comes inside a stream, after the status said that all is well."""
_NO_CREDIT = re.compile(
    r"insufficient_quota|billing_error|credit balance is too low|api[ _]key (?:not valid|expired)|api_key_invalid"
    r"|(?:invalid|incorrect) (?:x-)?api[ _-]key|invalid_api_key",
    re.IGNORECASE,
)
_MEDIA = re.compile(
    r"\bimages?\b|image_url|image/|media[ _]?type|mime ?type|multi-?modal|modalit|vision", re.IGNORECASE
)
_REFUSED = re.compile(
    r"support|could not|unable|cannot|can't|invalid|exceed|at most|not a |missing|unknown|not enabled|does not match"
    r"|too (?:large|many|big)|should be",
    re.IGNORECASE,
)
_TIMEOUTS = frozenset((408, 504))
_PASSING = frozenset((409, 425, 429))
_KEYS = frozenset((401, 402, 403))


def classify(
    status: int | None, message: str, body: Any = None, *, wait: float | None = None, known: Iterable[str] = ()
) -> Failure:
    """The failure that a status, a message and a body stand for; `wait` is what the provider asks to wait.

    Without a status it is what the body's own codes imply, else something that may pass.
    """
    why = _why(message, status, known)
    meant = _implied(body) if status is None or status < 400 else status
    overflow, window = read_overflow(meant, message, body)
    if overflow:
        return Failure("overflow", why, window=window)
    kind = _kind(meant, words(message, body))
    return Failure(kind, why, retry_after=wait if kind in ("transport", "timeout") else None)


def _kind(status: int | None, text: str) -> FailureKind:
    if status in _KEYS or (_NO_CREDIT.search(text) and (status is None or status < 500)):
        return "auth"
    if status in _TIMEOUTS:
        return "timeout"
    if status is None or status in _PASSING:
        return "transport"
    if _MEDIA.search(text) and _REFUSED.search(text):
        return "media"
    return "transport" if status >= 500 else "request"


def _implied(body: Any) -> int | None:
    for code in codes(body):
        if code.isdigit() and 400 <= int(code) < 600:
            return int(code)
        if (status := _IMPLIED.get(code.lower())) is not None:
            return status
    return None


def failure_of(problem: BaseException, known: Iterable[str] = ()) -> Failure:
    """The failure behind an exception of a provider's SDK, of its HTTP client, or of anything else."""
    status, body, headers = _status(problem), _body(problem), _headers(problem)
    wait = retry_after(headers, body)
    if status is None and body is None and _is_timeout(problem):
        return Failure("timeout", _why(_spoken(problem), None, known), retry_after=wait)
    if isinstance(body, Mapping) and body.get("message") == "":
        body = None  # Gemini's SDK makes words of an empty body
    said = sentence(body) or (body if isinstance(body, str) else "")
    unsaid = _spoken(problem) if status is None or body else f"Error code: {status}"
    return classify(status, said.strip() or unsaid, body, wait=wait, known=known)


def _status(problem: BaseException) -> int | None:
    response = getattr(problem, "response", None)
    for given in (getattr(problem, "status_code", None), getattr(response, "status_code", None), _code(problem)):
        if isinstance(given, int) and not isinstance(given, bool) and 400 <= given < 600:
            return given
    return None


def _code(problem: BaseException) -> Any:
    """Gemini's SDK has the status as the code; an operating system's error has a number of its own."""
    return None if isinstance(problem, OSError) else getattr(problem, "code", None)


def _body(problem: BaseException) -> Any:
    body = getattr(problem, "body", None)
    return getattr(problem, "details", None) if body is None else body


def _headers(problem: BaseException) -> Mapping[str, str]:
    headers = getattr(getattr(problem, "response", None), "headers", None)
    return headers if isinstance(headers, Mapping) else {}


def _is_timeout(problem: BaseException) -> bool:
    return any("timeout" in kind.__name__.lower() for kind in type(problem).__mro__)


def _spoken(problem: BaseException) -> str:
    """The exception in words, with its cause, since SDKs say no more than "Connection error."."""
    text = str(problem).strip()
    cause = str(problem.__cause__ or "").strip()
    if cause and cause not in text:
        text = f"{text} {cause}".strip()
    return text if isinstance(problem, HoldfastError) else f"{type(problem).__name__}: {text}".rstrip(": ")


def _why(message: str, status: int | None, known: Iterable[str]) -> str:
    text = " ".join(scrub(message, known).split())
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"{text} (HTTP {status})".strip() if status is not None and str(status) not in text else text
