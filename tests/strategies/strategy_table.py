"""Every strategy at a limit of n tokens, and helpers to measure results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast import Pipeline, PruneToolResults, SlidingWindow, TokenWindow, Truncate, TurnWindow, compact
from holdfast.messages import decode_all, repair
from holdfast.strategies import KeepFraction, KeepLast
from holdfast.tokens import estimator_for
from holdfast.triggers import always

PROFILES = ("openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk")
CHARS = estimator_for("chars/4")
if TYPE_CHECKING:
    from holdfast.types import Strategy

Messages = list[dict[str, Any]]


class Size(NamedTuple):
    """How much a strategy keeps, in each unit that strategies count in."""

    tokens: int
    messages: int
    turns: int


# The default is the ledger.
STRATEGIES: dict[str, Callable[[Size], Strategy | None]] = {
    "default": lambda size: None,
    "truncate": lambda size: Truncate(max_tokens=size.tokens),
    "sliding": lambda size: SlidingWindow(size.messages),
    "turns": lambda size: TurnWindow(size.turns),
    "tokens": lambda size: TokenWindow(size.tokens),
    "last": lambda size: KeepLast(size.messages),
    "fraction": lambda size: KeepFraction(0.4),
    "prune": lambda size: PruneToolResults(protect=size.tokens // 4, minimum=0),
    "prune+tokens": lambda size: Pipeline(PruneToolResults(size.tokens // 4, minimum=0), TokenWindow(size.tokens)),
}
WINDOWS = ("sliding", "turns", "tokens", "last")
LIMITED = ("default", "truncate", "tokens", "prune+tokens")


def size_of(messages: Messages, profile: str, share: float) -> Size:
    """The size of this share of a history."""
    decoded = decode_all(messages, profile)[0]
    turns = sum(message.role == "user" for message in decoded)
    tokens = tokens_of(repaired(messages, profile), profile)
    return Size(*(max(1, int(share * whole)) for whole in (tokens, len(decoded), turns)))


def tokens_of(messages: Messages, profile: str) -> int:
    return sum(map(CHARS.measure, decode_all(messages, profile)[0]))


def repaired(messages: Messages, profile: str) -> Messages:
    return repair(messages, profile)


def smallest(messages: Messages, profile: str) -> int:
    """Size of the smallest valid context: system messages, newest user message and its unfinished tool loop.

    Results are whole: they are shortened only over the budget.
    """
    options: dict[str, Any] = {"budget": 10**9, "target": 1, "estimator": CHARS, "format": profile}
    whole = compact(messages, strategy=TokenWindow(1), trigger=always, **options)
    return tokens_of(whole.messages, profile)
