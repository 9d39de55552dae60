"""What PostgreSQL's errors mean: to be tried again, or one clear sentence for a person."""

from __future__ import annotations

from typing import Any, Literal

from ...errors import CorruptLog, HoldfastError, InvalidInput, StoreError, StoreReadOnly

Remedy = Literal["again", "reconnect"]

_ROLLED_BACK = ("40001", "40P01")
"""Serialization failure and deadlock: nothing was written."""
_STALE_PLANS = ("InvalidCachedStatementError", "OutdatedSchemaCacheError")
"""What the driver says after a migration changed a table that it knew."""
_GONE = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "53300")
"""The connection broke, the server goes down or comes up, or it has no connection left: a moment may help."""
_NOT_STORABLE = ("22000", "22001", "22003", "22021", "22P02", "22P05")
_NO_TABLES = ("3F000", "42P01", "42883", "42703")

_KNOWN: dict[str, tuple[type[HoldfastError], str]] = {
    "25006": (StoreReadOnly, "{where} can only be read, as a standby does: use the address of the primary."),
    "28000": (StoreError, "{where} does not let us in ({why}): check user, password and pg_hba.conf."),
    "28P01": (StoreError, "{where} does not let us in ({why}): check user and password."),
    "3D000": (StoreError, "{where} cannot be opened ({why}): create the database first."),
    "42501": (
        StoreError,
        "{where} does not allow this ({why}): grant the user USAGE on the schema holdfast, and SELECT, INSERT, UPDATE "
        "and DELETE on all tables in it.",
    ),
    "53100": (
        StoreError,
        "There is no room left on the server of {where}; nothing was written: free some, then retry.",
    ),
    "54000": (InvalidInput, "{where} cannot hold this ({why}): keep ids, lanes and owners under 1,000 characters."),
    "57014": (StoreError, "{where} stopped a statement that took too long ({why}): retry when it is less busy."),
    "XX001": (CorruptLog, "{where} is damaged ({why}): restore a backup of it."),
    "XX002": (CorruptLog, "An index of {where} is damaged ({why}): REINDEX it, or restore a backup."),
}


def state_of(error: BaseException) -> str:
    """Its SQLSTATE; empty if the server did not say it."""
    state: str | None = getattr(error, "sqlstate", None)
    return state or ""


def remedy_for(error: BaseException, connection: Any) -> Remedy | None:
    """What may help; None if nothing will. `connection` is None where there was none yet."""
    state = state_of(error)
    if state in _ROLLED_BACK or type(error).__name__ in _STALE_PLANS:
        return "again"
    if isinstance(error, TimeoutError) and connection is not None:
        return None
    lost = connection is not None and connection.is_closed()
    if lost or state.startswith(_GONE) or (isinstance(error, OSError) and not isinstance(error, PermissionError)):
        return "reconnect"
    return None


def said_of(error: BaseException, where: str, why: str) -> tuple[type[HoldfastError], str]:
    """The kind of our error, and its sentence; `why` is what the server or the driver said."""
    state = state_of(error)
    if state in _KNOWN:
        kind, sentence = _KNOWN[state]
        return kind, sentence.format(where=where, why=why)
    if state in _NO_TABLES:
        return StoreError, f"{where} lacks tables of this Holdfast ({why}): run `holdfast migrate` on it."
    if state in _NOT_STORABLE:
        return InvalidInput, f"This cannot be in a log: {why}."
    if isinstance(error, TimeoutError):
        return (
            StoreError,
            f"{where} did not answer in time; whether it was written is not known: retry with the same ids.",
        )
    if isinstance(error, OSError):
        return StoreError, f"{where} cannot be reached ({why}): see that the server runs and that the address is right."
    return StoreError, f"{where} could not be used ({why}): `holdfast doctor` may tell more."
