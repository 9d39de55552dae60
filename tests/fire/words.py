"""What a writing process says about its work, one line of JSON for each thing that was acknowledged."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Appended(msgspec.Struct, tag=True):
    """An append that returned: all of these events are in the log, at these places."""

    ids: list[str]
    seqs: list[int]
    session: str = ""


class Compacted(msgspec.Struct, tag=True):
    """A compaction that returned, whatever came of it; the label is in the log only if it won."""

    label: str
    outcome: str
    version: int
    mode: str


class Complaint(msgspec.Struct, tag=True):
    """Something that must never be, seen by the writer itself."""

    text: str


class Counted(msgspec.Struct, tag=True):
    """How many of each thing there were, said at the end."""

    counts: dict[str, int]


Word = Appended | Compacted | Complaint | Counted
_decoder = msgspec.json.Decoder(Word)


def say(word: Word) -> None:
    """Out at once: what is said after a kill was never said."""
    print(msgspec.json.encode(word).decode(), flush=True)


def hear(path: Path) -> list[Word]:
    """What was said up to the end, or up to the middle of the line in which the speaker died."""
    *lines, _ = path.read_bytes().split(b"\n")
    return [_decoder.decode(line) for line in lines]
