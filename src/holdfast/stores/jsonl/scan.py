"""Reading a file from some byte on: whole appends, and what a crash or a careless editor left between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from .lines import TORN, Line, decode_line

_START = b'{"v":'
"""How every line begins: found again where a fragment stands before it on the same line."""


class Placed(msgspec.Struct, frozen=True):
    """A line and where it stands."""

    line: Line
    offset: int
    length: int

    @property
    def seq(self) -> int:
        return self.line.entry.event.seq


class Torn(msgspec.Struct, frozen=True):
    """Bytes that are no whole append and are passed over."""

    offset: int
    why: str
    at_end: bool = False
    """Nothing follows: perhaps another process is still writing it."""


class Batch(msgspec.Struct, frozen=True):
    """One whole append."""

    lines: tuple[Placed, ...]
    end: int
    """The first byte after it."""


def scan(file: BinaryIO, offset: int) -> Iterator[Batch | Torn]:
    """The appends from `offset` on, in order, and what lies between them."""
    file.seek(offset)
    pending: list[Placed] = []
    for raw in file:
        start, offset = offset, offset + len(raw)
        if not raw.endswith(b"\n"):
            yield Torn(pending[0].offset if pending else start, "its last line is torn", at_end=True)
            return
        if not raw.strip():
            continue
        placed = None if raw.endswith(TORN) else _read(raw, start)
        if placed is None or placed.offset > start:
            yield Torn(pending[0].offset if pending else start, _why(raw))
            pending = []
        if placed is None:
            continue
        if pending and placed.seq != pending[-1].seq + 1:
            yield Torn(pending[0].offset, "an append is incomplete")
            pending = []
        pending.append(placed)
        if not placed.line.more:
            yield Batch(tuple(pending), offset)
            pending = []
    if pending:
        yield Torn(pending[0].offset, "its last append is incomplete", at_end=True)


def _why(raw: bytes) -> str:
    return "a line is torn" if raw.endswith(TORN) else "a line cannot be read"


def _read(raw: bytes, start: int) -> Placed | None:
    """The event on a line, or the one that follows a fragment on it."""
    at = 0
    while at >= 0:
        try:
            return Placed(decode_line(raw[at:]), start + at, len(raw) - at)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            at = raw.find(_START, at + 1)
    return None
