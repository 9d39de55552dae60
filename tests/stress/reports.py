"""Reports of writer processes on standard output: one JSON line for each acknowledged operation."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Appended(msgspec.Struct, tag=True):
    """An append that returned: all of these events are in the log, with these seqs."""

    ids: list[str]
    seqs: list[int]
    session: str = ""
    after: int | None = None
    """The version that the append required."""


class Compacted(msgspec.Struct, tag=True):
    """A compaction that returned; its label is in the log only if it was committed."""

    label: str
    outcome: str
    version: int
    mode: str
    session: str = ""


class Pinned(msgspec.Struct, tag=True):
    """A pin or unpin that returned: its event is in the log."""

    id: str
    session: str
    after: int | None = None


class Undone(msgspec.Struct, tag=True):
    """An undo that returned, with the checkpoint that it restored."""

    session: str
    to: str | None
    after: int


class Forked(msgspec.Struct, tag=True):
    """A fork that returned, with the version of its parent that it starts from."""

    session: str
    fork: str
    version: int


class Redaction(msgspec.Struct, tag=True):
    """A redaction of one event, or of a text wherever it is; reported before it starts and after it returned."""

    session: str
    secret: str
    event: str | None
    done: bool


class Complaint(msgspec.Struct, tag=True):
    """A violated invariant that the writer itself observed."""

    text: str


class Counted(msgspec.Struct, tag=True):
    """What was counted since the last report."""

    counts: dict[str, int]


Report = Appended | Compacted | Pinned | Undone | Forked | Redaction | Complaint | Counted
_decoder = msgspec.json.Decoder(Report)


def report(item: Report) -> None:
    """Prints a report and flushes it at once."""
    print(msgspec.json.encode(item).decode(), flush=True)


def read_reports(path: Path) -> list[Report]:
    """Returns all complete reports in a file; ignores a line cut by a kill."""
    *lines, _ = path.read_bytes().split(b"\n")
    return [_decoder.decode(line) for line in lines]
