"""The ledger strategy: extractive notes, made without a model.

A page of notes replaces the archived messages; the newest messages follow verbatim, with their tool pairs. A tool
result among them that is too large for the room is shortened to its highest-scored lines.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from typing import cast

import msgspec
from msgspec import structs

from ..context import Edit, Plan, Request, Skip, apply_edits
from ..context.references import citation
from ..ledger import (
    PAGE_OPENING,
    HistoryExtractor,
    LedgerPage,
    PageRenderer,
    SectionRenderer,
    is_ledger_page,
    trim_ledger,
)
from ..messages import Json, Media, Message, ToolResult, describe_media, framed_message
from ..tokens import count_tokens
from ..tokens.budget import require_positive
from .base import BaseStrategy
from .history import count_newly_archived, message_numbers, message_text, previous_ledger, user_message_numbers
from .pruning import is_clearable
from .windows import KEEP_TOKENS, archive_before, snap_to_turn

PAGE_TOKENS = 16_000
"""Size limit of a page: longer notes retain hardly more of what is needed."""
_TAIL_SHARE, _LONG_TAIL_SHARE, _LONG_TAIL_TOKENS = 0.1, 0.2, 500
"""Share of the room for the newest messages; the larger share applies up to so many tokens, and where there is more
room than a page can use."""
_NOTES_SHARE = 0.25
"""Share of the remaining budget for notes where fixed content takes most of the target."""
_MAX_CALLS_SHARE = 0.4
"""Answered calls that take more than this share of the room are archived."""
_LARGE_RESULT_CHARS = 600
_SHORTENED_NOTE = "[Shortened to the key lines; full result: {}.]"
_IN_PROGRESS_NOTE = " Work on the user's message below has begun."
_CARRIED_CHARS_PER_TOKEN, _MIN_CARRIED_TOKENS = 8, 2_000
"""Characters carried to the next round for each token of the page; page size assumed where none fits."""
_MAX_ATTEMPTS, _FULL_SHARE, _AIM_SHARE, _FIRST_GUESS, _SHRINK_FACTOR = 10, 0.99, 0.997, 1.08, 0.8
"""Search for the page size: the first guess is large, since the selection can be reused for less room; a page that did
not change is tried with much less."""


class KeepLedger(BaseStrategy):
    """Keeps the newest turns verbatim behind extractive notes on everything earlier, within the target."""

    def __init__(self, max_tokens: int | None = None, keep_tokens: int = KEEP_TOKENS) -> None:
        if max_tokens is not None:
            require_positive("max_tokens", max_tokens)
        require_positive("keep_tokens", keep_tokens)
        self.max_tokens = max_tokens
        self.keep_tokens = keep_tokens

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Plan | Skip:
        limit = self.max_tokens or _token_limit(request)
        cut = self._cut(request, limit)
        plan = archive_before(request, cut, "ledger")
        if isinstance(plan, Skip):
            if request.tokens <= limit or not any(map(is_ledger_page, request.notes)):
                return plan
            plan = Plan(cut, strategy="ledger")  # nothing to archive, but the notes can be shortened
        return _LedgerPlanner(request, cut, limit).plan(plan)

    def _cut(self, request: Request, limit: int) -> int:
        """Returns where the verbatim tail starts: at a turn if possible, never after an unanswered call."""
        view, sums = request.view, request.view.token_sums
        end = len(view.messages)
        room = _free_tokens(request, limit)
        share = min(self.keep_tokens, _tail_tokens(room))

        def fits(cut: int) -> bool:
            return sums.estimator.tokens(sums.cumulative[-1] - sums.cumulative[cut]) <= share

        cut = snap_to_turn(request, bisect_left(range(end + 1), True, key=fits), fits)
        return end if _calls_too_large(request, cut, room) else cut


def _token_limit(request: Request) -> int:
    """Returns the target, by default half of the context; more if fixed content leaves too little for notes."""
    aim = request.target or max(1, request.tokens // 2)
    if request.budget is None:
        return aim
    fixed = _fixed_tokens(request)
    return max(aim, fixed + int(min(aim, request.budget - fixed) * _NOTES_SHARE))


def _fixed_tokens(request: Request) -> int:
    """Returns the tokens that stay whatever is archived, without notes, which are rewritten."""
    notes = sum(map(request.view.token_sums.estimator.measure, request.notes))
    return request.tokens_after_cut(len(request.messages), -notes)


def _free_tokens(request: Request, limit: int) -> int:
    """Returns the tokens available for notes and the newest messages."""
    return max(0, limit - _fixed_tokens(request))


def _tail_tokens(room: int) -> int:
    """Returns the tokens available for the newest messages."""
    return max(int(room * _TAIL_SHARE), min(int(room * _LONG_TAIL_SHARE), max(_LONG_TAIL_TOKENS, room - PAGE_TOKENS)))


def _calls_too_large(request: Request, cut: int, room: int) -> bool:
    """Whether the kept calls take too much of the room and can be archived because all are answered."""
    kept, sums = request.messages[cut:], request.view.token_sums
    answered = {result.call_id for message in kept for result in message.results}
    waits = any(call.id not in answered for message in kept for call in message.calls)
    if waits or not kept or kept[-1].role != "tool" or request.newest_turn(len(request.messages)) is None:
        return False
    size = sum(sums.estimator.measure(message) for message in kept if not _has_long_result(message))
    return sums.estimator.tokens(size) > _MAX_CALLS_SHARE * room


class _LedgerPlanner:
    """Builds one plan: renders the page, measures it, and renders it again until it fits."""

    def __init__(self, request: Request, cut: int, limit: int) -> None:
        view = request.view
        self.request, self.cut, self.limit = request, cut, limit
        self.old_notes = request.notes
        self.other_notes = [message for message in self.old_notes if not is_ledger_page(message)]
        earlier = previous_ledger(request, self.old_notes)
        self.places = message_numbers(request, earlier.archived)
        self.count = (view.checkpoint.carry.archived or earlier.archived) + count_newly_archived(request, cut)
        history = HistoryExtractor(earlier)
        history.read(view.messages[:cut], self.places[:cut])
        self.archived = history.ledger()
        history.read(view.messages[cut:], self.places[cut:])
        self.sections = SectionRenderer(history, citation, min(PAGE_TOKENS, _free_tokens(request, limit)))
        self.shortened = self._find_shortened()
        staying = [*request.kept_before(cut), *range(cut, len(view.messages))]
        staying = [index for index in staying if index not in view.synthetic]  # earlier notes are rewritten
        whole = [self._without_shortened(index) for index in staying]
        first = [shown.message for shown in view.head if shown.kind != "note" and request.stays_in_head(shown, cut)]
        whole += first
        self.staying = {self.places[index] for index in staying} | user_message_numbers(first, history)
        self.visible = "\n".join(message_text(message) for message in whole)

    def _find_shortened(self) -> list[int]:
        """Returns the kept messages whose results are shortened because the tail exceeds its share."""
        request, end = self.request, len(self.request.messages)
        kept = request.tokens_after_cut(self.cut) - request.tokens_after_cut(end)
        if kept <= _tail_tokens(_free_tokens(request, self.limit)):
            return []
        return [index for index in range(self.cut, end) if _has_long_result(request.messages[index])]

    def _shortened_parts(self, index: int) -> list[int]:
        """Returns the indexes of the shortened results in a message."""
        parts = enumerate(self.request.messages[index].parts) if index in self.shortened else ()
        return [place for place, part in parts if isinstance(part, ToolResult) and _is_long(part)]

    def _without_shortened(self, index: int) -> Message:
        message, cut = self.request.messages[index], self._shortened_parts(index)
        kept = tuple(part for place, part in enumerate(message.parts) if place not in cut)
        return structs.replace(message, parts=kept) if cut else message

    def plan(self, without_notes: Plan) -> Plan:
        fixed = self._size(LedgerPage("", {}), ())
        room = min(PAGE_TOKENS, max(0, self.limit - fixed))
        if not room:
            return self._plan_without_page(without_notes)
        renderer, last = self._page_renderer(), LedgerPage("", {})
        best: tuple[int, LedgerPage, tuple[Message, ...]] | None = None
        characters = int(room * _FIRST_GUESS * self._chars_per_token(room))
        fitting, too_large = 0, 0  # the most characters that fitted, and the fewest that did not
        for _ in range(_MAX_ATTEMPTS):
            page = renderer.render(characters)
            notes = (*self.other_notes, framed_message(page.text))
            used = max(1, self._size(page, notes) - fixed)
            if used <= room:
                fitting = max(fitting, characters)
                best = best if best is not None and best[0] > used else (used, page, notes)
                if used >= room * _FULL_SHARE or characters > 8 * self.request.view.token_sums.cumulative[-1]:
                    break
            else:
                too_large = min(too_large or characters, characters)
            change = min(2.0, room * _AIM_SHARE / used)
            characters = int(characters * (_SHRINK_FACTOR if page == last and used > room else change))
            if fitting and too_large and not fitting < characters < too_large:
                characters = (fitting + too_large) // 2
            last = page
        if best is None:
            return self._plan_without_page(without_notes)
        _, page, notes = best
        ledger = partial(self._carried, room)
        return Plan(self.cut, notes=notes, edits=self._edits(page), target=self.limit, strategy="ledger", ledger=ledger)

    def _plan_without_page(self, plan: Plan) -> Plan:
        """Returns the plan without a page and carries the notes: a later round may have room."""
        remark = "The notes do not fit next to the fixed content; they are carried to the next round."
        return structs.replace(plan, remarks=(remark,), ledger=partial(self._carried, _MIN_CARRIED_TOKENS))

    def _carried(self, room: int) -> Json:
        """Returns the ledger for the next round; computed only when the checkpoint is stored."""
        ledger = trim_ledger(
            self.archived, self.sections.history.name_cache, self.sections.name_scores, _CARRIED_CHARS_PER_TOKEN * room
        )
        return cast(Json, msgspec.to_builtins(ledger))

    def _chars_per_token(self, room: int) -> float:
        """Estimates characters per token from lines that the page may contain."""
        estimator, sample = self.request.view.token_sums.estimator, self.sections.sample(room)
        return max(1.0, len(sample) / max(1, count_tokens(estimator, sample)))

    def _page_renderer(self) -> PageRenderer:
        archived = "1 message is" if self.count == 1 else f"{self.count:,} messages are"
        intro = f"{PAGE_OPENING}{archived} archived in full under the cited numbers.{self._progress_note()}]"
        shortened = {(self.places[index], place) for index in self.shortened for place in self._shortened_parts(index)}
        return PageRenderer(self.sections, self.visible, self.staying, shortened, intro)

    def _progress_note(self) -> str:
        """Returns a note for the case that the last user message stays but work done after it is archived."""
        return _IN_PROGRESS_NOTE if self.request.newest_turn(self.cut) is not None else ""

    def _edits(self, page: LedgerPage) -> dict[int, tuple[Edit, ...]]:
        """Returns the edits that replace shortened results by their selected lines."""
        return {
            index: tuple(Edit(part, self._shortened_text(index, part, page)) for part in self._shortened_parts(index))
            for index in self.shortened
        }

    def _shortened_text(self, index: int, part: int, page: LedgerPage) -> str:
        result = cast(ToolResult, self.request.messages[index].parts[part])
        lines = [line.text for line in page.result_lines.get((self.places[index], part), ())]
        media = [describe_media(item) for item in result.content if isinstance(item, Media)]
        return "\n".join([_SHORTENED_NOTE.format(citation(self.places[index])), *lines, *media])

    def _size(self, page: LedgerPage, notes: tuple[Message, ...]) -> int:
        """Returns the tokens of the whole context with this page."""
        view, measure = self.request.view, self.request.view.token_sums.estimator.measure
        units = sum(map(measure, notes)) - sum(map(measure, self.old_notes))
        for index, changes in self._edits(page).items():
            before = view.token_sums.cumulative[index + 1] - view.token_sums.cumulative[index]
            units += measure(apply_edits(view.messages[index], changes)) - before
        return self.request.tokens_after_cut(self.cut, units)


def _has_long_result(message: Message) -> bool:
    return any(map(_is_long, message.results))


def _is_long(result: ToolResult) -> bool:
    return is_clearable(result) and len(result.text) > _LARGE_RESULT_CHARS
