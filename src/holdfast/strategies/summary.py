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
from ..ledger import Notebook, by_folder, carried, fitting
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
_WORTH_IT, _TRIES = 200, 6
"""Fewer tokens of lines help nobody."""
_LINES = 0.2
"""Lines to have at hand are at most this part of what is archived."""
_FILES = 4_000
"""Characters of files that a model is told by name."""


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
        work = _Work(self, request, chosen)
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
            task_place=self.ledger.users[0].place if self.ledger.users else 0,
            files=readable("\n".join(fitting(by_folder(self.ledger.files), _FILES))),
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
        request, chosen, limit = self.request, self.chosen, self.request.target
        if limit is None:
            return ROOM
        view, gauge = request.view, request.view.gauge
        frame = self.summary.shown_as("")
        units = sum(map(gauge.estimator.measure, frame)) - sum(map(gauge.estimator.measure, self.notes))
        for index in {*chosen.preamble}.difference(request.staying(chosen.cut)):
            units += gauge.sums[index + 1] - gauge.sums[index]
        for shown, size in zip(view.head, gauge.head, strict=True):
            units -= size if shown.source in chosen.forgotten else 0
        return max(_LEAST_ROOM, min(ROOM, limit - request.cost(chosen.cut, units)))

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
        shown = draft.shown.replace(draft.text, held.text, 1) or held.text
        if self.summary.verify:
            left = self.room - self._tokens(shown)
            found = verified(shown, self._visible(), self.ledger, left, self._tokens)
            shown = f"{shown}\n\n{found.section}" if found.section else shown
            remarks = (*remarks, *found.remarks)
        shown = self._with_lines(shown)
        return msgspec.structs.replace(
            self.chosen,
            notes=self.summary.shown_as(shown),
            summary=held.text,
            by=self.summary.by,
            remarks=remarks,
            ledger=partial(self._carried, _CARRIED),
            state=draft.state,
        )

    def _with_lines(self, shown: str) -> str:
        """What is told, and in the room that is left what a later step would have to look up."""
        gauge = self.request.view.gauge
        archived = gauge.estimator.tokens(gauge.sums[self.chosen.cut])
        left = min(self.summary.at_hand, self.room - self._tokens(shown), int(archived * _LINES))
        if left < _WORTH_IT:
            return shown
        kept = range(self.chosen.cut, len(self.request.messages))
        visible = "\n".join([shown, self._visible(), *(text_of(self.request.messages[index]) for index in kept)])
        staying = {self.numbers[index] for index in self._staying()}
        characters = int(left * len(sample) / max(1, self._tokens(sample))) if (sample := self._pages.sample()) else 0
        for _ in range(_TRIES):
            lines = readable(self._pages.rest(characters, visible, staying))
            if self._tokens(lines) <= left:
                return f"{shown}\n\n{lines}" if lines else shown
            characters = int(characters * 0.8)
        return shown

    def _staying(self) -> set[int]:
        """Of what would be archived, what stays visible."""
        staying = {*self.request.staying(self.chosen.cut), *self.chosen.preamble}
        return staying.difference(self.request.view.synthetic)

    def _visible(self) -> str:
        return "\n".join(text_of(self.request.messages[index]) for index in sorted(self._staying()))

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
