"""Options of the gateway: upstreams, keys and limits, validated before it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from ..errors import InvalidInput
from ..io.access_keys import is_loopback, read_lines
from ..io.secrets import public_url
from ..sessions import SessionService
from .browsers import check_origin
from .protocols import PROTOCOLS

_FORMATS = tuple(protocol.format for protocol in PROTOCOLS)


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the gateway listens and forwards."""

    upstreams: Mapping[str, str]
    """Address by wire format; "" is the default."""
    host: str = "127.0.0.1"
    port: int = 8_399
    keys: Mapping[str, str] = {}
    """Owner by key; without keys, everyone on this machine may call."""
    upstream_key: str | None = None
    """Key of the provider, if the gateway holds it; else the client's own is forwarded."""
    item_keys: tuple[str, ...] = ()
    """Keys of compaction items: the first encrypts, all decrypt; without any, items last until the gateway stops."""
    native: bool = False
    """Whether the upstreams have the vendors' compaction protocols themselves."""
    alternating: bool = False
    """Whether the chat templates of the models refuse two messages of one role in a row; else it is learned."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names by which clients may address the gateway."""
    allowed_origins: tuple[str, ...] = ()
    """Web pages that may use the gateway without a key, by their origin; pages of this machine always may."""
    summarize_with_client_model: bool = False
    """Let the model that a request names write the summaries of its session, with the client's key."""
    recall: bool = False
    """Offer lookups of archived messages to the model; the replies of compacted sessions then arrive whole."""
    open_sessions: Callable[[], SessionService] | None = None
    """Opens the same store in the process for large requests, and can be pickled; else that has sessions in memory."""
    worker: str = ""
    """Name of this process among those that serve one port, in its metrics."""
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
        for origin in self.allowed_origins:
            check_origin(origin)

    def upstream_for(self, format: str) -> str:
        """Returns the address that requests of a format are forwarded to."""
        address = self.upstreams.get(format) or self.upstreams.get("")
        if not address:
            raise InvalidInput(f"No upstream for {format} requests: start the gateway with --upstream {format}=URL.")
        return address


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
            lines = (line.strip() for line in read_lines(text[1:]))
            yield from (line for line in lines if line and not line.startswith("#"))
        else:
            yield text
