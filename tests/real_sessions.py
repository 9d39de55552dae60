"""Real sessions to test on: those under `HOLDFAST_SESSIONS`, and the examples that ship with Holdfast."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast.messages import Message, decode_all, detect_format
from holdfast.transcripts import Transcript, read_transcript

_SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz")


def _files(folder: str | Path) -> list[Path]:
    return sorted(path for path in Path(folder).rglob("*") if path.name.endswith(_SUFFIXES))


def _examples() -> list[Path]:
    spec = find_spec("holdfast.transcripts.examples")
    return [path for folder in (spec.submodule_search_locations or () if spec else ()) for path in _files(folder)]


WHOLE = bool(os.environ.get("HOLDFAST_WHOLE"))
"""Every test on every session: takes several minutes."""
SESSIONS = _files(folder) if (folder := os.environ.get("HOLDFAST_SESSIONS")) else []
FILES = [*_examples(), *SESSIONS]
each_session = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:13])


def each_nth_session(step: int, first: int = 0) -> pytest.MarkDecorator:
    """The examples and every so many of the sessions, from the given one on; with HOLDFAST_WHOLE set, all of them."""
    chosen = FILES if WHOLE else [*_examples(), *SESSIONS[first::step]]
    return pytest.mark.parametrize("path", chosen, ids=lambda path: path.name[:13])


@cache
def transcript(path: Path) -> Transcript:
    """Reads a session once per process: tests run in random order, and all sessions together take 70 MB."""
    return read_transcript(path)


def history(path: Path) -> list[Message]:
    """All messages of a session, in the order in which they were said."""
    return list(_decoded(path))


@cache
def _decoded(path: Path) -> tuple[Message, ...]:
    return tuple(decode_all(transcript(path).messages, transcript(path).format)[0])


def format_of(path: Path) -> str:
    return transcript(path).format or detect_format(transcript(path).messages)
