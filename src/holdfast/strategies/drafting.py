"""One summary: from what would be archived to a plan that shows what a model wrote, held against the log (H3)."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

import msgspec

from ..ledger import Notebook, Sheet, by_folder, carried, fitting, task_in
from ..ledger import Writer as PageWriter
from ..messages import Json
from ..references import citation
from ..summaries import Draft, Material, Transcript, checked, readable, sized, transcript_of, verified
from ..tokens import tokens_in
from ..view import Plan, Request
from .earlier_summary import earlier_summary
from .reading import earlier_ledger, everything_said, places, text_of

if TYPE_CHECKING:
    from .summary import Summary

ROOM = 16_000
"""Tokens that a summary and what is put back may take where no target says it."""
_LEAST_ROOM = 1_000
_SUMMARY = 0.6
"""What part of the room is the summary's; what it leaves is for what it lost."""
_CARRIED = 60_000
"""Characters of lines that go along to the next round."""
_WORTH_IT = 200
"""Fewer tokens of lines help nobody."""
_LINES = 0.2
"""Lines to have at hand are at most this part of what is archived."""
_FILES = 4_000
"""Characters of files that a model is told by name."""


class Drafting:
    """One summary in the making: what it is made of, and what is made of the answer."""

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
        task = task_in(self.ledger.users)
        self.material = Material(
            conversation=self._told(range(view.leading, cut)),
            upcoming=self._told(range(cut, min(len(view.messages), cut + summary.overlap))),
            previous=self.previous,
            state=view.checkpoint.carry.state,
            task=readable(task.text) if task else "",
            task_place=task.place if task else 0,
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
        ours = {index for index in (*view.synthetic, *view.fillers) if "source" not in self._body(index)}
        told = [index for index in indexes if index not in ours]
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
        return tokens_in(self.request.view.gauge.estimator, text)

    @cached_property
    def _pages(self) -> PageWriter:
        return PageWriter(self.notebook, citation, self.room)

    @cached_property
    def _notes(self) -> Sheet:
        return Sheet(self._pages)

    def _notes_on(self, characters: int) -> str:
        return readable(self._notes.write(characters).text)

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
        sample = self._pages.sample(left)
        characters = int(left * len(sample) / max(1, self._tokens(sample)))

        def lines(room: int) -> str:
            return readable(self._pages.rest(room, visible, staying))

        return "\n\n".join(filter(None, (shown, sized(lines, characters, left, self._tokens))))

    def _staying(self) -> set[int]:
        """Of what would be archived, what stays visible."""
        staying = {*self.request.staying(self.chosen.cut), *self.chosen.preamble}
        return staying.difference(self.request.view.synthetic)

    def _visible(self) -> str:
        return "\n".join(text_of(self.request.messages[index]) for index in sorted(self._staying()))

    def _history(self) -> str:
        """All that a summary may name."""
        said = everything_said(self.request, self.ledger)
        return "\n".join([self.previous, self.request.instructions or "", said])

    def _carried(self, characters: int) -> Json:
        ledger = carried(self.ledger, self.notebook.named, self._pages.worth, characters)
        return cast(Json, msgspec.to_builtins(ledger))
