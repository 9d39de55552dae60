"""The body of a compaction event: the checkpoint from which a context is rebuilt, and its edits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from ..messages import Json, Message, Part, Text, ToolResult
from ..messages.json_text import decodable
from ..tokens import Calibration
from ..tokens.window import WindowFacts


class Edit(msgspec.Struct, frozen=True, array_like=True):
    """Replaces the text of the tool result or user text at index `part`, or drops the part if `text` is None."""

    part: int
    text: str | None = None


def apply_edits(message: Message, edits: Sequence[Edit]) -> Message:
    """Returns the edited message. A message left without parts is not shown."""
    if not edits:
        return message
    changes = {edit.part: edit.text for edit in edits}
    parts: list[Part] = []
    for index, part in enumerate(message.parts):
        if index not in changes:
            parts.append(part)
        elif (text := changes[index]) is not None and isinstance(part, ToolResult):
            parts.append(ToolResult(part.call_id, (Text(text),), part.is_error, part.name, part.kind))
        elif text is not None and isinstance(part, Text):
            parts.append(Text(text))
    return message.with_parts(tuple(parts))


def merge_edits(earlier: Sequence[Edit], later: Sequence[Edit]) -> tuple[Edit, ...]:
    """Returns edits of the original message equivalent to applying `earlier` and then `later`."""
    dropped = {edit.part for edit in earlier if edit.text is None}
    changes = {edit.part: edit for edit in earlier}
    for edit in later:
        part = _original_index(edit.part, dropped)
        changes[part] = Edit(part, edit.text)
    return tuple(changes[part] for part in sorted(changes))


def rebase_edits(edits: Sequence[Edit], dropped: Sequence[int], count: int) -> tuple[Edit, ...]:
    """Returns the edits of a message of `count` parts for the message without the dropped ones.

    If none is left, a placeholder stands for the message: it is hidden if the whole message was.
    """
    if len(dropped) == count:
        return (Edit(0),) if sum(edit.text is None for edit in edits) == count else ()
    kept = {part: index for index, part in enumerate(part for part in range(count) if part not in dropped)}
    return tuple(Edit(kept[edit.part], edit.text) for edit in edits if edit.part in kept)


def _original_index(part: int, dropped: set[int]) -> int:
    """Maps an index among the remaining parts to its index in the original message."""
    original = -1
    for _ in range(part + 1):
        original += 1
        while original in dropped:
            original += 1
    return original


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
    weights: str | None = None
    """Digest of the ledger's learned weights."""
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
