"""Holdfast's own sessions: telling a store from any other file, and reading one session of it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import quote

import msgspec

from ..errors import InvalidInput, UnknownSession
from ..events import SessionRecord
from ..models import public_url, scrub
from ..service import BlockingSessionService
from ..stores import open_store

_SQLITE = b"SQLite format 3\0"
_TABLES = {"sessions", "events", "lanes"}
_SCHEMES = ("sqlite:///", "jsonl:")
_SERVERS = ("postgresql://", "postgres://")
MOST_NAMED = 3
"""Sessions that an error names as what could have been meant."""


class Place(msgspec.Struct, frozen=True):
    """A store, and the one session of it that was named by its file."""

    url: str
    path: str
    only: str | None = None

    @contextmanager
    def open(self) -> Iterator[BlockingSessionService]:
        with BlockingSessionService(open_store(self.url)) as sessions:
            yield sessions

    def choose(self, sessions: BlockingSessionService, wanted: str | None) -> SessionRecord:
        """The session asked for, or the only one there is."""
        if wanted is not None:
            return self._named(sessions, wanted)
        if self.only is not None:
            try:
                return sessions.get(self.only)
            except UnknownSession:
                raise InvalidInput(
                    f"{self.path} holds the session {self.only!r} under another name: name it after its id again."
                ) from None
        found = sessions.list(limit=3)
        if not found:
            raise InvalidInput(f"{self.path} holds no session yet: nothing can be read from it.")
        if len(found) > 1:
            raise InvalidInput(
                f"{self.path} holds several sessions: name one with --session, for example {found[0].id} "
                f"(`holdfast inspect {self.path}` lists them)."
            )
        return found[0]

    def _named(self, sessions: BlockingSessionService, wanted: str) -> SessionRecord:
        """The session of this id, or the only one whose id begins so."""
        try:
            return sessions.get(wanted)
        except UnknownSession:
            found = [record for record in sessions.list() if wanted and record.id.startswith(wanted)]
        if len(found) == 1:
            return found[0]
        listed = f"`holdfast inspect {self.path}` lists them"
        if not found:
            raise InvalidInput(f"There is no session {wanted!r} in {self.path}, and none that begins so: {listed}.")
        some = ", ".join(record.id for record in found[:MOST_NAMED])
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise InvalidInput(f"{wanted!r} begins the ids of several sessions, {some}{more}: write more of it ({listed}).")


def no_store(name: str, otherwise: str) -> InvalidInput:
    """Looking into a store makes none: it is said what does, and how another is named."""
    return InvalidInput(f"There is no store at {scrub(name)}: import a session or chat first, or {otherwise}.")


def find_store(name: str, otherwise: str = "name another") -> Place | None:
    """The store behind a name; None if it is some other file. A folder must be one, and so must an address."""
    if name.startswith(_SERVERS):
        return Place(name, public_url(name))
    path = next((name.removeprefix(scheme) for scheme in _SCHEMES if name.startswith(scheme)), name)
    if os.path.isdir(path):
        if not any(_session_id(os.path.join(path, entry)) for entry in _logs(path)):
            raise InvalidInput(f"{path} is a folder without Holdfast sessions: name a session file, or a store.")
        return Place(f"jsonl:{os.path.abspath(path)}", path)
    start = _start(path)
    if start.startswith(_SQLITE):
        _must_be_ours(path)
        return Place(f"sqlite:///{os.path.abspath(path)}", path)
    if (session := _session_id(path)) is not None:
        return Place(f"jsonl:{os.path.dirname(os.path.abspath(path))}", path, session)
    if path != name and os.path.exists(path):
        raise InvalidInput(f"{path} is no Holdfast store: {otherwise}.")
    if path != name:
        raise no_store(name, otherwise)
    return None


def unreadable_logs(path: str) -> list[str]:
    """Files of a folder that look like sessions but do not begin with one; a store passes over them."""
    if not os.path.isdir(path):
        return []
    return [entry for entry in _logs(path) if _session_id(os.path.join(path, entry)) is None]


def is_store(path: str) -> bool:
    """Must this file never be overwritten, since a log is the truth?"""
    return os.path.isfile(path) and (_start(path).startswith(_SQLITE) or _session_id(path) is not None)


def _logs(folder: str) -> list[str]:
    return sorted(entry for entry in os.listdir(folder) if entry.endswith(".jsonl"))


def _start(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(len(_SQLITE))
    except (OSError, ValueError):
        return b""


class _Header(msgspec.Struct):
    """What the first line of a session's file is told by."""

    id: str
    created: str
    kind: str = ""


def _session_id(path: str) -> str | None:
    if not _start(path).startswith(b"{"):
        return None
    with open(path, "rb") as file:
        try:
            header = msgspec.json.decode(file.readline(), type=_Header)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
    return header.id if header.kind == "session" else None


def _must_be_ours(path: str) -> None:
    """Looked at before the store opens it, since opening would add our tables to a stranger's file."""
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    except sqlite3.Error:
        return  # damaged or not to be opened: the store says it better
    if not tables >= _TABLES:
        raise InvalidInput(f"{path} is a SQLite file, but no Holdfast store: name one that Holdfast wrote.")
