"""The flag of a session as a small file beside its log: who is at work, and until when that is to be believed (W13).

It need not survive a power cut, so nothing waits for the disk; one that a crash left half written is down.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

import msgspec

from .folder import Folder


class _Flag(msgspec.Struct, frozen=True):
    owner: str
    until: float
    """Seconds since 1970, by the one clock of this machine."""


def take(folder: Folder, session_id: str, owner: str, seconds: float) -> bool:
    folder.must_hold(session_id)
    with folder.shared(writing=True), folder.locked(session_id):
        standing = _standing(folder, session_id)
        if standing is not None and standing.owner != owner:
            return False
        with open(folder.lease_file(session_id), "wb") as file:
            file.write(msgspec.json.encode(_Flag(owner, time.time() + seconds)))
        return True


def release(folder: Folder, session_id: str, owner: str) -> None:
    if not os.path.exists(folder.lease_file(session_id)):
        return
    with folder.shared(writing=True), folder.locked(session_id):
        flag = _read(folder, session_id)
        if flag is not None and flag.owner == owner:
            os.unlink(folder.lease_file(session_id))


def held(folder: Folder, session_id: str) -> float | None:
    if not os.path.exists(folder.lease_file(session_id)):
        return None
    with folder.shared(), folder.locked(session_id, writing=False):
        standing = _standing(folder, session_id)
    return None if standing is None else max(0.0, standing.until - time.time())


def _standing(folder: Folder, session_id: str) -> _Flag | None:
    flag = _read(folder, session_id)
    return flag if flag is not None and flag.until > time.time() else None


def _read(folder: Folder, session_id: str) -> _Flag | None:
    with suppress(FileNotFoundError, msgspec.MsgspecError), open(folder.lease_file(session_id), "rb") as file:
        return msgspec.json.decode(file.read(), type=_Flag)
    return None
