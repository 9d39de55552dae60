"""Results of compactions, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import msgspec

from ..context import Checkpoint
from ..context.events import Event
from ..errors import Outcome
from ..messages import Json
from ..messages.json_text import decodable
from ..tokens import Usage
from ..tokens.catalog import Prices, Ratios
from .policy import Bounds

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # type checkers bring it: a plain `CompactionResult` is one of any messages

    from ..types import MessageLike

    MessageT = TypeVar("MessageT", bound=MessageLike, default=Any)
else:
    from typing import TypeVar

    MessageT = TypeVar("MessageT")


@decodable
class Cost(msgspec.Struct, frozen=True, omit_defaults=True):
    """Cost and savings of a compaction; recorded with it. Prices in USD."""

    calls: int = 0
    """Model calls made to write the summary."""
    usage: Usage = Usage()
    """Token usage of those calls together."""
    price: float | None = None
    """Price of those calls; None if a price is unknown."""
    saved_per_call: int = 0
    """Tokens that each later call no longer sends."""
    cached: float = 0.0
    """Fraction of the new prompt still in the provider's prompt cache: everything before the first change."""
    rewritten: int = 0
    """Tokens of the new prompt that must be written to the cache again."""
    pays_after: int | None = None
    """Later calls until the savings exceed the cost: 0 if it was free, None if never."""


def cost_of(
    usage: Sequence[Usage],
    prices: Prices | None,
    tokens_before: int,
    tokens_after: int,
    stays_cached: int,
    *,
    summarizer: Prices | None = None,
    calls: int = 0,
) -> Cost:
    """Computes the cost of one compaction from the usage of its model calls and the sizes before and after.

    `prices` are those of the conversation's model, `summarizer` those of the summary's model if it is another.
    `stays_cached` is the number of tokens before the first change of the prompt; `calls` the number of calls made,
    of which some may not have reported usage.
    """
    spent = _sum_usage(usage)
    stays = min(max(stays_cached, 0), tokens_after)
    saved, rewritten = max(0, tokens_before - tokens_after), tokens_after - stays
    writer = summarizer or prices
    ratios = _ratios(prices)
    paid = _ratios(writer).input_equivalent(spent) * _price_ratio(writer, prices) + rewritten * (
        ratios.write - ratios.read
    )
    return Cost(
        calls=max(calls, len(usage)),
        usage=spent,
        price=(writer or Prices()).price(spent),
        saved_per_call=saved,
        cached=round(stays / tokens_after, 4) if tokens_after else 0.0,
        rewritten=rewritten,
        pays_after=_break_even_calls(paid, saved * ratios.read),
    )


def _sum_usage(usage: Sequence[Usage]) -> Usage:
    return Usage(*(sum(getattr(one, name) for one in usage) for name in Usage.__struct_fields__))


def _ratios(prices: Prices | None) -> Ratios:
    return Ratios() if prices is None else prices.ratios


def _price_ratio(writer: Prices | None, prices: Prices | None) -> float:
    """Returns the input price of the summary's model relative to the conversation's; 1 if unknown."""
    if writer is None or prices is None or writer.input is None or not prices.input:
        return 1.0
    return writer.input / prices.input


def _break_even_calls(paid: float, saved: float) -> int | None:
    if paid <= 0:
        return 0
    return ceil(paid / saved) if saved > 0 else None


class Partition(NamedTuple):
    """The events before a compaction, by what became of them."""

    kept: list[Event]
    archived: list[Event]
    edited: list[Event]


_SOURCES = frozenset({"_messages", "_partition", "_checkpoint"})
"""Attributes of a result from which its lazy values are computed."""


class CompactionResult(Generic[MessageT]):
    """Result of a compaction; `messages` is always the context to send next, whatever the outcome.

    `MessageT` is the type of the messages that came in: `result.messages` is a list of it.
    """

    def __init__(
        self,
        *,
        messages: Callable[[], list[MessageT]],
        outcome: Outcome,
        partition: Callable[[], Partition],
        tokens_before: int,
        tokens_after: int,
        tokens_saved: int | None = None,
        checkpoint: Callable[[], Checkpoint | None],
        why: str = "",
        strategy: str = "",
        fallback: str = "",
        summary: str | None = None,
        remarks: tuple[str, ...] = (),
        cost: Cost | None = None,
        round: int = 0,
        duration: float = 0.0,
        format: str | None = None,
        version: int | None = None,
        policy: Json,
        bounds: Bounds,
    ) -> None:
        self.outcome = outcome
        self.tokens_before = tokens_before
        self.tokens_after = tokens_after
        self._tokens_saved = tokens_saved
        self.why = why
        """The reason if nothing changed or the target was missed."""
        self.strategy = strategy
        """Name of the strategy that made the plan; stages are joined by +."""
        self.fallback = fallback
        """Fallback used because the model failed: `ledger` or `truncation`; else empty."""
        self.summary = summary
        """Summary written by the model, as the next round receives it."""
        self.remarks = remarks
        """Remarks for the user: restored facts, omitted input, hallucinated names."""
        self.cost = cost
        """Cost, savings per call, and calls until it has paid for itself."""
        self.round = round
        self.duration = duration
        """Seconds."""
        self.format = format
        self.version = version
        """The session's version after the commit."""
        self.policy = policy
        """The policy as plain data: name of the preset, its arguments, and what was changed by keywords."""
        self.bounds = bounds
        """Its numbers for this context: limit, threshold, target, and gap between two automatic compactions."""
        self._messages = messages
        self._checkpoint = checkpoint
        self._partition = partition

    @cached_property
    def messages(self) -> list[MessageT]:
        """The context to send, in the format of the input and valid for it: dicts, or objects of its framework."""
        return self._messages()

    @cached_property
    def _parts(self) -> Partition:
        return self._partition()

    @property
    def kept(self) -> list[Event]:
        """Events that are visible afterwards; without a session, one for each message of the input."""
        return self._parts.kept

    @property
    def archived(self) -> list[Event]:
        """Events newly removed from the context; they stay in the log."""
        return self._parts.archived

    @property
    def edited(self) -> list[Event]:
        """The kept events whose content was partly cleared."""
        return self._parts.edited

    @property
    def removed(self) -> int:
        """Number of archived events (or messages)."""
        return len(self.archived)

    @property
    def tokens_saved(self) -> int:
        """Tokens before minus tokens after, or as the strategy's own estimator counts both; never negative."""
        return self._tokens_saved if self._tokens_saved is not None else max(0, self.tokens_before - self.tokens_after)

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint to pass to the next call as `previous=`; computed on first access."""
        return self._checkpoint()

    def __getstate__(self) -> dict[str, Any]:
        """Returns the values, lazy ones included, so that a result can be pickled."""
        values = {name: getattr(self, name) for name in ("messages", "_parts", "checkpoint")}
        return {name: value for name, value in vars(self).items() if name not in _SOURCES} | values

    def __repr__(self) -> str:
        return (
            f"CompactionResult({self.outcome.value}, {self.tokens_before} -> {self.tokens_after} tokens, "
            f"{len(self.kept)} kept, {self.removed} archived)"
        )
