"""Shortening: cuts the middle of long tool results, for contexts in which nothing more may be archived."""

from __future__ import annotations

from bisect import bisect_left

from ..context import Plan, Request, Skip
from ..errors import Outcome
from ..messages import ToolResult, change
from ..tokens.budget import require_positive
from .base import BaseStrategy
from .history import is_clearable, message_numbers, previous_ledger
from .trail import shortened_text

_MARK_CHARS = 16
"""Results up to this length are no longer than the mark that would replace them."""


class ShortenResults(BaseStrategy):
    """Keeps beginning and end of the longest tool results, each as long as fits, behind a mark that cites the whole."""

    def __init__(self, max_tokens: int) -> None:
        require_positive("max_tokens", max_tokens)
        self.max_tokens = max_tokens

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Plan | Skip:
        view = request.view
        numbers = message_numbers(request, previous_ledger(request).archived)
        results = [
            (index, place, part)
            for index, message in enumerate(view.messages)
            for place, part in enumerate(message.parts)
            if isinstance(part, ToolResult) and is_clearable(part) and len(part.text) > _MARK_CHARS
        ]
        longest = max((len(part.text) for _, _, part in results), default=0)

        def texts(removed: int) -> dict[int, dict[int, str | None]]:
            """Texts that leave each result at most so many characters fewer than the longest has."""
            made: dict[int, dict[int, str | None]] = {}
            for index, place, part in results:
                if len(part.text) > longest - removed:
                    half = (longest - removed) // 2
                    ends = [part.text[:half], part.text[-half:]] if half else []
                    made.setdefault(index, {})[place] = shortened_text(part, numbers[index], ends)
            return made

        def fits(removed: int) -> bool:
            sums, units = view.token_sums, 0
            for index, changes in texts(removed).items():
                units -= sums.cumulative[index + 1] - sums.cumulative[index]
                units += sums.estimator.measure(change(view.messages[index], changes))
            return view.tokens_edited(units) <= self.max_tokens

        if not results or fits(0):
            return Skip(Outcome.NOTHING_TO_COMPACT, "no tool result needs to be shortened")
        removed = min(longest, bisect_left(range(longest + 1), True, key=fits))
        return request.plan.edit(texts(removed)).made_by("shortened results")
