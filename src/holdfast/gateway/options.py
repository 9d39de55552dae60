"""Options of the gateway: upstreams, keys and limits, validated before it starts."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from ..errors import InvalidInput
from ..io.secrets import public_url
from .protocols import PROTOCOLS

DEFAULT_PORT = 8399
_MIN_KEY = 16
_FORMATS = tuple(protocol.format for protocol in PROTOCOLS)


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the gateway listens and forwards."""

    upstreams: Mapping[str, str]
    """Address by wire format; "" is the default."""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    keys: Mapping[str, str] = {}
    """Owner by key; without keys, everyone on this machine may call."""
    upstream_key: str | None = None
    """Key of the provider, if the gateway holds it; else the client's own is forwarded."""
    item_keys: tuple[str, ...] = ()
    """Keys of compaction items: the first encrypts, all decrypt; without any, items last until the gateway stops."""
    native: bool = False
    """Whether the upstreams have the vendors' compaction protocols themselves."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names by which clients may address the gateway."""
    summarize_with_client_model: bool = False
    """Let the model that a request names write the summaries of its session, with the client's key."""
    recall: bool = False
    """Offer lookups of archived messages to the model; the replies of compacted sessions then arrive whole."""
    max_body: int = 64 * 2**20
    max_requests: int = 2_000
    header_timeout: float = 75.0
    """Seconds that a connection may take to send the headers of its next request."""
    read_timeout: float = 60.0
    """Seconds in which a client must send its whole request."""
    connect_timeout: float = 10.0
    idle_timeout: float = 600.0
    """Seconds that an upstream may be silent."""
    drain_seconds: float = 30.0
    """Seconds in which running requests may finish after a stop signal."""

    def __post_init__(self) -> None:
        if not self.keys and not is_loopback(self.host):
            raise InvalidInput(
                f"{self.host} can be reached from other machines: name a file of keys with --key-file, "
                "or listen on 127.0.0.1."
            )

    def upstream_for(self, format: str) -> str:
        """Returns the address that requests of a format are forwarded to."""
        address = self.upstreams.get(format) or self.upstreams.get("")
        if not address:
            raise InvalidInput(f"No upstream for {format} requests: start the gateway with --upstream {format}=URL.")
        return address


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_upstreams(given: Sequence[str]) -> dict[str, str]:
    """Reads addresses, each for all formats (URL) or for one (anthropic=URL); @FILE has one in each line."""
    upstreams: dict[str, str] = {}
    for text in _expand_files(given):
        name, equals, address = text.partition("=")
        if not equals or "://" in name:
            name, address = "", text
        if name and name not in _FORMATS:
            raise InvalidInput(f"{name!r} is not a wire format: use one of {', '.join(_FORMATS)}, or a URL alone.")
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"{public_url(address)} is not an upstream: give a URL such as https://api.openai.com.")
        if name in upstreams:
            raise InvalidInput(f"There are two upstreams for {name or 'all formats'}: give one of each.")
        upstreams[name] = address.rstrip("/")
    return upstreams


def _expand_files(given: Sequence[str]) -> Iterator[str]:
    for text in given:
        if text.startswith("@"):
            lines = (line.strip() for line in _read_lines(text[1:]))
            yield from (line for line in lines if line and not line.startswith("#"))
        else:
            yield text


def _read_lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not text"
        raise InvalidInput(f"The file {path} cannot be read ({reason}).") from None


def read_keys(path: str | Path) -> dict[str, str]:
    """Reads a file with a key and its owner in each line; a `#` begins a comment."""
    keys: dict[str, str] = {}
    for number, line in enumerate(_read_lines(path), 1):
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
