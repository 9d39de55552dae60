"""Sessions to measure on: any folder of transcripts, parted into a half to learn from and one to report on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ..errors import InvalidInput
from ..events import digest_of
from ..transcripts import Transcript

_ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz")


def session_files(*folders: str | Path) -> list[Path]:
    """Every session file in these files and folders, in a fixed order."""
    found: list[Path] = []
    for folder in map(Path, folders):
        if not folder.exists():
            raise InvalidInput(f"There is no file or folder {folder}: name one that holds sessions.")
        inside: Iterable[Path] = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
        found += [path for path in inside if path.is_file() and path.name.endswith(_ENDINGS)]
    if not found:
        named = ", ".join(map(str, folders))
        raise InvalidInput(f"No session files in {named}: sessions are .jsonl or .json files, gzip or not.")
    return found


def drawn(files: list[Path], most: int) -> list[Path]:
    """So many of them, as if by chance, but the same each time; in their own order."""
    chosen = sorted(files, key=lambda file: (_digest(file.name), _digest(str(file))))[:most]
    among = set(chosen)
    return [file for file in files if file in among]


def session_name(transcript: Transcript, file: Path) -> str:
    """Its own id; a plain file has none, so its name and what is said in it: the same wherever its folder lies."""
    return transcript.id or f"{file.name}-{digest_of(transcript.messages)[:12]}"


def in_half(session: str, half: str) -> bool:
    return half == "all" or is_for_learning(session) == (half == "learn")


def is_for_learning(session: str) -> bool:
    """By the hash of its id: whatever is learned is learned on these sessions alone."""
    return _digest(session)[0] & 1 == 0


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
