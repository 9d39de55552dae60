"""Pruning: clears old tool results in place, which may make a summary unnecessary."""

from __future__ import annotations

from collections.abc import Collection

from ..context import Plan, Request, Skip, TokenSums
from ..errors import Outcome
from ..ledger import find_user_replies
from ..messages import Message, Text, ToolResult
from ..tokens.budget import require_not_negative
from .base import BaseStrategy
from .history import is_clearable

CLEARED = "[Old tool result cleared.]"
"""Text that replaces a cleared tool result."""


class PruneToolResults(BaseStrategy):
    """Protects the newest tokens of tool results; clears older ones only if that saves more than `minimum` tokens.

    Pinned results stay, and so do results of exempt tools, of an unfinished tool loop, those that hold the user's own
    words, and those that are already cleared or no larger than the placeholder.
    """

    def __init__(
        self,
        protect: int = 40_000,
        minimum: int = 20_000,
        exempt: Collection[str] = (),
        placeholder: str = CLEARED,
    ) -> None:
        require_not_negative("protect", protect)
        require_not_negative("minimum", minimum)
        self.protect = protect
        self.minimum = minimum
        self.exempt = frozenset(exempt)
        self.placeholder = placeholder

    def __call__(self, request: Request) -> Plan | Skip:
        view, sums = request.view, request.view.token_sums
        tools = _tools(view.messages) if self.exempt else {}
        replies = set(find_user_replies(view.messages))
        small = sums.estimator.measure(Message("tool", (ToolResult("", (Text(self.placeholder),)),)))
        protected = saved = 0
        texts: dict[int, dict[int, str | None]] = {}
        for index in range(min(view.links.open_tool_loop_start, request.plan.last_cut) - 1, -1, -1):
            message = view.messages[index]
            if view.pins and view.ids[index] in view.pins:
                continue
            for place in range(len(message.parts) - 1, -1, -1):
                result = message.parts[place]
                if not isinstance(result, ToolResult) or not is_clearable(result) or (index, place) in replies:
                    continue
                if (result.name or tools.get((index, result.call_id))) in self.exempt:
                    continue
                size = _size(view.messages, index, result, sums)
                if protected < self.protect:
                    protected += size
                elif size > small and result.text != self.placeholder:
                    saved += size - small
                    texts.setdefault(index, {})[place] = self.placeholder
        if view.tokens - view.tokens_with(-saved) <= self.minimum:
            return Skip(Outcome.NOTHING_TO_COMPACT, f"old tool results hold no more than {self.minimum} tokens")
        return request.plan.edit(texts).made_by("pruning")


def _tools(messages: list[Message]) -> dict[tuple[int, str], str]:
    """Returns the tool name of each result by message index and call id: ids may repeat in later turns."""
    called: dict[str, str] = {}
    found: dict[tuple[int, str], str] = {}
    for index, message in enumerate(messages):
        called.update((call.id, call.name) for call in message.calls)
        found.update(((index, result.call_id), called.get(result.call_id, "")) for result in message.results)
    return found


def _size(messages: list[Message], index: int, result: ToolResult, sums: TokenSums) -> int:
    """Returns the units of one result; those of its message if it is the only part."""
    if len(messages[index].parts) == 1:
        return sums.cumulative[index + 1] - sums.cumulative[index]
    return sums.estimator.measure(Message("tool", (result,)))
