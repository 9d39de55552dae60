"""The body of a compaction event: a checkpoint from which the context can be built alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from ..messages import Json, Message
from ..tokens import Calibration
from .edits import Edit

HeadKind = Literal["system", "note", "pin", "preamble", "turn"]
"""Why something is shown before the kept events: `turn` is the user message of a turn that was split."""


class HeadItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something shown before the kept events: a rendered message, or a reference to one earlier event.

    With both, it is that event, shown as this message.
    """

    kind: HeadKind
    ref: str | None = None
    message: Message | None = None


class Carry(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that later work needs from before the boundary."""

    round: int = 0
    archived: int = 0
    """How many events have been archived so far, in all rounds."""
    format: str | None = None
    counter: str | None = None
    """The estimator that units were measured with."""
    calibration: Calibration = Calibration()
    pins: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    """What archived user messages were about, in their own first words."""
    passed: int = 0
    """How many messages stand at or before the boundary, in all rounds."""
    settled: int = 0
    """Up to which seq the last cut kept events; without a session, how many messages it kept."""
    ledger: Json | None = None
    """Notes on what was archived, as its own part reads and writes them."""
    state: Json | None = None
    """What a model keeps track of, likewise (W9)."""
    memory: Json | None = None
    """The memory block, likewise (W11)."""


class Run(msgspec.Struct, frozen=True):
    """Events that stand one behind the other, named by their ends.

    However many a compaction archives, its record stays small, and opening the session costs the same.
    """

    first: str
    last: str
    count: int


def runs_of(ids: Sequence[str], places: Iterable[int]) -> tuple[Run, ...]:
    """The events at these places, as few runs as they make."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return tuple(Run(ids[first], ids[last], last - first + 1) for first, last in runs)


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """`context = head + [edited(e) for e in the lane's events after boundary]`."""

    boundary: str | None = None
    """The id of the last archived event; None where nothing is archived."""
    head: tuple[HeadItem, ...] = ()
    edits: dict[str, tuple[Edit, ...]] = {}
    carry: Carry = Carry()
    archived: tuple[Run, ...] = ()
    """The events that this compaction archived."""
    tokens_before: int = 0
    tokens_after: int = 0
    summary: str | None = None
    previous: str | None = None
    """The checkpoint that this one replaces."""
    strategy: str | None = None
    fallback: str | None = None
    """What stood in for a model that did not answer."""
    remarks: tuple[str, ...] = ()
    cost: Json | None = None
    """What the model's part in it cost, and what it saves (H4)."""
