"""Reports of writer processes on standard output: one JSON line for each acknowledged operation."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Appended(msgspec.Struct, tag=True):
    """An append that returned: all of these events are in the log, with these seqs."""

    ids: list[str]
    seqs: list[int]
    session: str = ""


class Compacted(msgspec.Struct, tag=True):
    """A compaction that returned; its label is in the log only if it was committed."""

    label: str
    outcome: str
    version: int
    mode: str


class Complaint(msgspec.Struct, tag=True):
    """A violated invariant that the writer itself observed."""

    text: str


class Counted(msgspec.Struct, tag=True):
    """Counters, reported at the end."""

    counts: dict[str, int]


Report = Appended | Compacted | Complaint | Counted
_decoder = msgspec.json.Decoder(Report)


def report(item: Report) -> None:
    """Prints a report and flushes it at once."""
    print(msgspec.json.encode(item).decode(), flush=True)


def read_reports(path: Path) -> list[Report]:
    """Returns all complete reports in a file; ignores a line cut by a kill."""
    *lines, _ = path.read_bytes().split(b"\n")
    return [_decoder.decode(line) for line in lines]
