"""Keys that servers ask of their clients, each with its owner, and the addresses that need none."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from ..errors import InvalidInput

_MIN_KEY = 16
_BASIC = re.compile(r"\bbasic\s+([\w+/-]+)", re.IGNORECASE)
_ENCODED_PERCENT = re.compile(r"%(?:25)+")
_MAX_DECODED = 4
"""Times that a text is percent-decoded; percent signs that were encoded again and again count once."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not text"
        raise InvalidInput(f"The file {path} cannot be read ({reason}).") from None


def read_keys(path: str | Path) -> dict[str, str]:
    """Reads a file with a key and its owner in each line; a `#` begins a comment."""
    keys: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            raise InvalidInput(f"{path}, line {number}: write a key and its owner, separated by a space.")
        if len(words[0]) < _MIN_KEY:
            raise InvalidInput(f"{path}, line {number}: a key needs at least {_MIN_KEY} characters.")
        keys[words[0]] = words[1]
    if not keys:
        raise InvalidInput(f"{path} has no keys: write a key and its owner in each line.")
    return keys


def owner_of(key: str, keys: Mapping[str, str]) -> str | None:
    """Returns the owner of a key; compares with all keys in constant time."""
    found = None
    for known, owner in keys.items():
        if hmac.compare_digest(known.encode(), key.encode(errors="surrogateescape")):
            found = owner
    return found


def has_key(text: str, keys: Iterable[str]) -> bool:
    """Whether a text has one of the keys in it, in any form that a server would decode to the key."""
    spellings = tuple(_spellings(text))
    return any(key in spelling for key in keys for spelling in spellings)


def _spellings(text: str) -> Iterator[str]:
    """Yields a text as it is, decoded from HTTP's `Basic` form, and percent-decoded once and more often."""
    yield text
    for found in _BASIC.finditer(text):
        encoded = found[1].replace("-", "+").replace("_", "/")
        try:
            yield base64.b64decode(encoded + "=" * (-len(encoded) % 4)).decode(errors="replace")
        except binascii.Error:
            continue
    for _ in range(_MAX_DECODED):
        if "%" not in text:
            return
        yield (text := unquote(text))
        text = _ENCODED_PERCENT.sub("%", text)
