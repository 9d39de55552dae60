"""Writing a file whole or not at all: a new one takes the place of the old at once."""

from __future__ import annotations

import os
import stat
import tempfile


def replace_file(path: str | os.PathLike[str], data: bytes, *, new_mode: int = 0o644) -> None:
    """Who is killed in here leaves the old file as it was. Its permissions stay; `new_mode` is for one that is new."""
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
