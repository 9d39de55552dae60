"""The request: what triggers and strategies see of one context, and the limits of its compaction."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Self

from ..messages import FormatRules, Message
from .plan import Plan
from .view import View


class Request:
    """A snapshot of one context, as triggers and strategies see it. Everything a trigger reads is constant work."""

    def __init__(
        self,
        view: View,
        *,
        budget: int | None = None,
        threshold: int | None = None,
        target: int | None = None,
        gap: int = 0,
        session_id: str | None = None,
        instructions: str | None = None,
        summarizer_window: int | None = None,
        has_summarizer: bool = True,
    ) -> None:
        self.view = view
        """The context: its messages, their sizes, and what was carried from earlier rounds."""
        self.budget = budget
        """Tokens that the context must not exceed."""
        self.threshold = threshold
        """Size above which an automatic compaction is due."""
        self.target = target
        """Size to compact down to."""
        self.gap = gap
        """Tokens appended between two automatic compactions, while the budget is not exceeded."""
        self.session_id = session_id
        self.instructions = instructions
        """The user's instructions for the summary."""
        self.summarizer_window = summarizer_window
        """Context window of the summarizer in tokens, if known."""
        self.has_summarizer = has_summarizer
        """False without a summarizer: a missing summary is then not a failure."""

    def at(self, plan: Plan) -> Self:
        """Returns the same request after a plan, for the next stage."""
        request = copy(self)
        request.plan, request.view = plan, plan.view
        return request

    @cached_property
    def plan(self) -> Plan:
        """The context as it is: every change of a strategy starts from it."""
        return Plan.of(self.view)

    def reachable(self, target: int) -> int:
        """Returns a target, lifted by what unread results take of it beyond half of the room for messages."""
        plan = self.plan
        if not plan.unread:
            return target
        room = max(target // 2, target - plan.fixed_tokens() + plan.unread_tokens)
        lifted = target + max(0, plan.unread_tokens - room // 2)
        return lifted if self.budget is None else max(target, min(self.budget, lifted))

    @property
    def lane(self) -> str | None:
        """The lane to compact; None is the root."""
        return self.view.lane

    @property
    def rules(self) -> FormatRules:
        """Rules of the context's wire format."""
        return self.view.rules

    @property
    def messages(self) -> list[Message]:
        """The live messages."""
        return self.view.messages

    @property
    def tokens(self) -> int:
        """Size of the context in tokens."""
        return self.view.tokens

    @property
    def turn_count(self) -> int:
        """Number of visible user messages."""
        return self.view.turn_count

    @property
    def event_count(self) -> int:
        """Number of events that a window counts."""
        return self.view.event_count

    @property
    def notes(self) -> list[Message]:
        """Notes and summaries shown now, written by Holdfast or a provider."""
        head = [shown.message for shown in self.view.head if shown.kind == "note"]
        return head + [self.view.messages[index] for index in self.view.synthetic]
