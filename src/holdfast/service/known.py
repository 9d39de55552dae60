"""All that is known of a session, for a writer who tells it elsewhere: what it shows, and notes on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ..events import Kind
from ..ledger import Ledger, Notebook, Sheet, Writer, clipped
from ..ledger.lines import Line
from ..messages import Message, decode_one, is_framed
from ..references import citation
from ..stores import Slice
from ..strategies.blend_memory import remembered
from ..strategies.earlier_summary import earlier_summary
from ..strategies.reading import earlier_ledger, everything_said, places
from ..summaries import Style, Transcript, readable, transcript_of
from ..summaries.memory import render
from ..tokens import tokens_in
from ..view import Request
from .live import LiveSession

_OPENING = 20
"""Events of a log among which the first words of the user are looked for."""
_TASK = 4_000
_PAGE = 2_000
"""Tokens that notes have, about."""


async def task_of(live: LiveSession) -> Line | None:
    """The user's first message, from the log (L7), if there is one."""
    for event in await live.store.read(live.id, Slice(kinds=(Kind.MESSAGE,), limit=_OPENING)):
        message = decode_one(event.body["message"], event.body.get("format"))
        if message.role == "user" and message.text.strip() and not (event.body.get("synthetic") or is_framed(message)):
            return Line(clipped(readable(message.text), _TASK), "user", "", event.seq, 0, 0)
    return None


class Known:
    """What there is to tell."""

    def __init__(self, request: Request, task: Line | None) -> None:
        self._request = request
        self.task = task.text if task else ""
        view, notes = request.view, request.notes
        earlier = earlier_ledger(request, notes)
        self.noted = bool(earlier.users or earlier.lines)
        """Are there notes on what is archived?"""
        self.previous = readable(view.checkpoint.summary or ("" if self.noted else earlier_summary(request, notes)))
        self.memory = readable(render(remembered(view)))
        first = [(one.message, view.events[one.source].seq) for one in view.head if one.source in view.events]
        live = list(zip(view.messages, places(request, earlier.archived), strict=True))
        restored = {event.seq for event in view.events.values() if "source" in event.body}
        self._shown = [one for one in (*first, *live) if not is_framed(one[0]) or one[1] in restored]
        self.notebook = Notebook(earlier)
        self.notebook.read(*_apart(live if view.checkpoint.carry.ledger else [*first, *live]))
        if task is not None and all(line.place != task.place for line in self.notebook.users):
            self.notebook.users.insert(0, task)

    @cached_property
    def ledger(self) -> Ledger:
        return self.notebook.ledger()

    @cached_property
    def pages(self) -> Writer:
        return Writer(self.notebook, citation, _PAGE)

    @cached_property
    def _sheet(self) -> Sheet:
        return Sheet(self.pages)

    def conversation(self, style: Style) -> Transcript:
        """What the context shows, without notes of ours: those are told apart."""
        return transcript_of(*_apart(self._shown), style)

    def notes(self, characters: int) -> str:
        """So many characters of notes on all of it."""
        return readable(self._sheet.write(characters).text.strip())

    def history(self) -> str:
        """All that anybody ever said, as far as it is known here."""
        return "\n".join([self.task, self.previous, everything_said(self._request, self.ledger)])

    def tokens(self, text: str) -> int:
        return tokens_in(self._request.view.gauge.estimator, text)


def _apart(told: Sequence[tuple[Message, int]]) -> tuple[list[Message], list[int]]:
    return [message for message, _ in told], [place for _, place in told]
