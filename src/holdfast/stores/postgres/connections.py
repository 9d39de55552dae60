"""Connections: the address, a pool per event loop, and what PostgreSQL's errors mean."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from ...errors import CorruptLog, HoldfastError, InvalidInput, StoreClosed, StoreError, StoreReadOnly
from ...io.installation import install_command
from ...models import public_url, scrub

RetryAction = Literal["again", "reconnect"]
_ROLLED_BACK_STATES = ("40001", "40P01")
"""Serialization failure and deadlock: nothing was written."""
_STALE_PLAN_ERRORS = ("InvalidCachedStatementError", "OutdatedSchemaCacheError")
"""Raised by the driver after a migration has changed a table with cached plans."""
_CONNECTION_STATES = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "53300")
"""The connection broke, the server is stopping or starting, or has no free connection: worth a retry."""
_CONFUSED_DRIVER = "InternalClientError"
"""Raised by the driver for a connection that was cut off inside an operation: its state is unknown."""
_REFUSED_STATES = ("25006",)
"""A standby refused the write: after a failover the same address may lead to the primary."""
_INVALID_DATA_STATES = ("22000", "22001", "22003", "22021", "22P02", "22P05")
_MISSING_TABLE_STATES = ("3F000", "42P01", "42883", "42703")
_MESSAGES: dict[str, tuple[type[HoldfastError], str]] = {
    "25006": (StoreReadOnly, "{where} is a read-only standby: use the address of the primary."),
    "28000": (StoreError, "{where} refused the login ({why}): check user, password and pg_hba.conf."),
    "28P01": (StoreError, "{where} refused the login ({why}): check user and password."),
    "3D000": (StoreError, "{where} cannot be opened ({why}): create the database first."),
    "42501": (
        StoreError,
        "{where} does not allow this ({why}): grant the user USAGE on the schema holdfast, and SELECT, INSERT, UPDATE "
        "and DELETE on all tables in it.",
    ),
    "53100": (
        StoreError,
        "There is no room left on the server of {where}: free some space, then retry.",
    ),
    "54000": (InvalidInput, "{where} cannot store this ({why}): keep ids, lanes and owners under 1,000 characters."),
    "55P03": (StoreError, "{where} is held by another process ({why}): nothing was changed; retry in a minute."),
    "57014": (StoreError, "{where} stopped a statement that took too long ({why}): retry when it is less busy."),
    "XX001": (CorruptLog, "{where} is damaged ({why}): restore a backup of it."),
    "XX002": (CorruptLog, "An index of {where} is damaged ({why}): REINDEX it, or restore a backup."),
}


def sqlstate_of(error: BaseException) -> str:
    """Returns the SQLSTATE of an error; empty if it did not come from the server."""
    state: str | None = getattr(error, "sqlstate", None)
    return state or ""


def retry_action(error: BaseException, connection: Any) -> RetryAction | None:
    """Returns how to retry after an error, None if a retry cannot help; `connection` is None before connecting."""
    state = sqlstate_of(error)
    if state in _ROLLED_BACK_STATES or type(error).__name__ in _STALE_PLAN_ERRORS:
        return "again"
    if isinstance(error, TimeoutError) and connection is not None:
        return None
    lost = connection is not None and (connection.is_closed() or type(error).__name__ == _CONFUSED_DRIVER)
    if (
        lost
        or state.startswith(_CONNECTION_STATES)
        or (isinstance(error, OSError) and not isinstance(error, PermissionError))
    ):
        return "reconnect"
    return None


def describe_error(error: BaseException, where: str, why: str) -> tuple[type[HoldfastError], str]:
    """Returns the HoldfastError class and message; `why` is the text of the server or driver."""
    state = sqlstate_of(error)
    if state in _MESSAGES:
        kind, message = _MESSAGES[state]
        return kind, message.format(where=where, why=why)
    if state in _MISSING_TABLE_STATES:
        return StoreError, f"{where} lacks tables of this Holdfast ({why}): run `holdfast migrate` on it."
    if state in _INVALID_DATA_STATES:
        return InvalidInput, f"The data cannot be stored: {why}."
    if isinstance(error, TimeoutError):
        return (
            StoreError,
            f"{where} did not answer in time and may or may not have written: retry with the same ids.",
        )
    if isinstance(error, OSError):
        return (
            StoreError,
            f"{where} cannot be reached ({why}): check that the server is running and that the address is correct.",
        )
    return StoreError, f"{where} could not be used ({why}): run `holdfast doctor` on it."


SCHEMES = ("postgresql", "postgres")
CONNECT_SECONDS = 10.0
"""Time-out of one attempt to connect."""


class PostgresAddress:
    """The URL of a database; its password is never shown or logged, and its tenant is not passed to the driver."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            parts.port  # noqa: B018 - raises ValueError if invalid
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in SCHEMES:
            raise InvalidInput(
                "A PostgreSQL store needs an address like postgresql://user:password@host:5432/database; "
                "write the characters @ : / # ? of a password as %40 %3A %2F %23 %3F."
            )
        self.tenant, self._url = _split_tenant(url, parts)
        self._secrets = _find_secrets(parts)
        self.public = public_url(url)

    def __repr__(self) -> str:
        return self.public

    async def connect(self, timeout: float) -> Any:  # noqa: ASYNC109 - the driver's time-out for each statement
        """Opens a connection with a time-out in seconds for each statement."""
        try:
            import asyncpg
        except ImportError:
            raise InvalidInput(f"A PostgreSQL store needs asyncpg: {install_command('postgres')}") from None
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

    def translate(self, error: BaseException) -> HoldfastError:
        """Returns a HoldfastError that names the cause and the action, without secrets."""
        kind, message = describe_error(error, self.public, self._scrubbed(error))
        return kind(message)

    def unreachable(self, error: BaseException, seconds: float) -> StoreError:
        """Returns the error raised when all retries have failed."""
        return StoreError(
            f"{self.public} could not be reached for {seconds:g} seconds ({self._scrubbed(error)}): "
            "check that the server is running, then retry."
        )

    def _scrubbed(self, error: BaseException) -> str:
        text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        return scrub(text, self._secrets)


