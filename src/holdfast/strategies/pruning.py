"""Pruning: clear old tool results in place, so that a summary may not be needed at all (P22)."""

from __future__ import annotations

from collections.abc import Collection

from ..boundaries import unfinished
from ..budget import not_negative
from ..messages import Message, Text, ToolResult
from ..outcome import Outcome
from ..view import Edit, Gauge, Plan, Request, Skip

CLEARED = "[Old tool result cleared.]"
_CLEARABLE = ("function", "custom", "function_call")
"""Results of built-in tools have a shape of their own that words cannot stand in for."""


class PruneToolResults:
    """Protect the newest tokens of tool results; clear older ones only if enough would go.

    Results of the exempt tools and of the loop that is still running stay. A result that is cleared
    already, or that is no larger than the words which would replace it, is left alone.
    """

    def __init__(
        self,
        protect: int = 40_000,
        minimum: int = 20_000,
        exempt: Collection[str] = (),
        placeholder: str = CLEARED,
    ) -> None:
        not_negative("protect", protect)
        not_negative("minimum", minimum)
        self.protect = protect
        self.minimum = minimum
        self.exempt = frozenset(exempt)
        self.placeholder = placeholder

    def __call__(self, request: Request) -> Plan | Skip:
        view, gauge = request.view, request.view.gauge
        tools = _tools(view.messages) if self.exempt else {}
        small = gauge.estimator.measure(Message("tool", (ToolResult("", (Text(self.placeholder),)),)))
        protected = saved = 0
        edits: dict[int, tuple[Edit, ...]] = {}
        for index in range(unfinished(view.messages) - 1, -1, -1):
            message = view.messages[index]
            cleared: list[Edit] = []
            for place in range(len(message.parts) - 1, -1, -1):
                result = message.parts[place]
                if not isinstance(result, ToolResult) or not is_clearable(result):
                    continue
                if (result.name or tools.get((index, result.call_id))) in self.exempt:
                    continue
                size = _size(view.messages, index, result, gauge)
                if protected < self.protect:
                    protected += size
                elif size > small and result.text != self.placeholder:
                    saved += size - small
                    cleared.append(Edit(place, self.placeholder))
            if cleared:
                edits[index] = tuple(reversed(cleared))
        if view.tokens - view.tokens_of(view.units() - saved) <= self.minimum:
            return Skip(Outcome.NOTHING_TO_COMPACT, f"old tool results hold no more than {self.minimum} tokens")
        return Plan(0, edits=edits, by="pruning")


def is_clearable(result: ToolResult) -> bool:
    """May words stand in for this result?"""
    return result.kind in _CLEARABLE


def _tools(messages: list[Message]) -> dict[tuple[int, str], str]:
    """The tool behind each result: an id may be another tool's in a later turn."""
    called: dict[str, str] = {}
    found: dict[tuple[int, str], str] = {}
    for index, message in enumerate(messages):
        called.update((call.id, call.name) for call in message.calls)
        found.update(((index, result.call_id), called.get(result.call_id, "")) for result in message.results)
    return found


def _size(messages: list[Message], index: int, result: ToolResult, gauge: Gauge) -> int:
    """Units of one result: its message's, where it is alone there."""
    if len(messages[index].parts) == 1:
        return gauge.sums[index + 1] - gauge.sums[index]
    return gauge.estimator.measure(Message("tool", (result,)))
