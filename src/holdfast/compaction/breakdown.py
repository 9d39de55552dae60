"""Token breakdown of a context: by role, by tool, by turn, by result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise, zip_longest
from typing import Any, Literal

import msgspec

from ..io.text import first_line
from ..messages import Media, Message, Part, Reasoning, Text, ToolCall, ToolResult, is_note, starts_turn
from ..tokens import Estimator, ReportedUsage
from ..tokens.estimators import measure_prompt, prompt_overhead


def preview_line(message: Message) -> str:
    """A one-line preview of a message: its text, else its first tool call or result."""
    if message.text.strip():
        return first_line(message.text)
    for part in message.parts:
        match part:
            case ToolCall():
                return f"→ {first_line(part.name)} {first_line(part.arguments_json)}"
            case ToolResult():
                return f"← {first_line(part.text)}"
    kinds = {Reasoning: "(reasoning)", Media: "(image or file)"}
    return next((kinds.get(type(part), "(other content)") for part in message.parts), "(empty)")


ShareKind = Literal["system", "tools", "note", "user", "assistant", "reasoning", "media", "other", "tool"]
SHARE_KINDS: tuple[ShareKind, ...] = (
    "system",
    "tools",
    "note",
    "user",
    "assistant",
    "reasoning",
    "media",
    "other",
    "tool",
)


class TokenShare(msgspec.Struct, frozen=True):
    """Tokens of one role, or of one tool's calls and results."""

    kind: ShareKind
    label: str
    tokens: int
    count: int
    """Number of messages or calls."""
    calls: int = 0
    """Part of a tool's tokens that are calls; the rest are results."""


class TurnSize(msgspec.Struct, frozen=True):
    """Size of a turn: a real user message and everything up to the next one."""

    number: int
    index: int
    tokens: int
    line: str


class ResultSize(msgspec.Struct, frozen=True):
    """Size of one tool result."""

    index: int
    tool: str
    tokens: int
    line: str


class ContextBreakdown(msgspec.Struct, frozen=True):
    """Token counts of a whole context; the shares add up to `tokens`."""

    tokens: int
    messages: int
    shares: tuple[TokenShare, ...]
    turns: tuple[TurnSize, ...]
    results: tuple[ResultSize, ...]
    """Largest first."""

    @property
    def largest_turn(self) -> TurnSize | None:
        return max(self.turns, key=lambda turn: turn.tokens, default=None)


def break_down(
    messages: Sequence[Message],
    estimator: Estimator,
    system: Any = None,
    tools: Any = None,
    *,
    reports: Sequence[ReportedUsage] = (),
    compacted_at: Sequence[int] = (),
) -> ContextBreakdown:
    """Counts the tokens of a context, including system prompt and tool definitions.

    Turns between two of the provider's `reports` have the difference as their size, unless the context was compacted
    before a message in between (`compacted_at`); everything else is estimated.
    """
    tally = _TokenTally(estimator)
    tally.add_overhead("system", "system prompt", prompt_overhead(system, None))
    tally.add_overhead("tools", "tool definitions", prompt_overhead(None, tools))
    names = {call.id: call.name for message in messages for call in message.calls}
    turns: list[int] = []
    results: list[ResultSize] = []
    sizes = [tally.total]
    for index, message in enumerate(messages):
        if starts_turn(message):
            turns.append(index)
        for part, units in tally.add(message, names):
            if isinstance(part, ToolResult):
                tool = part.name or names.get(part.call_id, "tool")
                results.append(ResultSize(index, tool, estimator.tokens(units), first_line(part.text)))
        sizes.append(tally.total)
    results.sort(key=lambda result: -result.tokens)
    return ContextBreakdown(
        tokens=estimator.tokens(tally.total),
        messages=len(messages),
        shares=tally.shares(),
        turns=_turn_sizes(turns, messages, _cumulative_tokens(sizes, estimator, reports, compacted_at)),
        results=tuple(results),
    )


def _turn_sizes(starts: list[int], messages: Sequence[Message], cumulative: Sequence[float]) -> tuple[TurnSize, ...]:
    ends = [*starts[1:], len(messages)]
    return tuple(
        TurnSize(number, index, round(cumulative[end] - cumulative[index]), first_line(messages[index].text))
        for number, (index, end) in enumerate(zip(starts, ends, strict=False), 1)
    )


def _cumulative_tokens(
    units: Sequence[int], estimator: Estimator, reports: Sequence[ReportedUsage], compacted_at: Sequence[int]
) -> list[float]:
    """Tokens up to each message: reported differences, spread by estimate over the messages between two reports.

    A reply that is stored in several messages reports the same size with each: its last one counts. A difference that
    is not positive says that something was removed, not what was added.
    """
    estimated = [float(estimator.tokens(size)) for size in units]
    given = sorted((report for report in reports if 0 < report.covers < len(units)), key=lambda report: report.covers)
    points = [report for report, after in zip_longest(given, given[1:]) if not after or after.tokens != report.tokens]
    steps = [after - before for before, after in pairwise(estimated)]
    for first, last in pairwise(points):
        gained, guess = last.tokens - first.tokens, estimated[last.covers] - estimated[first.covers]
        if gained > 0 and guess > 0 and not any(first.covers <= place < last.covers for place in compacted_at):
            for index in range(first.covers, last.covers):
                steps[index] *= gained / guess
    return list(accumulate(steps, initial=estimated[0]))


