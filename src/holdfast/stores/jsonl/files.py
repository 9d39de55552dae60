"""Writing so that it lasts: nothing is acknowledged before the disk has it, and no file is half replaced."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable

from ...errors import HoldfastError, StoreError, StoreReadOnly

_UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def append(path: str, data: bytes) -> os.stat_result:
    """Add bytes at the end and wait for the disk. On failure the file is as it was before."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
    try:
        before = os.fstat(handle).st_size
        try:
            _write(handle, data)
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, before)
            raise
        return os.fstat(handle)
    finally:
        os.close(handle)


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def replace(path: str, pieces: Iterable[bytes]) -> None:
    """Make or replace a file as a whole: whoever opens it finds the old content or the new."""
    fresh = f"{path}.new"
    try:
        with open(fresh, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        if os.path.exists(fresh):
            os.unlink(fresh)
        raise
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Make names last too."""
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def cannot_write(error: OSError) -> bool:
    return error.errno in _UNWRITABLE


def translate(error: OSError, folder: str) -> HoldfastError:
    """One clear sentence for what the file system reports."""
    where = error.filename or folder
    if error.errno in _UNWRITABLE:
        return StoreReadOnly(f"{where} cannot be written ({error.strerror}): check the permissions of {folder}.")
    if error.errno in _FULL:
        return StoreError(f"There is no room left in {folder}; nothing was written: free some, then retry.")
    return StoreError(f"{where} could not be used ({error.strerror}): check the disk, then retry.")
