"""Summaries by a model: what all of them share (H3).

Something chooses what stays, a writer asks the model, the answer is held against the log, and a rendering shows
it. What a model does not do, the last resort does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from ..budget import not_negative, positive
from ..calls import Failure, Steps
from ..errors import InvalidInput
from ..ledger import Notebook, by_folder, carried
from ..ledger import Writer as PageWriter
from ..messages import Json, Message
from ..references import citation
from ..summaries import Draft, Material, Rendering, Style, Transcript, checked, readable, transcript_of, verified
from ..types import Outcome
from ..view import Plan, Request, Skip
from .earlier_summary import earlier_summary
from .ladder import LAST_RESORTS, LastResort, or_else
from .reading import earlier_ledger, places, text_of
from .steps import steps

if TYPE_CHECKING:
    from ..types import Strategy

ROOM = 16_000
"""Tokens that a summary and what is put back may take where no target says it."""
_LEAST_ROOM = 1_000
_SUMMARY = 0.6
"""What part of the room is the summary's; what it leaves is for what it lost."""
_CARRIED = 60_000
"""Characters of lines that go along to the next round."""
_FILES = 4_000


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
        last_resort: LastResort = "ledger",
        on_failure: Callable[[Request], object] | None = None,
    ) -> None:
        if max_tokens is not None:
            positive("max_tokens", max_tokens)
        not_negative("overlap", overlap)
        if last_resort not in LAST_RESORTS:
            raise InvalidInput(f"last_resort is one of {', '.join(LAST_RESORTS)}, not {last_resort!r}.")
        self.keep = keep
        self.writer = writer
        self.shown_as = shown_as
        self.by = by
        self.max_tokens = max_tokens
        self.overlap = overlap
        self.verify = verify
        self.last_resort = last_resort
        self.on_failure = on_failure

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Steps[Plan | Skip]:
        return or_else(self._summarise(request), request, self.last_resort, self.max_tokens, self.on_failure)

    def _summarise(self, request: Request) -> Steps[Plan | Skip]:
        if _nothing_new(request, self.max_tokens):
            return Skip(Outcome.NOTHING_TO_COMPACT, "nothing was said since the last compaction")
        chosen = yield from steps(self.keep, request)
        if isinstance(chosen, Skip):
            return chosen
        work = _Work(self, request, chosen)
        if not work.material.conversation.entries:
            return Skip(Outcome.NOTHING_TO_COMPACT, "nothing that would be archived says anything")
        draft = yield from self.writer.write(work.material)
        if isinstance(draft, Failure):
            return Skip(Outcome.SUMMARY_FAILED, f"{draft.kind}: {draft.why}" if draft.why else draft.kind)
        return work.plan(draft)


def _nothing_new(request: Request, max_tokens: int | None) -> bool:
    """Is all that is visible what the last compaction left, and within its limit?"""
    view, limit = request.view, max_tokens or request.target
    settled = view.checkpoint_id is not None and view.settled >= len(view.messages)
    return settled and (limit is None or request.tokens <= limit)


class _Work:
    """One summary in the making."""

    def __init__(self, summary: Summary, request: Request, chosen: Plan) -> None:
        self.summary, self.request, self.chosen = summary, request, chosen
        view, cut = request.view, chosen.cut
        self.notes = request.notes
        earlier = earlier_ledger(request, self.notes)
        self.numbers = places(request, earlier.archived)
        self.notebook = Notebook(earlier)
        self.notebook.read(view.messages[:cut], self.numbers[:cut])
        self.ledger = self.notebook.ledger()
        self.previous = earlier_summary(request, self.notes)
        self.room = self._room()
        self.material = Material(
            conversation=self._told(range(view.leading, cut)),
            upcoming=self._told(range(cut, min(len(view.messages), cut + summary.overlap))),
            previous=self.previous,
            state=view.checkpoint.carry.state,
            task=readable(self.ledger.users[0].text) if self.ledger.users else "",
            files=readable("\n".join(by_folder(self.ledger.files))[:_FILES]),
            round=view.checkpoint.carry.round + 1,
            instructions=readable(request.instructions or ""),
            room=max(1, int(self.room * _SUMMARY)),
            reads=request.reads,
            measure=self._tokens,
            notes_on=self._notes_on,
        )

    def _told(self, indexes: range) -> Transcript:
        """What is told of these messages; earlier notes are not, since the earlier summary is given apart."""
        view = self.request.view
        notes = {index for index in view.synthetic if "source" not in self._body(index)}
        told = [index for index in indexes if index not in notes and index not in view.fillers]
        return transcript_of(
            [view.messages[index] for index in told], [self.numbers[index] for index in told], self.summary.writer.style
        )

    def _body(self, index: int) -> Json:
        event = self.request.view.events.get(self.request.view.ids[index]) if self.request.view.events else None
        return event.body if event is not None else {}

    def _room(self) -> int:
        """Tokens for the summary and what is put back."""
        limit = self.summary.max_tokens or self.request.target
        if limit is None:
            return ROOM
        measure = self.request.view.gauge.estimator.measure
        staying = [self.request.messages[index] for index in self.chosen.preamble]
        units = sum(map(measure, staying)) - sum(map(measure, self.notes))
        return max(_LEAST_ROOM, min(ROOM, limit - self.request.cost(self.chosen.cut, units)))

    def _tokens(self, text: str) -> int:
        estimator = self.request.view.gauge.estimator
        return estimator.tokens(estimator.measure_text(text))

    @cached_property
    def _pages(self) -> PageWriter:
        return PageWriter(self.notebook, citation)

    def _notes_on(self, characters: int) -> str:
        return readable(self._pages.write(characters, "", (), (), "").text)

    def plan(self, draft: Draft) -> Plan:
        held = checked(draft.text, self._history)
        remarks = (*draft.remarks, *held.remarks)
        shown = draft.shown.replace(draft.text, held.text) or held.text
        if self.summary.verify:
            left = self.room - self._tokens(shown)
            found = verified(shown, self._visible(), self.ledger, left, self._tokens)
            shown = f"{shown}\n\n{found.section}" if found.section else shown
            remarks = (*remarks, *found.remarks)
        return msgspec.structs.replace(
            self.chosen,
            notes=self.summary.shown_as(shown),
            summary=held.text,
            by=self.summary.by,
            remarks=remarks,
            ledger=partial(self._carried, _CARRIED),
            state=draft.state,
        )

    def _visible(self) -> str:
        """What stays visible of all that would be archived."""
        staying = {*self.request.staying(self.chosen.cut), *self.chosen.preamble}
        staying.difference_update(self.request.view.synthetic)
        return "\n".join(text_of(self.request.messages[index]) for index in sorted(staying))

    def _history(self) -> str:
        """All that a summary may name."""
        view = self.request.view
        messages: list[Message] = [*(shown.message for shown in view.head), *view.messages]
        told = [text_of(message) for message in messages] + [call.json for m in messages for call in m.calls]
        return "\n".join([self.previous, self.request.instructions or "", self._noted(), *view.beside, *told])

    def _noted(self) -> str:
        """All that earlier rounds noted, in their words."""
        ledger = self.ledger
        lines = [*ledger.users, *ledger.closings, *ledger.errors, *ledger.lines]
        subjects = [*(file.path for file in ledger.files), *(command.text for command in ledger.commands)]
        return "\n".join([*(line.text for line in lines), *subjects, *ledger.names, *(step for step, _ in ledger.plan)])

    def _carried(self, characters: int) -> Json:
        ledger = carried(self.ledger, self.notebook.named, self._pages.worth, characters)
        return cast(Json, msgspec.to_builtins(ledger))
