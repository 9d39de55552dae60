"""Files that survive a crash: atomic replacement, durable appends, locks between processes."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from ..errors import HoldfastError, StoreError, StoreReadOnly


def write_file_atomically(path: str | os.PathLike[str], data: bytes, *, new_mode: int = 0o644) -> None:
    """Writes a file through a temporary one and a rename, so that a crash leaves the old content.

    Keeps the permissions of an existing file; `new_mode` is for a new one.
    """
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = new_mode
    handle, fresh = tempfile.mkstemp(prefix=".holdfast-", dir=os.path.dirname(os.path.abspath(path)))
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(fresh, mode)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def read_regular_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """Returns the beginning of a file; raises OSError for a device or a pipe, which may never end."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read(limit)


_PERMISSION_ERRNOS = {errno.EACCES, errno.EPERM, errno.EROFS}
_DISK_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def append_bytes(path: str, data: bytes) -> os.stat_result:
    """Appends bytes and syncs the file to disk; on failure it is truncated to its previous size."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
    try:
        before = os.fstat(handle).st_size
        try:
            _write_all(handle, data)
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, before)
            raise
        return os.fstat(handle)
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def replace_durably(path: str, pieces: Iterable[bytes]) -> None:
    """Creates or replaces a file atomically and syncs it to disk: readers see the old content or the new."""
    fresh = f"{path}.new"
    try:
        write_durably(fresh, pieces)
        os.replace(fresh, path)
    except BaseException:
        if os.path.exists(fresh):
            os.unlink(fresh)
        raise
    sync_folder(os.path.dirname(path))


def write_durably(path: str, pieces: Iterable[bytes]) -> None:
    """Writes a file and syncs its content to disk."""
    with open(path, "wb") as file:
        for piece in pieces:
            file.write(piece)
        sync_file(file)


def sync_file(file: BinaryIO) -> None:
    """Syncs the content of an open file to disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: str) -> None:
    """Syncs a directory to disk, so that new names survive a crash."""
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_permission_error(error: OSError) -> bool:
    return error.errno in _PERMISSION_ERRNOS


def translate_os_error(error: OSError, folder: str) -> HoldfastError:
    """Returns a HoldfastError that names the cause and the remedy."""
    where = error.filename or folder
    if error.errno in _PERMISSION_ERRNOS:
        return StoreReadOnly(f"{where} cannot be written ({error.strerror}): check the permissions of {folder}.")
    if error.errno in _DISK_FULL_ERRNOS:
        return StoreError(f"There is no room left in {folder}: free some space, then retry.")
    if error.errno in (errno.EEXIST, errno.ENOTDIR) and not os.path.isdir(folder):
        return StoreError(f"{folder} is a file: name a folder for the sessions, or use SQLiteStore.")
    return StoreError(f"{where} could not be used ({error.strerror}): check the disk, then retry.")


if sys.platform == "win32":
    import msvcrt
    import time

    def _lock_handle(handle: int, shared: bool, wait: bool) -> None:
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return
            except OSError as error:
                if not wait:
                    raise BlockingIOError from error
                time.sleep(0.005)
else:
    import fcntl

    def _lock_handle(handle: int, shared: bool, wait: bool) -> None:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def file_lock(path: str, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Holds a lock until the block ends; the system releases it if the process dies.

    Raises BlockingIOError if another holds it and the caller does not want to wait.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock_handle(handle, shared, wait)
        yield
    finally:
        os.close(handle)
