"""Small session files, written for each test."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.transcripts import Transcript, read_transcript

Write = Callable[..., Path]
Read = Callable[..., Transcript]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*records: Any, name: str = "session.jsonl", tail: str = "") -> Path:
        data = ("".join(json.dumps(record) + "\n" for record in records) + tail).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


@pytest.fixture
def read(write: Write) -> Read:
    def read(*records: Any, **options: Any) -> Transcript:
        return read_transcript(write(*records, **options))

    return read
