"""Redacts secrets in text that is shown, logged or stored.

Servers and proxies echo headers and keys in their errors, so every error message passes through `scrub`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit, urlunsplit

_REDACTED = "[hidden]"
_MIN_SECRET = 6
"""Shorter values are placeholders or words, and would be hidden all over the text."""
_SECRET_VARIABLE = re.compile(r"(API_?KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_VALUE = r"""["']?\s*[:=,]\s*["'\[]*\s*(?:(?:bearer|basic|token)\s+)?[^\s"',;&}\]]+"""
_SECRET_PATTERNS = re.compile(
    r"""
    \b(?P<kept>(?:x-|x-goog-|api-|openai-|anthropic-)?(?:api[-_]?key|authorization|auth[-_]token|access[-_]token))"""
    + _VALUE
    + r"""
    | \b(?:bearer|basic)\s+[\w.~+/=*-]{6,}
    | \b(?:sk|rk|pk|gsk|xai|hf|ghp)[-_][\w*.-]{6,}
    | \bAIza[\w*-]{8,}
    | \beyJ[\w-]{8,}\.[\w.-]+
    | (?<=[?&]key=)[^\s&"']+
    | (?<=://)[^\s/@"']+(?=@)
    """,
    re.IGNORECASE | re.VERBOSE,
)


def scrub(text: str, known: Iterable[str] = ()) -> str:
    """Replaces secrets in a text: the known ones, those in the environment, and those that look like one."""
    for secret in sorted({*known, *_environment_secrets()}, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, _REDACTED).replace(quote(secret, safe=""), _REDACTED)
    return _SECRET_PATTERNS.sub(lambda found: f"{found['kept']}: {_REDACTED}" if found["kept"] else _REDACTED, text)


def _environment_secrets() -> Iterable[str]:
    return (value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name))


def public_url(url: str) -> str:
    """Returns a URL without user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def secrets_in_url(url: str | None) -> tuple[str, ...]:
    """Returns the secret parts of a URL: password and query."""
    parts = urlsplit(url or "")
    return tuple(secret for secret in (parts.password, parts.query) if secret)
