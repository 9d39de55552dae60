"""SQL lives in files, in blocks with names; nothing is ever pasted into it."""

from __future__ import annotations

import re
from importlib import resources

LONG = 3600.0
"""Seconds for a statement that may have much to do: a migration, the end of a long session."""

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def blocks(name: str) -> dict[str, str]:
    """The statements of a file beside this one, by name."""
    text = (resources.files(__package__) / name).read_text(encoding="utf-8")
    _, *found = _NAME.split(text)
    return {title: block.strip() for title, block in zip(found[::2], found[1::2], strict=True)}
