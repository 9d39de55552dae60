"""Scripts and styles, at an address that changes with their content: browsers keep them, and never mix two versions."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import PurePath

MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".txt": "text/plain"}
FILES = {
    entry.name: entry.read_bytes()
    for entry in files(__package__).joinpath("static").iterdir()
    if PurePath(entry.name).suffix in MEDIA_TYPES
}
VERSION = hashlib.sha256(b"".join(FILES[name] for name in sorted(FILES))).hexdigest()[:12]


def asset_path(name: str) -> str:
    return f"/static/{VERSION}/{name}"
