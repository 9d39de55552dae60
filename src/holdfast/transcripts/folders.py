"""Sessions in a folder: every file in it that could be one, as each tool lays its own out."""

from __future__ import annotations

import os
from pathlib import Path

from .opencode_storage import is_storage, session_files

_ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".json.gz")


def session_files_in(folder: str | os.PathLike[str]) -> list[Path]:
    """In the order of their names; of OpenCode's storage the sessions alone, not each message and part."""
    found: list[Path] = []
    for place, below, names in os.walk(folder):
        below.sort()
        here = Path(place)
        if is_storage(here):
            found += session_files(here)
            below.clear()
            continue
        found += [here / name for name in sorted(names) if name.endswith(_ENDINGS)]
    return found