class _TokenTally:
    """Sums units by kind and label; tokens are rounded once, over the running sum."""

    def __init__(self, estimator: Estimator) -> None:
        self.total = 0
        self._estimator = estimator
        self._units: dict[tuple[ShareKind, str, bool], int] = {}
        self._counts: dict[tuple[ShareKind, str], int] = {}

    def add_overhead(self, kind: ShareKind, label: str, parts: Sequence[str | Message]) -> None:
        if parts:
            self._put(kind, label, False, measure_prompt(self._estimator, parts))
            self._counts[kind, label] = 1

    def add(self, message: Message, names: dict[str, str]) -> list[tuple[Part, int]]:
        """Measures a message as a whole; units not explained by its parts go to the first part."""
        measure = self._estimator.measure
        units = measure(message)
        if not message.parts:
            self._put("other", "empty", False, units)
            return []
        if len(message.parts) == 1:
            sizes = [units]
        else:
            bare = measure(Message(message.role, ()))
            sizes = [measure(Message(message.role, (part,))) - bare for part in message.parts]
            sizes[0] += units - sum(sizes)
        seen: set[tuple[ShareKind, str]] = set()
        for part, size in zip(message.parts, sizes, strict=True):
            kind, label = _classify_part(message, part, names)
            self._put(kind, label, isinstance(part, ToolCall), size)
            if isinstance(part, ToolCall) or (kind != "tool" and (kind, label) not in seen):
                self._counts[kind, label] = self._counts.get((kind, label), 0) + 1
            seen.add((kind, label))
        return list(zip(message.parts, sizes, strict=True))

    def _put(self, kind: ShareKind, label: str, call: bool, units: int) -> None:
        self.total += units
        key = (kind, label, call)
        self._units[key] = self._units.get(key, 0) + units

    def shares(self) -> tuple[TokenShare, ...]:
        """Shares in the order of kinds; tools by size."""
        tokens: dict[tuple[ShareKind, str], int] = {}
        calls: dict[tuple[ShareKind, str], int] = {}
        run = 0
        for (kind, label, call), units in self._units.items():
            before, run = self._estimator.tokens(run), run + units
            size = self._estimator.tokens(run) - before
            tokens[kind, label] = tokens.get((kind, label), 0) + size
            if call:
                calls[kind, label] = size
        found = [
            TokenShare(kind, label, size, self._counts.get((kind, label), 0), calls.get((kind, label), 0))
            for (kind, label), size in tokens.items()
        ]
        return tuple(sorted(found, key=lambda share: (SHARE_KINDS.index(share.kind), -share.tokens)))


def align_shares(*sides: ContextBreakdown, most: int) -> list[tuple[TokenShare, ...]]:
    """Shares of several contexts in the same rows, at most `most`: small tools are merged into the last row."""
    keys = list(dict.fromkeys((share.kind, share.label) for side in sides for share in side.shares))
    keys.sort(key=lambda key: SHARE_KINDS.index(key[0]))
    found = [{(share.kind, share.label): share for share in side.shares} for side in sides]
    rows = [tuple(side.get(key, TokenShare(*key, 0, 0)) for side in found) for key in keys]
    if len(rows) <= most:
        return rows
    first_tool = next((place for place, row in enumerate(rows) if row[0].kind == "tool"), len(rows))
    cut = max(first_tool, most - 1)
    rest = rows[cut:]
    return rows[:cut] + ([tuple(map(_merge_shares, zip(*rest, strict=True)))] if rest else [])


def _merge_shares(shares: Sequence[TokenShare]) -> TokenShare:
    sums = [sum(getattr(share, name) for share in shares) for name in ("tokens", "count", "calls")]
    return TokenShare("tool", f"{len(shares)} other tools", *sums)


def _classify_part(message: Message, part: Part, names: dict[str, str]) -> tuple[ShareKind, str]:
    match part:
        case ToolCall():
            return "tool", part.name
        case ToolResult():
            return "tool", part.name or names.get(part.call_id, "tool")
        case Reasoning():
            return "reasoning", "reasoning"
        case Media():
            return "media", "images and files"
        case Text() if message.role == "system":
            return "system", "system prompt"
        case Text() if message.role == "assistant":
            return "assistant", "assistant"
        case Text():
            return ("note", "notes") if is_note(message) else ("user", "user")
        case _:
            return "other", part.kind
