"""The ledger strategy: what will be needed later, chosen from the history itself. No model is asked.

A page of notes takes the place of what is archived; behind it the newest messages stand as they are, with
their tool pairs. Where a result among them is too large for the room there is, the lines of it that are worth
most stay.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from typing import cast

import msgspec
from msgspec import structs

from ..budget import positive
from ..ledger import OPENING, Notebook, Page, Sheet, Writer, carried, is_page
from ..messages import Json, Media, Message, ToolResult, framed, media_in_words
from ..references import citation
from ..tokens import tokens_in
from ..view import Edit, Plan, Request, Skip, edited
from .pruning import is_clearable
from .reading import earlier_ledger, newly_archived, places, places_of, text_of
from .settle import archive_before, settle

KEEP_TOKENS = 20_000
PAGE_TOKENS = 16_000
"""Longer notes hold hardly more of what is needed, and nobody reads them."""
_TAIL, _LONG_TAIL, _SHORT = 0.1, 0.2, 500
"""What part of the room the newest messages may take, verbatim; the longer one up to so many tokens, and where there
is more room than notes can use."""
_BESIDE = 0.25
_CROWDED = 0.4
"""More than this part of the room is not for answered calls to take."""
_LARGE = 600
_CUT_SHORT = "[Cut to the lines that matter most; all of it is {}.]"
_BEGUN = " Work on the user's message below has begun."
_CARRIED, _LEAST_CARRIED = 8, 2_000
"""Characters of lines that go along to the next round, for each token of the page, or of one that did not fit."""
_TRIES, _FULL, _CLOSE, _AMPLE, _STEP = 10, 0.99, 0.997, 1.08, 0.8
"""The first try has rather too much room: for less, what was chosen still serves. What changes nothing is no step."""


class KeepLedger:
    """Notes on all that went before, the newest turns verbatim, within the target."""

    def __init__(self, max_tokens: int | None = None, keep_tokens: int = KEEP_TOKENS) -> None:
        if max_tokens is not None:
            positive("max_tokens", max_tokens)
        positive("keep_tokens", keep_tokens)
        self.max_tokens = max_tokens
        self.keep_tokens = keep_tokens

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Plan | Skip:
        limit = self.max_tokens or _limit(request)
        cut = self._cut(request, limit)
        plan = archive_before(request, cut, "ledger")
        if isinstance(plan, Skip):
            if request.tokens <= limit or not any(map(is_page, request.notes)):
                return plan
            plan = Plan(cut, by="ledger")  # nothing to archive, but the notes may be shorter
        return _Draft(request, cut, limit).plan(plan)

    def _cut(self, request: Request, limit: int) -> int:
        """Where the verbatim tail starts: whole turns where there are any, and all of an unanswered call."""
        view, gauge = request.view, request.view.gauge
        end = len(view.messages)
        room = _room(request, limit)
        share = min(self.keep_tokens, _tail(room))

        def fits(cut: int) -> bool:
            return gauge.estimator.tokens(gauge.sums[-1] - gauge.sums[cut]) <= share

        cut = settle(request, bisect_left(range(end + 1), True, key=fits), fits)
        return end if _crowds(request, cut, room) else cut


def _limit(request: Request) -> int:
    """Half of the budget, or of what there is; where what must stay takes most of that, notes go over it."""
    aim = request.target or max(1, request.tokens // 2)
    if request.budget is None:
        return aim
    bare = _bare(request)
    return max(aim, bare + int(min(aim, request.budget - bare) * _BESIDE))


def _bare(request: Request) -> int:
    """Tokens of what stays whatever is archived, without notes: these are written anew."""
    notes = sum(map(request.view.gauge.estimator.measure, request.notes))
    return request.cost(len(request.messages), -notes)


def _room(request: Request, limit: int) -> int:
    """Tokens for notes and the newest messages."""
    return max(0, limit - _bare(request))


def _tail(room: int) -> int:
    """How many tokens the newest messages may take."""
    return max(int(room * _TAIL), min(int(room * _LONG_TAIL), max(_SHORT, room - PAGE_TOKENS)))


def _crowds(request: Request, cut: int, room: int) -> bool:
    """Would the calls of the kept part alone take too much of the room, and may they go, being answered?"""
    kept, gauge = request.messages[cut:], request.view.gauge
    answered = {result.call_id for message in kept for result in message.results}
    waits = any(call.id not in answered for message in kept for call in message.calls)
    if waits or not kept or kept[-1].role != "tool" or request.newest_turn(len(request.messages)) is None:
        return False
    size = sum(gauge.estimator.measure(message) for message in kept if not _is_large(message))
    return gauge.estimator.tokens(size) > _CROWDED * room


class _Draft:
    """One plan in the making: the page is written, measured, and written again until it fits."""

    def __init__(self, request: Request, cut: int, limit: int) -> None:
        view = request.view
        self.request, self.cut, self.limit = request, cut, limit
        self.old_notes = request.notes
        self.other_notes = [message for message in self.old_notes if not is_page(message)]
        earlier = earlier_ledger(request, self.old_notes)
        self.places = places(request, earlier.archived)
        self.count = (view.checkpoint.carry.archived or earlier.archived) + newly_archived(request, cut)
        notebook = Notebook(earlier)
        notebook.read(view.messages[:cut], self.places[:cut])
        self.archived = notebook.ledger()
        notebook.read(view.messages[cut:], self.places[cut:])
        self.writer = Writer(notebook, citation, min(PAGE_TOKENS, _room(request, limit)))
        self.shortened = self._to_shorten()
        staying = [*request.staying(cut), *range(cut, len(view.messages))]
        staying = [index for index in staying if index not in view.synthetic]  # earlier notes are written anew
        whole = [self._beside_cuts(index) for index in staying]
        first = [shown.message for shown in view.head if shown.kind != "note" and request.still_first(shown, cut)]
        whole += first
        self.staying = {self.places[index] for index in staying} | places_of(first, notebook)
        self.visible = "\n".join(text_of(message) for message in whole)

    def _to_shorten(self) -> list[int]:
        """Kept messages of whose results only some lines stay, since the kept part is more than its share."""
        request, end = self.request, len(self.request.messages)
        kept = request.cost(self.cut) - request.cost(end)
        if kept <= _tail(_room(request, self.limit)):
            return []
        return [index for index in range(self.cut, end) if _is_large(request.messages[index])]

    def _cut_parts(self, index: int) -> list[int]:
        """The parts of a message of which only some lines stay."""
        parts = enumerate(self.request.messages[index].parts) if index in self.shortened else ()
        return [place for place, part in parts if isinstance(part, ToolResult) and _is_long(part)]

    def _beside_cuts(self, index: int) -> Message:
        message, cut = self.request.messages[index], self._cut_parts(index)
        kept = tuple(part for place, part in enumerate(message.parts) if place not in cut)
        return structs.replace(message, parts=kept) if cut else message

    def plan(self, without_notes: Plan) -> Plan:
        bare = self._size(Page("", {}), ())
        room = min(PAGE_TOKENS, max(0, self.limit - bare))
        if not room:
            return self._unwritten(without_notes)
        characters, best, sheet = int(room * _AMPLE * self._characters_in_token(room)), None, self._sheet()
        last = Page("", {})
        for _ in range(_TRIES):
            page = sheet.write(characters)
            notes = (*self.other_notes, framed(page.text))
            size = self._size(page, notes)
            used = max(1, size - bare)
            if used <= room:
                best = (page, notes)
                if used >= room * _FULL or characters > 8 * self.request.view.gauge.sums[-1]:
                    break
            change = min(2.0, room * _CLOSE / used)
            characters = int(characters * (_STEP if page == last and used > room else change))
            last = page
        if best is None:
            return self._unwritten(without_notes)
        page, notes = best
        ledger = partial(self._carried, room)
        return Plan(self.cut, notes=notes, edits=self._edits(page), aim=self.limit, by="ledger", ledger=ledger)

    def _unwritten(self, plan: Plan) -> Plan:
        """There is no room for a page now; in a later round there may be."""
        told = "Notes do not fit beside what must stay; what they would say is kept for the next round."
        return structs.replace(plan, remarks=(told,), ledger=partial(self._carried, _LEAST_CARRIED))

    def _carried(self, room: int) -> Json:
        """What goes along to the next round: worked out when somebody stores it."""
        ledger = carried(self.archived, self.writer.notebook.named, self.writer.worth, _CARRIED * room)
        return cast(Json, msgspec.to_builtins(ledger))

    def _characters_in_token(self, room: int) -> float:
        """About how many, by lines that the page may be made of."""
        estimator, sample = self.request.view.gauge.estimator, self.writer.sample(room)
        return max(1.0, len(sample) / max(1, tokens_in(estimator, sample)))

    def _sheet(self) -> Sheet:
        archived = "1 message is" if self.count == 1 else f"{self.count:,} messages are"
        intro = f"{OPENING}{archived} archived, in full, under the numbers given here.{self._begun()}]"
        cut_short = {(self.places[index], place) for index in self.shortened for place in self._cut_parts(index)}
        return Sheet(self.writer, self.visible, self.staying, cut_short, intro)

    def _begun(self) -> str:
        """Where the user's last message stays and what followed it does not, the notes above it tell of that too."""
        return _BEGUN if self.request.newest_turn(self.cut) is not None else ""

    def _edits(self, page: Page) -> dict[int, tuple[Edit, ...]]:
        """The lines of a page that belong to kept results, put in their place."""
        return {
            index: tuple(Edit(part, self._cut_short(index, part, page)) for part in self._cut_parts(index))
            for index in self.shortened
        }

    def _cut_short(self, index: int, part: int, page: Page) -> str:
        result = cast(ToolResult, self.request.messages[index].parts[part])
        lines = [line.text for line in page.beside.get((self.places[index], part), ())]
        pictures = [media_in_words(item) for item in result.content if isinstance(item, Media)]
        return "\n".join([_CUT_SHORT.format(citation(self.places[index])), *lines, *pictures])

    def _size(self, page: Page, notes: tuple[Message, ...]) -> int:
        """Tokens of the whole context with this page."""
        view, measure = self.request.view, self.request.view.gauge.estimator.measure
        units = sum(map(measure, notes)) - sum(map(measure, self.old_notes))
        for index, changes in self._edits(page).items():
            before = view.gauge.sums[index + 1] - view.gauge.sums[index]
            units += measure(edited(view.messages[index], changes)) - before
        return self.request.cost(self.cut, units)


def _is_large(message: Message) -> bool:
    return any(map(_is_long, message.results))


def _is_long(result: ToolResult) -> bool:
    return is_clearable(result) and len(result.text) > _LARGE
