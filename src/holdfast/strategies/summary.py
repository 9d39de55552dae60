"""Summaries by a model: what all of them share (H3).

Something chooses what stays, a writer asks the model, the answer is held against the log, and a rendering shows
it. What a model does not do, the last resort does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..budget import not_negative, positive
from ..calls import Failure, Steps
from ..errors import InvalidInput
from ..outcome import Outcome
from ..summaries import Draft, Material, Rendering, Style
from ..view import Plan, Request, Skip
from .drafting import Drafting
from .ladder import LAST_RESORTS, LastResort, or_else
from .steps import steps

if TYPE_CHECKING:
    from ..types import Strategy


class SummaryWriter(Protocol):
    """Asks a model for a summary of some material."""

    @property
    def style(self) -> Style:
        """How the history is written out for it."""
        ...

    def write(self, material: Material) -> Steps[Draft | Failure]: ...


class Summary:
    """Archive what `keep` lets go, and show what a model writes about it instead."""

    min_saving = 0.10

    def __init__(
        self,
        keep: Strategy,
        writer: SummaryWriter,
        shown_as: Rendering,
        *,
        by: str = "summary",
        max_tokens: int | None = None,
        overlap: int = 0,
        verify: bool = True,
        at_hand: int = 0,
        last_resort: LastResort = "ledger",
        on_failure: Callable[[Request], object] | None = None,
    ) -> None:
        """`at_hand` is how many tokens of errors, files, commands and lines may follow the summary, where there is
        room: what a later step would have to look up."""
        if max_tokens is not None:
            positive("max_tokens", max_tokens)
        not_negative("overlap", overlap)
        not_negative("at_hand", at_hand)
        if last_resort not in LAST_RESORTS:
            raise InvalidInput(f"last_resort is one of {', '.join(LAST_RESORTS)}, not {last_resort!r}.")
        self.keep = keep
        self.writer = writer
        self.shown_as = shown_as
        self.by = by
        self.max_tokens = max_tokens
        self.overlap = overlap
        self.verify = verify
        self.at_hand = at_hand
        self.last_resort = last_resort
        self.on_failure = on_failure

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Steps[Plan | Skip]:
        return or_else(self._summarise(request), request, self.last_resort, self.max_tokens, self.on_failure)

    def _summarise(self, request: Request) -> Steps[Plan | Skip]:
        if self.max_tokens is not None:
            request = _aiming_at(request, self.max_tokens)
        if _nothing_new(request):
            return Skip(Outcome.NOTHING_TO_COMPACT, "nothing was said since the last compaction")
        chosen = yield from steps(self.keep, request)
        if isinstance(chosen, Skip):
            return chosen
        work = Drafting(self, request, chosen)
        if not work.material.conversation.entries:
            return Skip(Outcome.NOTHING_TO_COMPACT, "nothing that would be archived says anything")
        draft = yield from self.writer.write(work.material)
        if isinstance(draft, Failure):
            return Skip(Outcome.SUMMARY_FAILED, f"{draft.kind}: {draft.why}" if draft.why else draft.kind)
        return work.plan(draft)


def _aiming_at(request: Request, target: int) -> Request:
    """The same request with a target of its own, so that what is kept leaves room for a summary within it."""
    aiming = request.over(request.view)
    aiming.target = target if request.budget is None else min(target, request.budget)
    return aiming


def _nothing_new(request: Request) -> bool:
    """Is all that is visible what the last compaction left, and within its limit?"""
    view, limit = request.view, request.target
    settled = view.checkpoint_id is not None and view.settled >= len(view.messages)
    return settled and (limit is None or request.tokens <= limit)
