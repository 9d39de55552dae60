"""Opening a database: pragmas, migrations, and what SQLite's errors mean to a person."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from importlib import resources
from urllib.parse import quote

from ...errors import CorruptLog, HoldfastError, StoreError, StoreReadOnly

BUSY_SECONDS = 30.0
"""How long to wait for another process that is writing."""

_PACKAGE = "holdfast.stores.sqlite"
_CORRUPT = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


def open_writer(path: str, synchronous: str) -> sqlite3.Connection:
    """Open for writing and bring the schema up to date; a file that cannot be written opens for reading."""
    try:
        connection = _connect(path)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    try:
        _write_ahead(connection)
        connection.execute(_SYNCHRONOUS[synchronous])
        connection.execute("PRAGMA secure_delete = ON").fetchone()
        _migrate(connection, path)
    except (sqlite3.Error, HoldfastError) as error:
        connection.close()
        if isinstance(error, HoldfastError):
            raise
        if _code(error) in _UNWRITABLE and os.path.exists(path):
            return open_reader(path)
        raise translate(error, path) from error
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log. SQLite does not wait for others here by itself, so this does."""
    last = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > last:
                raise
            time.sleep(0.01)


_SYNCHRONOUS = {"FULL": "PRAGMA synchronous = FULL", "NORMAL": "PRAGMA synchronous = NORMAL"}


def open_reader(path: str) -> sqlite3.Connection:
    """Open for reading alone. A file in a folder that cannot be written has no log beside it to wait for."""
    error: sqlite3.Error | None = None
    alone = not os.path.exists(path + "-wal")
    for mode in ("mode=rw", "mode=ro", "mode=ro&immutable=1") if alone else ("mode=rw", "mode=ro"):
        try:
            connection = _connect(f"file:{quote(os.path.abspath(path))}?{mode}", uri=True)
        except sqlite3.Error as failure:
            error = failure
            continue
        try:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.Error as failure:
            connection.close()
            error = failure
            continue
        return connection
    assert error is not None
    raise translate(error, path) from error


def _connect(path: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        uri=uri,
    )


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    """Run the migrations that this file has not seen, all or none, one process at a time."""
    newest = len(_migrations())
    if _version(connection) == newest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        seen = _version(connection)
        if seen > newest:
            raise StoreError(f"{path} was written by a newer Holdfast (schema {seen}): upgrade to open it.")
        for script in _migrations()[seen:]:
            for statement in statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrations() -> list[str]:
    folder = resources.files(_PACKAGE) / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


def script(name: str) -> str:
    """A file of SQL that ships beside this module."""
    return (resources.files(_PACKAGE) / name).read_text(encoding="utf-8")


def statements(text: str) -> Iterator[str]:
    """The statements of a script one by one: `executescript` would commit behind our back."""
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _code(error: sqlite3.Error) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def translate(error: sqlite3.Error, path: str) -> HoldfastError:
    """One clear sentence for what SQLite reports."""
    code = _code(error)
    folder = os.path.dirname(os.path.abspath(path))
    if code in _CORRUPT:
        return CorruptLog(f"{path} is not a database, or is damaged ({error}): restore a backup of it.")
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"There is no room left to write to {path}; nothing was written: free some, then retry.")
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and os.path.isdir(folder)):
        return StoreReadOnly(f"{path} cannot be written ({error}): check the permissions of file and folder.")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreError(f"{path} cannot be opened: the folder {folder} does not exist, create it first.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(f"Another process kept {path} locked for too long: retry when it is done.")
    if code in (sqlite3.SQLITE_ERROR, 0) and "already exists" in str(error):
        return CorruptLog(f"{path} holds another program's tables ({error}): choose another file.")
    return StoreError(f"{path} could not be used ({error}): check the disk, then retry.")
