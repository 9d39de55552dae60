"""Keys never leave this part: not in a reason, not in a repr, not in a log.

Servers and proxies echo headers and keys in their errors, so whatever they say passes through here first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit, urlunsplit

_HIDDEN = "[hidden]"
_SHORTEST = 6
"""A shorter value is a placeholder or a word, and would be hidden all over the text."""
_VARIABLE = re.compile(r"(API_?KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_VALUE = r"""["']?\s*[:=,]\s*["'\[]*\s*(?:(?:bearer|basic|token)\s+)?[^\s"',;&}\]]+"""
_SHAPES = re.compile(
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
    """The text without secrets: those that are known, those in the environment, those that look like one."""
    for secret in sorted({*known, *_environment()}, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _HIDDEN).replace(quote(secret, safe=""), _HIDDEN)
    return _SHAPES.sub(lambda found: f"{found['kept']}: {_HIDDEN}" if found["kept"] else _HIDDEN, text)


def _environment() -> Iterable[str]:
    return (value for name, value in os.environ.items() if _VARIABLE.search(name))


def public_url(url: str) -> str:
    """The address without user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def passwords_in(url: str | None) -> tuple[str, ...]:
    """What an address gives away if it is quoted."""
    parts = urlsplit(url or "")
    return tuple(secret for secret in (parts.password, parts.query) if secret)
