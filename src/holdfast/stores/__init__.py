"""Session stores: memory, JSONL files, SQLite and PostgreSQL behind the protocols `Log`, `Search` and `Lease`."""

from __future__ import annotations

import os

from ..errors import InvalidInput
from ..models import scrub
from .base import Appended, Hit, Lease, LeaseName, Log, Rewrite, Search, Slice, Unchanged, Where
from .jsonl import JSONLStore
from .memory import MemoryStore
from .postgres import PostgresStore
from .sqlite import SQLiteStore

__all__ = [
    "Appended",
    "Hit",
    "JSONLStore",
    "Lease",
    "LeaseName",
    "Log",
    "MemoryStore",
    "PostgresStore",
    "Rewrite",
    "SQLiteStore",
    "Search",
    "Slice",
    "StoreLike",
    "Unchanged",
    "Where",
    "open_store",
]
_SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


StoreLike = Log | str | os.PathLike[str]
"""A store, or its address as `open_store` takes it."""


def store_for(given: StoreLike) -> Log:
    """Returns the store, opened if this is its address."""
    if isinstance(given, str | os.PathLike):
        return open_store(given)
    if not hasattr(given, "append"):
        raise InvalidInput(f"A store, or its address such as 'agent.db', is expected, not {type(given).__name__}.")
    return given


def open_store(where: str | os.PathLike[str]) -> MemoryStore | JSONLStore | SQLiteStore | PostgresStore:
    """Opens `memory:`, `sqlite:///file.db`, `jsonl:folder`, `postgresql://…` or a path.

    A path ending in .db, .sqlite or .sqlite3 is a database, any other a folder. A PostgreSQL database must have been
    migrated. Raises InvalidInput for any other address.
    """
    text = os.fspath(where)
    scheme, colon, rest = text.partition(":")
    if colon and len(scheme) > 1 and scheme.isalnum():
        if scheme == "memory" and not rest:
            return MemoryStore()
        if scheme == "sqlite" and rest.startswith("///") and len(rest) > len("///"):
            return SQLiteStore(rest.removeprefix("///"))
        if scheme == "jsonl" and rest:
            return JSONLStore(rest)
        if scheme in ("postgresql", "postgres"):
            return PostgresStore(text)
    elif "://" in text:
        pass  # a scheme with a typing error is no folder
    elif text.endswith(_SQLITE_SUFFIXES) and not os.path.isdir(text):
        return SQLiteStore(text)
    elif text and (os.path.isdir(text) or (not os.path.exists(text) and not os.path.splitext(text)[1])):
        return JSONLStore(text)
    raise InvalidInput(
        f"There is no store at {scrub(text)!r}: use memory:, sqlite:///file.db, jsonl:folder, "
        "postgresql://user:password@host/database, or the path of a database or folder."
    )
