"""The body of a compaction event: the checkpoint from which a context is rebuilt, and its edits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from ..messages import Edit, Json, Message
from ..messages.json_text import decodable
from ..tokens import Calibration
from ..tokens.window import WindowFacts

HeadKind = Literal["system", "note", "pin", "preamble", "turn"]
"""Reason a message is in the head; `turn` is the user message of a split turn."""


class HeadItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message shown before the kept events: rendered, or a reference to an earlier event.

    With both `ref` and `message`, the event is shown as `message`.
    """

    kind: HeadKind
    ref: str | None = None
    message: Message | None = None


class Carry(msgspec.Struct, frozen=True, omit_defaults=True):
    """State from before the boundary that later compactions need."""

    round: int = 0
    archived: int = 0
    """Number of events archived so far, over all rounds."""
    format: str | None = None
    counter: str | None = None
    """Name of the estimator that measured the units."""
    calibration: Calibration = Calibration()
    pins: tuple[str, ...] = ()
    policy: Json | None = None
    """The newest policy that was set for the session."""
    window: WindowFacts | None = None
    """What is known about the window of its model."""
    prompt: int | None = None
    """Units of the system prompt and the tools that were set since it was created."""
    topics: tuple[str, ...] = ()
    """First words of archived user messages."""
    before_boundary: int = msgspec.field(default=0, name="passed")
    """Number of messages at or before the boundary, over all rounds."""
    kept_until: int = msgspec.field(default=0, name="settled")
    """Last seq that the last cut kept; without a session, the number of messages it kept."""
    ledger: Json | None = None
    """Notes on archived messages, encoded by the ledger package."""
    state: Json | None = None
    """State written by the summarizer, encoded by the summaries package."""
    memory: Json | None = None
    """Memory block, encoded by the summaries package."""


class CompactionParameters(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a compaction was made: with it, a later `explain` computes the same compaction again."""

    seen: int = 0
    """Version of the session that was compacted; later events were appended while the compaction ran."""
    strategy: Json = {}
    """Class and parameters of the strategy: `{"kind": "KeepLedger", "max_tokens": 4000}`."""
    trigger: Json | None = None
    """Class and parameters of the trigger."""
    policy: Json = {}
    """Name of the preset, its arguments, and what was changed: `{"name": "layer", "arguments": {}, "changes": {}}`."""
    budget: int | None = None
    """Tokens that the context must not exceed."""
    threshold: int | None = None
    target: int | None = None
    instructions: str | None = None
    summarizer: str | None = None
    """Name of the model that could write a summary."""
    model: str | None = None
    """The conversation's model."""
    calibrated: bool = False
    """Whether reported usage calibrated the token counts."""
    version: str = ""
    """Version of Holdfast."""


class EventIdRange(msgspec.Struct, frozen=True):
    """Consecutive events, given by the first and last id.

    Keeps the compaction record small, however many events it archives.
    """

    first: str
    last: str
    count: int


def event_id_ranges(ids: Sequence[str], indices: Iterable[int]) -> tuple[EventIdRange, ...]:
    """Groups the ids at these ascending indices into the fewest ranges."""
    ranges: list[list[int]] = []
    for index in indices:
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    return tuple(EventIdRange(ids[first], ids[last], last - first + 1) for first, last in ranges)


@decodable
class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compaction: `context = head + [apply_edits(e) for e in the lane's events after boundary]`."""

    boundary: str | None = None
    """Id of the last archived event; None if nothing is archived."""
    head: tuple[HeadItem, ...] = ()
    edits: dict[str, tuple[Edit, ...]] = {}
    carry: Carry = Carry()
    archived: tuple[EventIdRange, ...] = ()
    """Events archived by this compaction."""
    tokens_before: int = 0
    tokens_after: int = 0
    summary: str | None = None
    previous: str | None = None
    """Id of the checkpoint that this one replaces."""
    strategy: str | None = None
    fallback: str | None = None
    """Strategy used because the summarizer failed."""
    remarks: tuple[str, ...] = ()
    cost: Json | None = None
    """Cost of the summarizer calls, and expected saving."""
    parameters: CompactionParameters | None = None
    """How it was made; None without a session, and in logs of earlier versions."""
