"""A preset: trigger, strategy, target, estimator and limits under one name, to compact any list or session with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from ..models.calls import Limits
from ..tokens.budget import require_positive
from .api import acompact, compact
from .result import CompactionResult

if TYPE_CHECKING:
    from ..types import MessageLike, Strategy, Trigger


def half_window(window: int) -> int:
    """Returns the default target: half the window."""
    return max(1, window // 2)


def target_below(limit: Callable[[int], int], share: float = 0.75) -> Callable[[int], int]:
    """Returns the target for a preset that compacts at `limit`: half the window, or a share of the limit if less.

    A context compacted down to the limit itself would exceed it again with the next message.
    """
    return lambda window: max(1, min(half_window(window), int(limit(window) * share)))


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A named compaction policy: trigger, strategy, target, token estimator and limits."""

    name: str
    about: str
    """Description in one sentence."""
    figures: dict[str, str]
    """Its constants and rules in words, for display."""
    trigger_in: Callable[[int], Trigger]
    """Returns the trigger for a window of so many tokens."""
    strategy: Strategy
    target_in: Callable[[int], int] = half_window
    """Returns the target for a window of so many tokens."""
    estimator: str | None = None
    """Name of the token estimator; None for the real tokenizer."""
    calibrated: bool = False
    """Whether token usage reported by the provider calibrates the estimate."""
    window: int = 128_000
    """Default if the model's window is unknown."""
    limits: Limits = Limits()

    def compact(self, messages: Iterable[MessageLike], window: int | None = None, **options: Any) -> CompactionResult:
        """Calls `compact` with this preset's settings for a window; explicit options take precedence."""
        return compact(messages, **self._keywords(window, options))

    async def acompact(
        self, messages: Iterable[MessageLike], window: int | None = None, **options: Any
    ) -> CompactionResult:
        """Calls `acompact` with this preset's settings."""
        return await acompact(messages, **self._keywords(window, options))

    def _keywords(self, window: int | None, given: dict[str, Any]) -> dict[str, Any]:
        size = self.window if window is None else window
        require_positive("window", size)
        own: dict[str, Any] = {
            "budget": size,
            "trigger": self.trigger_in(size),
            "strategy": self.strategy,
            "estimator": self.estimator,
            "limits": self.limits,
        }
        keywords = own | given
        if not self.calibrated:
            keywords.pop("usage", None)
        if keywords.get("target") is None:
            require_positive("budget", keywords["budget"])
            keywords["target"] = self.target_in(keywords["budget"])
        return keywords
