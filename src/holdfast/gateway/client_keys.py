"""Keys in a request: where clients send them, and what of the request is forwarded without those of the gateway."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, unquote_plus

from ..io.access_keys import has_key

if TYPE_CHECKING:
    from ..io.http_messages import Headers
    from ..io.http_server import HttpRequest

CREDENTIALS = {b"authorization": b"Bearer ", b"x-api-key": b"", b"x-goog-api-key": b"", b"api-key": b""}
"""Headers that carry a key, and what stands before it."""
_PARAMETER = "key"
_BEARER = re.compile(r"\s*bearer\s+", re.IGNORECASE)


def keys_in(request: HttpRequest) -> Iterator[str]:
    """Yields what may be a key of the gateway: clients can send it beside the provider's."""
    for name in ("x-holdfast-key", *map(bytes.decode, CREDENTIALS)):
        yield from map(_without_scheme, request.headers.getall(name))
    for name, value in map(_split, request.query.split("&")):
        if name == _PARAMETER:
            yield from (unquote(value), unquote_plus(value))


def provider_key(headers: Headers, keys: Collection[str]) -> str:
    """Returns the provider's key of a request; empty for a token that its SDK would send in another way."""
    given = (headers.get("x-api-key"), headers.get("x-goog-api-key"), headers.get("Authorization"))
    found = (_without_scheme(value) for value in given if value and not has_key(value, keys))
    return next(found, "")


def query_without_keys(query: str, keys: Collection[str], held: str | None) -> str:
    """Returns a query without keys of the gateway; `held` is the provider's, and replaces every other."""
    words = []
    for word in query.split("&"):
        if held is not None and _split(word)[0] == _PARAMETER:
            words.append(f"{_PARAMETER}={quote(held, safe='')}")
        elif not has_key(word, keys):
            words.append(word)
    return "&".join(words)


def has_key_parameter(query: str) -> bool:
    return any(_split(word)[0] == _PARAMETER for word in query.split("&"))


def header_without_keys(name: bytes, value: bytes, keys: Collection[str]) -> bytes | None:
    """Returns the value of a header without keys of the gateway: of cookies the others, of anything else nothing."""
    if not has_key((name + b": " + value).decode(errors="replace"), keys):
        return value
    if name.lower() != b"cookie":
        return None
    kept = b";".join(pair for pair in value.split(b";") if not has_key(pair.decode(errors="replace"), keys)).strip()
    return kept if kept and not has_key(kept.decode(errors="replace"), keys) else None


def _split(word: str) -> tuple[str, str]:
    """Returns the decoded name of a parameter, and its value as it is."""
    name, _, value = word.partition("=")
    return unquote_plus(name), value


def _without_scheme(value: str) -> str:
    return _BEARER.sub("", value, count=1).strip()
