"""Where the tokens of a context are: by role, by tool, by turn, by result. Pure functions over messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from ..compaction import beside
from ..messages import Media, Message, Part, Reasoning, Text, ToolCall, ToolResult, is_framed
from ..tokens import Estimator
from .glimpse import first_line

Kind = Literal["system", "tools", "note", "user", "assistant", "reasoning", "media", "other", "tool"]
KINDS: tuple[Kind, ...] = ("system", "tools", "note", "user", "assistant", "reasoning", "media", "other", "tool")


class Share(msgspec.Struct, frozen=True):
    """One part of a context: a role's words, or one tool's calls and results."""

    kind: Kind
    label: str
    tokens: int
    count: int
    """How many parts it has: messages, calls."""
    calls: int = 0
    """Of a tool's tokens, those of its calls; the rest are results."""


class Turn(msgspec.Struct, frozen=True):
    """A real user message and all that followed it."""

    number: int
    index: int
    tokens: int
    line: str


class Result(msgspec.Struct, frozen=True):
    """One tool result."""

    index: int
    tool: str
    tokens: int
    line: str


class Anatomy(msgspec.Struct, frozen=True):
    """The whole context, taken apart; the shares add up to `tokens`."""

    tokens: int
    messages: int
    shares: tuple[Share, ...]
    turns: tuple[Turn, ...]
    results: tuple[Result, ...]
    """The largest first."""

    @property
    def largest_turn(self) -> Turn | None:
        return max(self.turns, key=lambda turn: turn.tokens, default=None)


def anatomy(messages: Sequence[Message], estimator: Estimator, system: Any = None, tools: Any = None) -> Anatomy:
    """Take a context apart, with what stands beside its messages."""
    pile = _Pile(estimator)
    pile.add_beside("system", "system prompt", beside(system, None))
    pile.add_beside("tools", "tool definitions", beside(None, tools))
    names = {call.id: call.name for message in messages for call in message.calls}
    turns: list[tuple[int, int]] = []
    results: list[Result] = []
    for index, message in enumerate(messages):
        if message.role == "user" and not is_framed(message):
            turns.append((index, pile.total))
        for part, units in pile.add(message, names):
            if isinstance(part, ToolResult):
                tool = part.name or names.get(part.call_id, "tool")
                results.append(Result(index, tool, estimator.tokens(units), first_line(part.text)))
    results.sort(key=lambda result: -result.tokens)
    return Anatomy(
        tokens=estimator.tokens(pile.total),
        messages=len(messages),
        shares=pile.shares(),
        turns=_turns(turns, messages, estimator, pile.total),
        results=tuple(results),
    )


def _turns(
    starts: list[tuple[int, int]], messages: Sequence[Message], estimator: Estimator, end: int
) -> tuple[Turn, ...]:
    ends = [units for _, units in starts[1:]] + [end]
    return tuple(
        Turn(number, index, estimator.tokens(after - units), first_line(messages[index].text))
        for number, ((index, units), after) in enumerate(zip(starts, ends, strict=False), 1)
    )


class _Pile:
    """Units by kind and label. Units add up; tokens are rounded once, over the running sum."""

    def __init__(self, estimator: Estimator) -> None:
        self.total = 0
        self._estimator = estimator
        self._units: dict[tuple[Kind, str, bool], int] = {}
        self._counts: dict[tuple[Kind, str], int] = {}

    def add_beside(self, kind: Kind, label: str, texts: Sequence[str]) -> None:
        for text in texts:
            self._put(kind, label, False, self._estimator.measure_text(text))
            self._counts[kind, label] = 1

    def add(self, message: Message, names: dict[str, str]) -> list[tuple[Part, int]]:
        """Count a message once as a whole; what its parts do not explain goes with the first of them."""
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
        seen: set[tuple[Kind, str]] = set()
        for part, size in zip(message.parts, sizes, strict=True):
            kind, label = _belongs(message, part, names)
            self._put(kind, label, isinstance(part, ToolCall), size)
            if isinstance(part, ToolCall) or (kind != "tool" and (kind, label) not in seen):
                self._counts[kind, label] = self._counts.get((kind, label), 0) + 1
            seen.add((kind, label))
        return list(zip(message.parts, sizes, strict=True))

    def _put(self, kind: Kind, label: str, call: bool, units: int) -> None:
        self.total += units
        key = (kind, label, call)
        self._units[key] = self._units.get(key, 0) + units

    def shares(self) -> tuple[Share, ...]:
        """In the order of kinds; tools by size."""
        tokens: dict[tuple[Kind, str], int] = {}
        calls: dict[tuple[Kind, str], int] = {}
        run = 0
        for (kind, label, call), units in self._units.items():
            before, run = self._estimator.tokens(run), run + units
            size = self._estimator.tokens(run) - before
            tokens[kind, label] = tokens.get((kind, label), 0) + size
            if call:
                calls[kind, label] = size
        found = [
            Share(kind, label, size, self._counts.get((kind, label), 0), calls.get((kind, label), 0))
            for (kind, label), size in tokens.items()
        ]
        return tuple(sorted(found, key=lambda share: (KINDS.index(share.kind), -share.tokens)))


def side_by_side(*sides: Anatomy, most: int) -> list[tuple[Share, ...]]:
    """The shares of several contexts in the same rows, at most so many: small tools go together in the last."""
    keys = list(dict.fromkeys((share.kind, share.label) for side in sides for share in side.shares))
    keys.sort(key=lambda key: KINDS.index(key[0]))
    found = [{(share.kind, share.label): share for share in side.shares} for side in sides]
    rows = [tuple(side.get(key, Share(*key, 0, 0)) for side in found) for key in keys]
    if len(rows) <= most:
        return rows
    first_tool = next((place for place, row in enumerate(rows) if row[0].kind == "tool"), len(rows))
    cut = max(first_tool, most - 1)
    rest = rows[cut:]
    return rows[:cut] + ([tuple(map(_together, zip(*rest, strict=True)))] if rest else [])


def _together(shares: Sequence[Share]) -> Share:
    sums = [sum(getattr(share, name) for share in shares) for name in ("tokens", "count", "calls")]
    return Share("tool", f"{len(shares)} other tools", *sums)


def _belongs(message: Message, part: Part, names: dict[str, str]) -> tuple[Kind, str]:
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
            return ("note", "archive note") if is_framed(message) else ("user", "user")
        case _:
            return "other", part.kind
