"""File names for ids: any id is data, no id leaves its folder, and no two ids share a file."""

from __future__ import annotations

import hashlib
from functools import lru_cache

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_LONGEST = 150
_DEVICES = frozenset(["con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))])
"""Names that some systems give to devices, in whatever folder."""


@lru_cache(maxsize=4096)
def file_name(identifier: str) -> str:
    """Percent-encoded; capitals too, since some file systems do not tell them from small letters.

    A long id is cut and ends in a digest: the file's first line holds it in full.
    """
    raw = identifier.encode()
    plain = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in raw)
    if plain in _DEVICES:
        plain = f"%{raw[0]:02x}{plain[1:]}"
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[: _LONGEST - 40]}~{hashlib.sha256(raw).hexdigest()[:32]}"
