"""Where a database is. The password in it is for the driver alone: what is said and logged is the public form."""

from __future__ import annotations

from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from ...errors import HoldfastError, InvalidInput, StoreError
from ...models import scrub
from .trouble import said_of

SCHEMES = ("postgresql", "postgres")
CONNECT_SECONDS = 10.0
"""How long one try to connect may take: a machine that is gone answers nothing at all."""


class Address:
    """The URL of a database, of which only the public part can be seen; a tenant in it is for us, not the driver."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            parts.port  # noqa: B018 - looked at for its error alone
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in SCHEMES:
            raise InvalidInput(
                "A PostgreSQL store needs an address like postgresql://user:password@host:5432/database; "
                "write the characters @ : / # ? of a password as %40 %3A %2F %23 %3F."
            )
        self.tenant, self._url = _without_tenant(url, parts)
        self._secrets = _secrets_in(parts)
        self.public = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        return self.public

    async def connect(self, timeout: float) -> Any:  # noqa: ASYNC109 - it is the driver's, for each statement
        """A connection of its own; each of its statements may take so many seconds."""
        try:
            import asyncpg
        except ImportError:
            raise InvalidInput("A PostgreSQL store needs asyncpg: pip install 'holdfast[postgres]'.") from None
        try:
            return await asyncpg.connect(
                self._url,
                timeout=CONNECT_SECONDS,
                command_timeout=timeout,
                server_settings={"application_name": "holdfast"},
            )
        except ValueError as error:
            raise InvalidInput(
                f"The address {self.public} cannot be used ({self._scrubbed(error)}): correct it."
            ) from None

    def clear(self, error: BaseException) -> HoldfastError:
        """One clear sentence for what went wrong, without a secret in it."""
        kind, sentence = said_of(error, self.public, self._scrubbed(error))
        return kind(sentence)

    def unreachable(self, error: BaseException, seconds: float) -> StoreError:
        """The last word, after it was tried again and again."""
        return StoreError(
            f"{self.public} could not be reached for {seconds:g} seconds ({self._scrubbed(error)}): "
            "see that the server runs, then retry."
        )

    def _scrubbed(self, error: BaseException) -> str:
        said = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        return scrub(said, self._secrets)


def _without_tenant(url: str, parts: SplitResult) -> tuple[str, str]:
    asked = parse_qsl(parts.query, keep_blank_values=True)
    tenants = [value for name, value in asked if name == "tenant"]
    if not tenants:
        return "", url
    if len(tenants) > 1:
        raise InvalidInput("The address names several tenants: name one.")
    rest = urlencode([(name, value) for name, value in asked if name != "tenant"])
    return tenants[0], f"{url.partition('?')[0]}?{rest}".rstrip("?")


def _secrets_in(parts: SplitResult) -> tuple[str, ...]:
    """What the address gives away if it is quoted, as it stands there and as it is meant."""
    asked = [value for name, value in parse_qsl(parts.query) if "password" in name]
    found = [*asked, parts.password or "", unquote(parts.password or "")]
    return tuple(secret for secret in found if secret)
