"""SQLite connections: pragmas, migrations, and translation of SQLite's errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from importlib import resources
from urllib.parse import quote

from ...errors import CorruptLog, HoldfastError, StoreError, StoreReadOnly

BUSY_SECONDS = 30.0
"""How long to wait for a lock held by another process."""
POLL_MILLISECONDS = 3
"""How long SQLite itself waits for a lock on a writer's connection."""
_PACKAGE = "holdfast.stores.sqlite"
_CORRUPT_CODES = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_UNWRITABLE_CODES = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


def open_writer(path: str, synchronous: str) -> sqlite3.Connection:
    """Opens for writing and applies migrations; falls back to read-only if the file cannot be written."""
    try:
        connection = _connect(path)
    except sqlite3.Error as error:
        raise translate_sqlite_error(error, path) from error
    try:
        _enable_wal(connection)
        connection.execute(_SYNCHRONOUS_PRAGMAS[synchronous])
        connection.execute("PRAGMA secure_delete = ON").fetchone()
        _apply_migrations(connection, path)
    except (sqlite3.Error, HoldfastError) as error:
        connection.close()
        if isinstance(error, HoldfastError):
            raise
        if _error_code(error) in _UNWRITABLE_CODES and os.path.exists(path):
            return open_reader(path)
        raise translate_sqlite_error(error, path) from error
    return connection


def poll_for_locks(connection: sqlite3.Connection) -> None:
    """Leaves waiting to `begin`; nothing may use the connection outside a transaction from now on."""
    connection.execute(f"PRAGMA busy_timeout = {POLL_MILLISECONDS:d}").fetchone()


def begin(connection: sqlite3.Connection) -> None:
    """Begins a write transaction, waiting up to `BUSY_SECONDS` for other processes.

    Looks every few milliseconds: SQLite itself backs off to 100 ms, and then misses the gaps between the short
    transactions of a process that deletes or indexes much.
    """
    last = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > last:
                raise
            time.sleep(0.001)


def truncate_wal(connection: sqlite3.Connection) -> bool:
    """Copies the write-ahead log to the file and empties it; False if another process reads for too long."""
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}").fetchone()
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint (TRUNCATE)").fetchone()
    finally:
        poll_for_locks(connection)
    return not busy


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Enables the write-ahead log, with retries: SQLite's busy time-out does not apply to this pragma."""
    last = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > last:
                raise
            time.sleep(0.01)


_SYNCHRONOUS_PRAGMAS = {"FULL": "PRAGMA synchronous = FULL", "NORMAL": "PRAGMA synchronous = NORMAL"}


def open_reader(path: str) -> sqlite3.Connection:
    """Opens for reading; a file in a read-only folder without a write-ahead log is opened as immutable."""
    error: sqlite3.Error | None = None
    without_wal = not os.path.exists(path + "-wal")
    for mode in ("mode=rw", "mode=ro", "mode=ro&immutable=1") if without_wal else ("mode=rw", "mode=ro"):
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
    raise translate_sqlite_error(error, path) from error


def _connect(path: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        uri=uri,
    )


def _apply_migrations(connection: sqlite3.Connection, path: str) -> None:
    """Applies the missing migrations in one transaction, one process at a time."""
    newest = len(_migration_scripts())
    if _schema_version(connection) == newest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        applied = _schema_version(connection)
        if applied > newest:
            raise StoreError(f"{path} was written by a newer Holdfast (schema {applied}): upgrade Holdfast to open it.")
        for script in _migration_scripts()[applied:]:
            for statement in split_statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migration_scripts() -> list[str]:
    folder = resources.files(_PACKAGE) / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


def read_sql_file(name: str) -> str:
    """Reads an .sql file of this package."""
    return (resources.files(_PACKAGE) / name).read_text(encoding="utf-8")


def split_statements(text: str) -> Iterator[str]:
    """Yields the statements of a script; `executescript` would commit the open transaction."""
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _error_code(error: sqlite3.Error) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    return _error_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translate_sqlite_error(error: sqlite3.Error, path: str) -> HoldfastError:
    """Returns a HoldfastError that names the cause and the remedy."""
    code = _error_code(error)
    folder = os.path.dirname(os.path.abspath(path))
    if code in _CORRUPT_CODES:
        return CorruptLog(f"{path} is not a database, or is damaged ({error}): restore a backup of it.")
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"There is no room left on the disk of {path}: free some space, then retry.")
    if os.path.isdir(path):
        return StoreError(f"{path} is a folder: name a file in it, or use JSONLStore for a folder of sessions.")
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and os.path.isdir(folder)):
        return StoreReadOnly(f"{path} cannot be written ({error}): check the permissions of file and folder.")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreError(f"{path} cannot be opened: the folder {folder} does not exist; create it first.")
    if is_busy(error):
        return StoreError(f"Another process kept {path} locked for too long: retry when it has finished.")
    if code in (sqlite3.SQLITE_ERROR, 0) and "already exists" in str(error):
        return CorruptLog(f"{path} contains tables of another program ({error}): choose another file.")
    return StoreError(f"{path} could not be used ({error}): check the disk, then retry.")