def _split_tenant(url: str, parts: SplitResult) -> tuple[str, str]:
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    tenants = [value for name, value in parameters if name == "tenant"]
    if not tenants:
        return "", url
    if len(tenants) > 1:
        raise InvalidInput("The address names several tenants: name only one.")
    rest = urlencode([(name, value) for name, value in parameters if name != "tenant"])
    return tenants[0], f"{url.partition('?')[0]}?{rest}".rstrip("?")


def _find_secrets(parts: SplitResult) -> tuple[str, ...]:
    """Returns the passwords in the address, both URL-encoded and decoded."""
    parameters = [value for name, value in parse_qsl(parts.query) if "password" in name]
    found = [*parameters, parts.password or "", unquote(parts.password or "")]
    return tuple(secret for secret in found if secret)


log = logging.getLogger("holdfast.stores.postgres")
T = TypeVar("T")
ConnectionWork = Callable[[Any, bool], Awaitable[T]]
"""Takes a connection, and True if an earlier attempt broke off and may have been committed."""
MAX_RETRY_PAUSE = 1.0


class ConnectionPool:
    """A pool of at most `max_size` connections of one event loop; further callers wait.

    asyncpg's own pool starts a task for every released connection, which takes half as long as an append.
    """

    def __init__(
        self, address: PostgresAddress, connect: Callable[[], Awaitable[Any]], max_size: int, retry_seconds: float
    ) -> None:
        self._address = address
        self._connect = connect
        self._retry_seconds = retry_seconds
        self._slots = asyncio.Semaphore(max_size)
        self._idle: list[Any] = []
        self._busy: set[Any] = set()
        self._closed = False

    async def run(self, work: ConnectionWork[T]) -> T:
        """Runs the function with a connection; retries after a broken connection or a rolled-back transaction."""
        first_failure, unsure, pause = 0.0, False, 0.0
        while True:
            async with self._slots:
                connection = None
                try:
                    connection = await self._acquire()
                    result = await work(connection, unsure)
                except Exception as error:
                    action = None if isinstance(error, HoldfastError) else retry_action(error, connection)
                    unusable = isinstance(error, TimeoutError) or sqlstate_of(error) in _REFUSED_STATES
                    self._release(connection, keep=action != "reconnect" and not unusable)
                    if action == "reconnect":
                        self._drop_idle()
                    if self._closed:
                        raise StoreClosed from None
                    if action is None:
                        raise error if isinstance(error, HoldfastError) else self._address.translate(error) from error
                    unsure = unsure or (action == "reconnect" and connection is not None)
                    problem: Exception = error
                except BaseException:
                    self._release(connection, keep=False)
                    raise
                else:
                    self._release(connection, keep=True)
                    return result
            if not first_failure:
                first_failure = time.monotonic()
                log.warning("%s: retrying after %s", self._address, type(problem).__name__)
            elif time.monotonic() + pause > first_failure + self._retry_seconds:
                raise self._address.unreachable(problem, self._retry_seconds) from problem
            await asyncio.sleep(pause)
            pause = min(MAX_RETRY_PAUSE, pause * 2 or 0.02)

    async def _acquire(self) -> Any:
        if self._closed:
            raise StoreClosed
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                break
        else:
            connection = await self._connect()
        self._busy.add(connection)
        return connection

    def _release(self, connection: Any, *, keep: bool) -> None:
        if connection is None:
            return
        self._busy.discard(connection)
        if keep and not self._closed and not connection.is_closed():
            self._idle.append(connection)
        else:
            connection.terminate()

    def _drop_idle(self) -> None:
        """Closes all idle connections, since a server restart has broken them."""
        while self._idle:
            self._idle.pop().terminate()

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            try:
                await self._idle.pop().close(timeout=1.0)
            except Exception as error:
                log.debug("A connection did not close cleanly: %s", type(error).__name__)
        self.terminate()

    def terminate(self) -> None:
        self._closed = True
        self._drop_idle()
        for connection in list(self._busy):
            connection.terminate()
