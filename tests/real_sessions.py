"""Sessions to test on: those that ship with the project, and real ones where HOLDFAST_SESSIONS names a folder."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from holdfast.examples import EXAMPLES, example_path

from holdfast.messages import decode_all, encode_all
from holdfast.transcripts import Transcript, read_transcript


def session_paths() -> list[Path]:
    folder = os.environ.get("HOLDFAST_SESSIONS")
    real = sorted(Path(folder).rglob("*.jsonl*")) if folder else []
    return [Path(str(example_path(name))) for name in EXAMPLES] + real


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name.partition('.')[0]}"


@lru_cache(maxsize=8)
def transcript(path: Path) -> Transcript:
    return read_transcript(path)


@lru_cache(maxsize=8)
def told_in(path: Path, format: str) -> list[dict[str, Any]]:
    """The session's messages, converted to this wire format."""
    messages, _ = decode_all(transcript(path).messages, transcript(path).format)
    return encode_all(messages, format)
