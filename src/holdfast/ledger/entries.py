"""What a ledger is made of: plain data that a checkpoint can carry and a later round can go on from."""

from __future__ import annotations

import msgspec

from .lines import Line


class Sighting(msgspec.Struct, array_like=True, gc=False):
    """How often and when a name was met, and in whose words. Times are the conversation's clock; -1 is never."""

    kind: str
    last: int
    mentions: int = 0
    uses: int = 0
    """In how many calls it stood in what the call referred to."""
    last_use: int = -1
    said: int = -1
    user: int = -1
    wrote: int = -1
    price: int = 0
    """Characters of the shortest result that holds it: what it takes to find it again. 0 where none does."""


class File(msgspec.Struct, array_like=True, gc=False):
    """What was done to one file."""

    path: str
    reads: int = 0
    edits: int = 0
    written: bool = False
    """Was it written whole, not only edited?"""
    place: int = 0
    time: int = 0
    deleted: bool = False


class Command(msgspec.Struct, array_like=True, gc=False):
    """A command of one line, how often it was run, and whether it failed the last time."""

    text: str
    runs: int = 0
    failed: bool = False
    place: int = 0
    time: int = 0


class Ledger(msgspec.Struct, omit_defaults=True):
    """What is carried from round to round: the notes on all that was archived, bounded."""

    archived: int = 0
    """How many messages it is about, where only its page says so: a checkpoint knows it by itself."""
    time: int = 0
    depth: int = 0
    users: list[Line] = []
    untold: int = 0
    untold_from: int = 0
    """How many more the user said that are not carried any longer, and the first of them."""
    closings: list[Line] = []
    """What the assistant last said before the user spoke again: its conclusions."""
    plan: list[tuple[str, str]] = []
    plan_place: int = 0
    """Where it was last changed."""
    plan_told: bool = False
    """Was it read back from a page? There, a step that is done has lost its number."""
    calls: list[Line] = []
    """What was called since the user last spoke, apart from reading, changing, running and planning."""
    calls_untold: int = 0
    """How many more, before them."""
    files: list[File] = []
    commands: list[Command] = []
    errors: list[Line] = []
    attached: list[Line] = []
    """Pictures and files that came without a path: what they were, and where (P12)."""
    lines: list[Line] = []
    names: dict[str, Sighting] = {}
