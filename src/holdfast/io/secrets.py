"""Redacts secrets in text that is shown, logged or stored.

Servers and proxies echo headers and keys in their errors, so every error message passes through `scrub`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import quote

_REDACTED = "[hidden]"
_PLACEHOLDER = "user:password"
"""Stands in the addresses that error messages give as an example."""
_MIN_SECRET = 6
"""Shorter values are placeholders or words, and would be hidden all over the text."""
_SECRET_VARIABLE = re.compile(r"(API_?KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_VALUE = r"""["']?\s*+[:=,]\s*+["'\[]*+\s*+(?:(?:bearer|basic|token)\s+)?[^\s"',;&}\]]+"""
_SECRET_PATTERNS = re.compile(
    r"""
    \b(?P<kept>(?:x-|x-goog-|api-|openai-|anthropic-)?(?:api[-_]?key|authorization|auth[-_]token|access[-_]token))"""
    + _VALUE
    + r"""
    | \b(?:bearer|basic)\s+[\w.~+/=*-]{6,}
    | \b(?:sk|rk|pk|gsk|xai|hf|ghp)[-_][\w*.-]{6,}
    | \bAIza[\w*-]{8,}
    | (?<![\w-])eyJ[\w-]{8,}+\.[\w.-]+
    | (?<=[?&]key=)[^\s&"']+
    | (?P<parameter>(?<![\w-])\w{0,30}(?:password|passwd|pwd|secret)=)[^\s&"']+
    | (?<=://)[^\s"'/?\#@]{0,200}:[^\s"']{0,500}(?=@)
    | (?<=://)[^\s/@"']{1,500}(?=@)
    | (?<=\w\w:/)(?!/)[^\s"':@]{0,200}:[^\s"']{0,500}(?=@)
    | (?<=:)[^\s:@/"']{1,200}(?=@[\w.\[-])
    """,
    re.IGNORECASE | re.VERBOSE,
)


def scrub(text: str, known: Iterable[str] = ()) -> str:
    """Replaces secrets in a text: the known ones, those in the environment, and those that look like one."""
    for secret in sorted({*known, *_environment_secrets()}, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, _REDACTED).replace(quote(secret, safe=""), _REDACTED)
    return _SECRET_PATTERNS.sub(_hide, text)


def _hide(found: re.Match[str]) -> str:
    if found[0] == _PLACEHOLDER:
        return _PLACEHOLDER
    return f"{found['kept']}: {_REDACTED}" if found["kept"] else f"{found['parameter'] or ''}{_REDACTED}"


def _environment_secrets() -> Iterable[str]:
    return (value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name))


def public_url(url: str) -> str:
    """Returns a URL without user, password and query; a password may have `@`, `/`, `#` and `?` as they are."""
    scheme, _, rest = url.partition("://")
    _, place = _split_user(rest)
    return f"{scheme}://{re.split('[?#]', place)[0]}" if rest else scrub(url)


def secrets_in_url(url: str | None) -> tuple[str, ...]:
    """Returns the secret parts of a URL: password and query."""
    user, place = _split_user((url or "").partition("://")[2])
    return tuple(secret for secret in (user.partition(":")[2], place.partition("?")[2]) if secret)


def _split_user(rest: str) -> tuple[str, str]:
    """Splits what follows the scheme into user with password, and the place: at the last `@` before a parameter."""
    user, at, _ = re.split(r"\?(?=[\w.-]+=)", rest)[0].rpartition("@")
    return user, rest[len(user) + len(at) :]
