"""Tokens and money that a chat has used: of its session and of this run of the program, by model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ..agent.events import AgentEvent, ReplyStored
from ..compaction import Cost
from ..context.events import Event, EventKind
from ..hooks.events import CompactionCompleted
from ..tokens import Usage
from ..tokens.catalog import price_of

if TYPE_CHECKING:
    from .chat import Chat


class ModelCost(msgspec.Struct, frozen=True):
    """Calls of one model."""

    model: str
    calls: int = 0
    usage: Usage = Usage()
    """`input` does not count cached tokens."""
    price: float | None = 0.0
    """USD by the catalog; None if a price is unknown."""

    def plus(self, usage: Usage, price: float | None, calls: int = 1) -> ModelCost:
        total = Usage(*(getattr(self.usage, name) + getattr(usage, name) for name in Usage.__struct_fields__))
        known = None if self.price is None or price is None else self.price + price
        return ModelCost(self.model, self.calls + calls, total, known)


class CostReport(msgspec.Struct, frozen=True):
    """Costs by model; summaries of compactions are counted apart."""

    session: tuple[ModelCost, ...]
    session_compactions: tuple[ModelCost, ...]
    run: tuple[ModelCost, ...]
    run_compactions: tuple[ModelCost, ...]
    imported: tuple[ModelCost, ...] = ()
    """What another tool used in the session before it was imported."""


class CostTotals:
    """Adds up calls by model."""

    def __init__(self) -> None:
        self._by_model: dict[str, ModelCost] = {}

    def add_reply(self, usage: Usage, model: str) -> None:
        self._put(model, usage, price_of(usage, model), 1)

    def add_compaction(self, cost: Cost | None, model: str) -> None:
        if cost is not None and cost.calls:
            self._put(model, cost.usage, cost.price, cost.calls)

    def _put(self, model: str, usage: Usage, price: float | None, calls: int) -> None:
        known = self._by_model.get(model) or ModelCost(model)
        self._by_model[model] = known.plus(usage, price, calls)

    @property
    def models(self) -> tuple[ModelCost, ...]:
        return tuple(self._by_model.values())


class CostMeter:
    """Counts the calls of this run of the program, in all of its sessions."""

    def __init__(self) -> None:
        self._replies, self._compactions = CostTotals(), CostTotals()

    def handle_event(self, event: AgentEvent) -> None:
        match event:
            case ReplyStored(usage=Usage() as usage):
                self._replies.add_reply(usage, event.model)
            case CompactionCompleted():
                self._compactions.add_compaction(event.cost, event.summarizer or "")

    async def report(self, chat: Chat) -> CostReport:
        """Returns the costs of the chat's session, from its log, and of this run."""
        record = await chat.sessions.get(chat.record.id)
        events = await chat.sessions.events(record.id)
        own = [event for event in events if event.seq > record.parent_seq]
        replies, compactions, imported = _session_totals(own, record.model or chat.model.name)
        return CostReport(
            replies.models, compactions.models, self._replies.models, self._compactions.models, imported.models
        )


def _session_totals(events: Iterable[Event], model: str) -> tuple[CostTotals, CostTotals, CostTotals]:
    """Adds up the usage that the log holds; replies of an older version are those of the session's first model."""
    replies, compactions, imported = CostTotals(), CostTotals(), CostTotals()
    for event in events:
        match event.kind, event.body:
            case EventKind.MESSAGE, {"usage": usage} if "." not in event.id:  # a later piece of the same reply has one
                totals = imported if event.body.get("foreign_usage") else replies
                totals.add_reply(msgspec.convert(usage, Usage), event.body.get("model") or model)
            case EventKind.COMPACTION, {"cost": dict() as cost}:
                compactions.add_compaction(msgspec.convert(cost, Cost), "")
    return replies, compactions, imported
