"""Detects Holdfast stores and chooses a session in them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import quote

import msgspec

from ..context.events import SessionRecord
from ..errors import InvalidInput, UnknownSession
from ..messages.json_text import decodable
from ..models import public_url, scrub
from ..sessions import BlockingSessionService
from ..sessions.session_ids import find_session, shorten_ids
from ..stores import open_store

_STORE_HINT = "name another with --store"


def require_store(address: str) -> StoreLocation:
    """Returns an existing store for a command that only reads; raises InvalidInput if there is none."""
    location = find_store(address, _STORE_HINT)
    if location is None:
        raise missing_store_error(address, _STORE_HINT)
    return location


def refuse_foreign_database(address: str) -> None:
    """Raises InvalidInput for an existing database that is not ours: opening it would add our tables."""
    if os.path.isfile(address.removeprefix("sqlite:///")):
        find_store(address)


_SQLITE_MAGIC = b"SQLite format 3\0"
_TABLES = {"sessions", "events", "lanes"}
_SCHEMES = ("sqlite:///", "jsonl:")
_SERVER_SCHEMES = ("postgresql://", "postgres://")


class StoreLocation(msgspec.Struct, frozen=True):
    """A store's URL and path; `session_id` is set if the path was one session file."""

    url: str
    path: str
    session_id: str | None = None

    @contextmanager
    def open(self) -> Iterator[BlockingSessionService]:
        with BlockingSessionService(open_store(self.url)) as sessions:
            yield sessions

    def choose_session(self, sessions: BlockingSessionService, wanted: str | None) -> SessionRecord:
        """Returns the wanted session, or the only one; raises InvalidInput if that is ambiguous."""
        if wanted is not None:
            return self._find_session(sessions, wanted)
        if self.session_id is not None:
            try:
                return sessions.get(self.session_id)
            except UnknownSession:
                raise InvalidInput(
                    f"{self.path} holds the session {self.session_id!r} under another file name: rename it to its id."
                ) from None
        found = sessions.list()
        if not found:
            raise InvalidInput(f"{self.path} holds no session yet: create one first.")
        if len(found) > 1:
            example = shorten_ids(record.id for record in found)[found[0].id]
            raise InvalidInput(
                f"{self.path} holds several sessions: name one with --session, for example {example} "
                f"(`holdfast inspect {self.path}` lists them)."
            )
        return found[0]

    def _find_session(self, sessions: BlockingSessionService, wanted: str) -> SessionRecord:
        """Finds a session by its id, or by the beginning or end of it."""
        try:
            return sessions.call(lambda service: find_session(service, wanted))
        except UnknownSession:
            raise InvalidInput(
                f"No session in {self.path} has the id or prefix {wanted!r}: `holdfast inspect {self.path}` lists them."
            ) from None


def missing_store_error(name: str, hint: str) -> InvalidInput:
    """Error for a store that does not exist: reading commands never create one."""
    return InvalidInput(f"There is no store at {scrub(name)}: import a session or chat first, or {hint}.")


def find_store(name: str, hint: str = "name another") -> StoreLocation | None:
    """Detects the store at a path or URL; None if it is another kind of file.

    Raises InvalidInput if a folder or a URL is not a store.
    """
    if name.startswith(_SERVER_SCHEMES):
        return StoreLocation(name, public_url(name))
    path = next((name.removeprefix(scheme) for scheme in _SCHEMES if name.startswith(scheme)), name)
    if os.path.isdir(path):
        if not any(_session_id(os.path.join(path, entry)) for entry in _log_files(path)):
            raise InvalidInput(f"{path} is a folder without Holdfast sessions: name a session file or a store.")
        return StoreLocation(f"jsonl:{os.path.abspath(path)}", path)
    magic = _first_bytes(path)
    if magic.startswith(_SQLITE_MAGIC):
        _check_holdfast_tables(path)
        return StoreLocation(f"sqlite:///{os.path.abspath(path)}", path)
    if (session := _session_id(path)) is not None:
        return StoreLocation(f"jsonl:{os.path.dirname(os.path.abspath(path))}", path, session)
    if path != name and os.path.exists(path):
        raise InvalidInput(f"{path} is not a Holdfast store: {hint}.")
    if path != name:
        raise missing_store_error(name, hint)
    return None


def unreadable_logs(path: str) -> list[str]:
    """JSONL files of a folder that do not start with a session header; the store skips them."""
    if not os.path.isdir(path):
        return []
    return [entry for entry in _log_files(path) if _session_id(os.path.join(path, entry)) is None]


def is_store(path: str) -> bool:
    """True for store files, which must never be overwritten."""
    return os.path.isfile(path) and (_first_bytes(path).startswith(_SQLITE_MAGIC) or _session_id(path) is not None)


def _log_files(folder: str) -> list[str]:
    return sorted(entry for entry in os.listdir(folder) if entry.endswith(".jsonl"))


def _first_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(len(_SQLITE_MAGIC))
    except (OSError, ValueError):
        return b""


@decodable
class _SessionHeader(msgspec.Struct):
    """First line of a JSONL session file."""

    id: str
    created: str
    kind: str = ""


def _session_id(path: str) -> str | None:
    if not _first_bytes(path).startswith(b"{"):
        return None
    with open(path, "rb") as file:
        try:
            header = msgspec.json.decode(file.readline(), type=_SessionHeader)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
    return header.id if header.kind == "session" else None


def _check_holdfast_tables(path: str) -> None:
    """Raises InvalidInput for a foreign SQLite file: opening it as a store would add our tables."""
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    except sqlite3.Error:
        return  # unreadable: opening the store gives a better error
    if not tables >= _TABLES:
        raise InvalidInput(f"{path} is a SQLite file but not a Holdfast store: name one written by Holdfast.")
