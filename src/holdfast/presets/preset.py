"""A preset: one way to compact, with everything that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from ..budget import positive
from ..calls import Limits
from ..compaction import CompactionResult, acompact, compact

if TYPE_CHECKING:
    from ..types import Strategy, Trigger


def half(window: int) -> int:
    return max(1, window // 2)


def below(limit: Callable[[int], int]) -> Callable[[int], int]:
    """For a preset that compacts at this limit: half the window, or three quarters of the limit if that is less.

    What is compacted down to the limit itself is over it again with the next message.
    """
    return lambda window: max(1, min(half(window), limit(window) * 3 // 4))


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """When to compact, what to keep, what to ask a model, how to show it, and what to do if it fails."""

    name: str
    about: str
    """In a sentence."""
    figures: dict[str, str]
    """Its numbers and rules, in words, as its document has them."""
    trigger_in: Callable[[int], Trigger]
    """The trigger for a window of this many tokens."""
    strategy: Strategy
    target_in: Callable[[int], int] = half
    """What to compact down to in a window of this many tokens."""
    estimator: str | None = None
    """How it counts tokens; None is the real tokenizer."""
    calibrated: bool = False
    """Does it go by the tokens that the provider reports, where it does (P3)?"""
    window: int = 128_000
    """Where the model's is not known."""
    limits: Limits = Limits()

    def compact(self, messages: Iterable[Any], window: int | None = None, **options: Any) -> CompactionResult:
        """`compact` as this preset does it, for a model with this window; your own options win."""
        return compact(messages, **self._options(window, options))

    async def acompact(self, messages: Iterable[Any], window: int | None = None, **options: Any) -> CompactionResult:
        """`acompact` as this preset does it."""
        return await acompact(messages, **self._options(window, options))

    def _options(self, window: int | None, given: dict[str, Any]) -> dict[str, Any]:
        size = self.window if window is None else window
        positive("window", size)
        own: dict[str, Any] = {
            "budget": size,
            "trigger": self.trigger_in(size),
            "strategy": self.strategy,
            "estimator": self.estimator,
            "limits": self.limits,
        }
        options = own | given
        if options.get("target") is None:
            positive("budget", options["budget"])
            options["target"] = self.target_in(options["budget"])
        return options
