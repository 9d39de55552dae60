"""The connection to Redis or Valkey, by an address of which no secret is ever shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput
from ..models import scrub
from ..models.secrets import public_url

if TYPE_CHECKING:
    from redis.asyncio import Redis

_SCHEMES = ("redis://", "rediss://", "unix://", "valkey://", "valkeys://")
_TRIES = 3
"""Of each command; how long to go on without a server is for the worker to say."""


def bullmq() -> Any:
    """The official package, which is an extra."""
    try:
        import bullmq
    except ModuleNotFoundError:
        raise InvalidInput("A queue on Redis needs BullMQ: pip install 'holdfast[bullmq]'.") from None
    return bullmq


def connect(url: str) -> Redis:
    """A client for the package to use; nothing is sent yet.

    A worker's read blocks for as long as no job comes: under redis-py's own limit of 5 seconds it would fail each time,
    and a backoff that is longer would never end. So there is none, and connecting has one of its own.
    """
    if not url.startswith(_SCHEMES):
        raise InvalidInput(f"There is no queue at {scrub(url)!r}: use redis://host:6379, rediss://…, or memory:.")
    bullmq()
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import ExponentialBackoff
    from redis.exceptions import BusyLoadingError, ConnectionError, TimeoutError

    try:
        return Redis.from_url(
            url.replace("valkey", "redis", 1) if url.startswith("valkey") else url,
            decode_responses=True,
            socket_timeout=None,
            socket_connect_timeout=5.0,
            socket_keepalive=True,
            retry=Retry(ExponentialBackoff(cap=1.0, base=0.05), _TRIES),
            retry_on_error=[BusyLoadingError, ConnectionError, TimeoutError],
        )
    except ValueError as problem:
        raise InvalidInput(f"{address_of(url)!r} is no address of a queue ({scrub(str(problem))}).") from None


def address_of(url: str) -> str:
    """The address as it may be shown: without user, password and options."""
    return public_url(url)


def in_words(problem: BaseException) -> str:
    """What a server or its client complains about, without secrets, to be put into a sentence."""
    return scrub(str(problem)).rstrip(".") or type(problem).__name__
