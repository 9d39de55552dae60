"""What a trigger and a strategy are asked, and what a strategy may answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ..messages import Json, Message, Profile, profile_for
from ..outcome import Outcome
from .edits import Edit
from .fold import Shown, View
from .gauge import Gauge


class Plan(msgspec.Struct, frozen=True):
    """What to archive and what to show instead. Places are those of the request's live messages.

    System messages, pins and the newest user message stay without being asked for.
    """

    cut: int
    """Live messages before this one are archived."""
    notes: tuple[Message, ...] | None = None
    """New notes or summaries to show first; None keeps the earlier ones."""
    notes_last: bool = False
    """Do the notes stand behind what else is shown first (P21), not before it?"""
    preamble: tuple[int, ...] = ()
    """Live messages before the cut that stay visible."""
    forgotten: frozenset[str] = frozenset()
    """Events that an earlier plan kept visible and this one does not."""
    kept_on: frozenset[str] = frozenset()
    """Events that stood first as a split turn's and stay among the user's words, now that the turn is over."""
    edits: Mapping[int, tuple[Edit, ...]] = {}
    summary: str | None = None
    """What a model wrote, as it goes back to the model in the next round."""
    aim: int | None = None
    """Tokens that the result may have, where what must stay leaves too little of the strategy's target."""
    by: str = ""
    """The strategy that made it."""
    fallback: str = ""
    """What had to stand in for a model that did not answer."""
    remarks: tuple[str, ...] = ()
    """What a person should know about how it came to be."""
    ledger: Callable[[], Json] | None = None
    """Gives the notes on all that is archived, for the next round to go on from; None keeps the earlier ones."""
    state: Json | None = None
    """What a model keeps track of (W9), and the memory block (W11): as their own parts read and write them."""
    memory: Json | None = None


class Skip(msgspec.Struct, frozen=True):
    """No plan, and why."""

    outcome: Outcome
    why: str = ""
    remarks: tuple[str, ...] = ()


class Request:
    """A snapshot of one context to decide about: constant work for every question a trigger asks (H5)."""

    def __init__(
        self,
        view: View,
        *,
        budget: int | None = None,
        target: int | None = None,
        session_id: str | None = None,
        instructions: str | None = None,
        reads: int | None = None,
        asks: bool = True,
    ) -> None:
        self.view = view
        self.budget = budget
        self.target = target
        self.session_id = session_id
        self.instructions = instructions
        """What the person asks the summary to mind (P1)."""
        self.reads = reads
        """The window of the model that will be asked, where it is known."""
        self.asks = asks
        """Is there a model to ask? Where there is none, that it wrote nothing is no failure."""

    def over(self, view: View) -> Request:
        """The same question about another view."""
        return Request(
            view,
            budget=self.budget,
            target=self.target,
            session_id=self.session_id,
            instructions=self.instructions,
            reads=self.reads,
            asks=self.asks,
        )

    @property
    def lane(self) -> str | None:
        return self.view.lane

    @property
    def profile(self) -> Profile:
        return profile_for(self.view.format)

    @property
    def messages(self) -> list[Message]:
        return self.view.messages

    @property
    def tokens(self) -> int:
        return self.view.tokens

    @property
    def turn_count(self) -> int:
        return self.view.turn_count

    @property
    def event_count(self) -> int:
        return self.view.event_count

    @property
    def notes(self) -> list[Message]:
        """Notes and summaries that are shown now, ours and others'."""
        head = [shown.message for shown in self.view.head if shown.kind == "note"]
        return head + [self.view.messages[index] for index in self.view.synthetic]

    def still_first(self, shown: Shown, cut: int) -> bool:
        """Would this of the head stay under a cut here? A split turn goes with the next, a pin when it is let go."""
        if shown.kind == "pin" and shown.source in self.view.events and shown.source not in self.view.pins:
            return False
        return shown.kind != "turn" or not cut or not self.view.turns or cut < self.view.turns[0]

    def newest_turn(self, cut: int) -> Shown | int | None:
        """The newest user message, if this cut would archive it: live (its place) or in the head."""
        turns = self.view.turns
        if turns:
            return turns[-1] if cut > turns[-1] else None
        return self.view.split_turn

    def cost(self, cut: int, extra: int = 0, gauge: Gauge | None = None) -> int:
        """Tokens of the context that a cut here would leave, with this many units of notes beside it."""
        view, gauge = self.view, gauge or self.view.gauge
        units = gauge.fixed + extra + gauge.sums[-1] - gauge.sums[cut]
        for shown, size in zip(view.head, gauge.head, strict=True):
            if self.still_first(shown, cut):
                units += size
        for index in self.staying(cut):
            units += gauge.sums[index + 1] - gauge.sums[index]
        return view.tokens_of(units, gauge)

    def staying(self, cut: int) -> list[int]:
        """Live messages before this cut that stay: system messages, notes, pins, the newest user message."""
        view = self.view
        stay = set(range(min(view.leading, cut)))
        stay.update(index for index in view.synthetic if index < cut)
        if view.pins:
            stay.update(index for index in range(cut) if view.ids[index] in view.pins)
        if isinstance(turn := self.newest_turn(cut), int):
            stay.add(turn)
        return sorted(stay)
