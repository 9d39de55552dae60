"""Request, Plan and Skip: the input and the output of triggers and strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ..errors import Outcome
from ..messages import FormatRules, Json, Message, is_interrupted, rules_for
from ..tokens import Estimator
from .checkpoint import Edit
from .token_sums import TokenSums
from .view import HeadMessage, View


class Plan(msgspec.Struct, frozen=True):
    """A proposed compaction: what to archive, and what to show instead. Indices are those of the live messages.

    System messages and pins are always kept, and so is the newest user message unless `archives_newest`.
    """

    cut: int
    """Live messages before this index are archived."""
    notes: tuple[Message, ...] | None = None
    """New notes or summaries for the head; None keeps the earlier ones."""
    notes_last: bool = False
    """Place the notes after the rest of the head instead of before it."""
    archives_newest: bool = False
    """Archive the newest user message with its reply: alone after the notes it would look like an open request."""
    synthetic_first: bool = False
    """Move synthetic events after the cut into the head, or replace them by `notes`."""
    preamble: tuple[int, ...] = ()
    """Live messages before the cut that stay visible."""
    dropped_from_head: frozenset[str] = frozenset()
    """Ids of events to remove from the head."""
    kept_in_head: frozenset[str] = frozenset()
    """Ids of events in the head, shown for a split turn, to keep as preamble now that the turn is over."""
    edits: Mapping[int, tuple[Edit, ...]] = {}
    """Edits of live messages, and of the newest user message if it lies before the cut."""
    summary: str | None = None
    """Text that the summarizer wrote, passed back to it in the next round."""
    target: int | None = None
    """Token limit of the result, where always-kept messages leave too little of the strategy's own target."""
    strategy: str = ""
    """Name of the strategy that made the plan."""
    estimator: Estimator | None = None
    """Counts the tokens that the result reports as saved; None is the session's own count."""
    fallback: str = ""
    """Strategy used because the summarizer failed."""
    remarks: tuple[str, ...] = ()
    """Remarks for the user on how the plan was made."""
    ledger: Callable[[], Json] | None = None
    """Returns the notes on all archived messages, for the next round; None keeps the earlier ones."""
    state: Json | None = None
    """State written by the summarizer, encoded by the summaries package."""
    memory: Json | None = None
    """Memory block, encoded by the summaries package."""


class Skip(msgspec.Struct, frozen=True):
    """No plan: the outcome and the reason."""

    outcome: Outcome
    why: str = ""
    remarks: tuple[str, ...] = ()


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

    def with_view(self, view: View) -> Request:
        """Returns the same request for another view."""
        return Request(
            view,
            budget=self.budget,
            threshold=self.threshold,
            target=self.target,
            gap=self.gap,
            session_id=self.session_id,
            instructions=self.instructions,
            summarizer_window=self.summarizer_window,
            has_summarizer=self.has_summarizer,
        )

    @property
    def lane(self) -> str | None:
        """The lane to compact; None is the root."""
        return self.view.lane

    @property
    def rules(self) -> FormatRules:
        """Rules of the context's wire format."""
        return rules_for(self.view.format)

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

    def stays_in_head(self, shown: HeadMessage, cut: int) -> bool:
        """Whether this head message survives the cut: a split turn's only until the next turn, a pin until unpinned."""
        if shown.kind == "pin" and shown.source in self.view.events and shown.source not in self.view.pins:
            return False
        return not self.is_past_turn(shown, cut) or shown.source in self.view.pins

    def is_past_turn(self, shown: HeadMessage, cut: int) -> bool:
        """Whether this is the user message of a split turn that this cut archives."""
        return shown.kind == "turn" and bool(cut and self.view.turns) and cut >= self.view.turns[0]

    def newest_turn(self, cut: int) -> HeadMessage | int | None:
        """The newest user message if it lies before this cut: its live index, or its head message."""
        turns = self.view.turns
        if turns:
            return turns[-1] if cut > turns[-1] else None
        return self.view.split_turn

    def is_answered(self, cut: int) -> bool:
        """Whether this cut archives the final reply to the newest user message."""
        messages = self.view.messages
        if cut < len(messages) or (newest := self.newest_turn(cut)) is None:
            return False
        since = messages[newest + 1 :] if isinstance(newest, int) else messages
        last = next((message for message in reversed(since) if message.role != "system"), None)
        if last is None or last.role != "assistant" or is_interrupted(last):
            return False
        return not last.calls and bool(last.text.strip())

    def tokens_after_cut(self, cut: int, extra: int = 0, sums: TokenSums | None = None) -> int:
        """Tokens of the context that this cut would leave, plus `extra` units of notes."""
        view, sums = self.view, sums or self.view.token_sums
        units = sums.overhead + extra + sums.cumulative[-1] - sums.cumulative[cut]
        for shown, size in zip(view.head, sums.head, strict=True):
            if self.stays_in_head(shown, cut):
                units += size
        for index in self.kept_before(cut):
            units += sums.cumulative[index + 1] - sums.cumulative[index]
        return view.tokens_of(units, sums)

    def kept_before(self, cut: int, *, newest: bool = True) -> list[int]:
        """Indices before this cut that are kept: system messages, notes, pins and, by default, the newest turn's."""
        view = self.view
        kept = set(view.systems_before(cut))
        kept.update(index for index in view.synthetic if index < cut)
        if view.pins:
            kept.update(index for index in range(cut) if view.ids[index] in view.pins)
        if newest and isinstance(turn := self.newest_turn(cut), int):
            kept.add(turn)
        return sorted(kept)
