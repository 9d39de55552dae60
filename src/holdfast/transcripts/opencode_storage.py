"""OpenCode's storage folder: a file for each session, message and part, put together as one export would be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .notes import Notes
from .records import json_values
from .transcript import Record, text


def is_session(record: Record) -> bool:
    """What `storage/session/<project>/<id>.json` holds: all about a session but its messages."""
    return text(record.get("id")) is not None and "projectID" in record and isinstance(record.get("time"), dict)


def is_storage(folder: Path) -> bool:
    return (folder / "session").is_dir() and (folder / "message").is_dir()


def session_files(storage: Path) -> list[Path]:
    return sorted((storage / "session").glob("*/*.json"))


def gathered(file: Path, session: Record, notes: Notes) -> Record:
    """The session in the shape of an export; ids sort by time."""
    storage = file.absolute().parents[2]
    messages = []
    for info in _records(storage / "message" / str(session["id"]), notes):
        parts = list(_records(storage / "part" / str(info.get("id")), notes))
        messages.append({"info": info, "parts": parts})
    return {"info": session, "messages": messages}


def _records(folder: Path, notes: Notes) -> Iterator[Record]:
    for file in sorted(folder.glob("*.json")):
        value: Any = json_values(file.read_bytes(), str(file), notes)[0]
        if isinstance(value, dict):
            yield value
        else:
            notes.count("file", "that holds no record left out")
