"""The ledger strategy: extractive notes and a trail of the newest steps, made without a model.

A page of notes replaces the archived messages. The trail follows: the newest steps as native messages, with their
calls whole and their results shortened to the highest-scored lines, except for results that the model has not read
yet. Room that is left keeps the newest results whole.
Notes and trail share the room by what each is worth there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from operator import itemgetter
from typing import cast

import msgspec
from msgspec import structs

from ..context import Plan, Request, Skip
from ..context.references import citation
from ..errors import Outcome
from ..ledger import (
    COUNTED,
    PAGE_OPENING,
    ROUND,
    HistoryExtractor,
    LedgerPage,
    PageRenderer,
    SectionRenderer,
    is_ledger_page,
    outcome_lines,
    trim_ledger,
)
from ..messages import Json, Message, Text, ToolResult, change, framed_message
from ..tokens import count_tokens
from ..tokens.budget import require_positive
from .base import BaseStrategy
from .history import (
    count_newly_archived,
    message_numbers,
    message_text,
    message_tokens,
    previous_ledger,
    read_history,
    shorten_notes,
    user_message_numbers,
)
from .trail import (
    CUT_NOTE,
    MAX_SHARE,
    MAX_TALK_SHARE,
    REQUEST_NOTE,
    ShortenedTrail,
    add_hidden_lines,
    choose_trail,
    shorten_request,
    shortened_text,
)
from .windows import archives_nothing

PAGE_TOKENS = 16_000
"""Size limit of a page: longer notes retain hardly more of what is needed."""
_NOTES_SHARE = 0.25
"""Share of the remaining budget for notes where fixed content takes most of the target."""
_APPROVED_SHARE = 0.25
"""Share of the target for a plan that the user approved, verbatim; of a longer one, its open items."""
_SMALL_SHARE = 0.2
"""Messages that take no more than this share of the target are left as they are, even if a compaction is asked for."""
_WITH_RECALL = "archived in full under the cited numbers: recall_read shows them."
_WITHOUT_RECALL = "no longer shown; the numbers cite them."
_ALL_SHOWN = f"{PAGE_OPENING}every message is shown."
_IN_PROGRESS_NOTE = " Work on the user's message below has begun."
_ANSWERED_NOTE = " The user's message below has been answered."
_CARRIED_CHARS_PER_TOKEN, _MIN_CARRIED_TOKENS = 8, 2_000
"""Characters carried to the next round for each token of the page; page size assumed where none fits."""
_MAX_ATTEMPTS, _FULL_SHARE, _AIM_SHARE, _FIRST_GUESS = 10, 0.99, 0.997, 1.08
"""Search for the page size: the first guess is large, since the selection can be reused for less room."""
_MIN_STEP, _MAX_STEP = 1.02, 2.0
"""Factors by which a size is changed while all that were tried are too small or too large."""

_MAX_EXTENSIONS, _EXTENSION_SHARE = 3, 0.03
"""How often the trail may be extended when its messages are whole, and the share of the target that must be left."""


class KeepLedger(BaseStrategy):
    """Keeps the newest steps behind extractive notes on everything earlier, within the target."""

    writes_notes = True

    def __init__(self, max_tokens: int | None = None) -> None:
        if max_tokens is not None:
            require_positive("max_tokens", max_tokens)
        self.max_tokens = max_tokens

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Plan | Skip:
        return self._plan(request)[0]

    def _plan(self, request: Request) -> tuple[Plan | Skip, _LedgerPlanner | None]:
        planner = self._planner(request)
        if isinstance(planner, Skip):
            return planner, None
        plan = planner.plan()
        if planner.asked_for and not planner.shortened:
            return archives_nothing(request, planner.cut) or plan, planner
        return plan, planner

    def _planner(self, request: Request) -> _LedgerPlanner | Skip:
        """Returns the planner for the target; half of the context for a compaction asked for although it fits."""
        limit = request.reachable(self.max_tokens) if self.max_tokens else _token_limit(request)
        if request.tokens > limit:
            return _LedgerPlanner(request, limit)
        view, fixed = request.view, _fixed_tokens(request)
        if view.checkpoint_id is not None and view.previously_kept >= len(view.messages):
            return Skip(Outcome.NOTHING_TO_COMPACT, "no messages since the last compaction")
        if request.tokens - fixed <= _SMALL_SHARE * max(0, limit - fixed):
            return Skip(Outcome.NOTHING_TO_COMPACT, "the messages take little of the target")
        return _LedgerPlanner(request, max(1, fixed + (request.tokens - fixed) // 2), asked_for=True)


class ExplainedLedger(KeepLedger):
    """`KeepLedger` that remembers its last page and where its lines come from."""

    rendered: tuple[LedgerPage, SectionRenderer] | None = None

    def __call__(self, request: Request) -> Plan | Skip:
        answer, planner = self._plan(request)
        if planner is not None and planner.page.text:
            self.rendered = planner.page, planner.sections
        return answer


def _token_limit(request: Request) -> int:
    """Returns the target, by default half of the context; more if fixed content leaves too little for notes."""
    aim = request.target or max(1, request.tokens // 2)
    if request.budget is None:
        return aim
    fixed = _fixed_tokens(request)
    if long := shorten_request(request, aim - fixed):
        fixed -= long.saved
    return max(aim, fixed + int(min(aim, request.budget - fixed) * _NOTES_SHARE))


def _next_characters(tried: dict[int, int], room: int) -> int:
    """Returns the page size to try next, from the tokens that each size has used so far.

    Sizes follow a line through the nearest two: the first sections of a page hardly shrink with it.
    """
    fitting = sorted(size for size, used in tried.items() if used <= room)
    too_large = sorted(size for size, used in tried.items() if used > room)
    low, high = (fitting[-1:], too_large[:1]) if fitting and too_large else ([], too_large[:2] or fitting[-2:])
    (least, of_least), (most, of_most) = [(0, 0), *((size, tried[size]) for size in [*low, *high])][-2:]
    per_token = (most - least) / max(1, of_most - of_least)
    guess = int(least + (_AIM_SHARE * room - of_least) * per_token)
    if low:
        margin = (most - least) // 10
        return min(max(guess, least + margin), most - margin)
    if too_large:
        return min(max(guess, int(too_large[0] / _MAX_STEP)), int(too_large[0] / _MIN_STEP))
    return min(max(guess, int(fitting[-1] * _MIN_STEP)), int(fitting[-1] * _MAX_STEP))


def _fixed_tokens(request: Request) -> int:
    """Returns the tokens that stay whatever is archived, without pages, which are rewritten."""
    return _tokens_without(request, filter(is_ledger_page, request.notes))


def _tokens_without(request: Request, notes: Iterable[Message]) -> int:
    """Returns the tokens that stay whatever is archived, without these notes."""
    return request.plan.tokens_after_cut(
        len(request.messages), -sum(map(request.view.token_sums.estimator.measure, notes))
    )


class _LedgerPlanner:
    """Builds one plan: chooses the trail, renders the page, measures it, and renders it again until it fits."""

    def __init__(self, request: Request, limit: int, *, asked_for: bool = False) -> None:
        view = request.view
        self.request, self.limit, self.asked_for = request, limit, asked_for
        self.page = LedgerPage("", {})
        self.measured: dict[int, tuple[dict[int, str | None], int]] = {}
        """The newest texts of shortened results, with their units: few of them change from page to page."""
        self.old_notes = request.notes
        free = limit - _tokens_without(request, self.old_notes)
        others = [message for message in self.old_notes if not is_ledger_page(message)]
        estimator = view.token_sums.estimator
        self.other_notes = shorten_notes(others, max(0, int((1 - _NOTES_SHARE) * free)), estimator)
        free -= message_tokens(self.other_notes, estimator)
        earlier = previous_ledger(request)
        self.places = message_numbers(request, earlier.archived)
        self.long_request = shorten_request(request, free)
        self.room = room = max(0, free + (self.long_request.saved if self.long_request else 0))
        self.trail = ShortenedTrail(request, room, self.long_request)
        self.first = min([step.cut for step in self.trail.steps], default=request.plan.last_cut)
        self.history = HistoryExtractor(earlier)
        read_history(self.history, request, self.places, 0, self.first)
        self.before = self.history.ledger()
        read_history(self.history, request, self.places, self.first, len(view.messages))
        self.sections = SectionRenderer(self.history, min(PAGE_TOKENS, room), self._approved_chars())
        self.earlier_count = view.checkpoint.carry.archived or earlier.archived
        self._start_at(self._cut(room))

    def _approved_chars(self) -> int:
        """Returns the characters of the approved plan that fit its share of the target."""
        if (plan := self.history.approved_plan) is None:
            return 0
        tokens = count_tokens(self.request.view.token_sums.estimator, plan.text)
        return len(plan.text) * int(_APPROVED_SHARE * self.limit) // max(1, tokens)

    def _start_at(self, cut: int) -> None:
        """Sets the start of the trail, and with it what stays visible."""
        request, view = self.request, self.request.view
        self.cut = cut
        self.count = self.earlier_count + count_newly_archived(request, cut)
        self.shortened = {
            (index, place)
            for index in range(cut, len(view.messages))
            for place, part in enumerate(request.messages[index].parts)
            if self.trail.is_shortened(index, place, part)
        }
        if long := self.long_request:
            self.shortened.add((long.place, long.part))
        staying = [*request.plan.kept_before(cut), *range(cut, len(view.messages))]
        staying = [index for index in staying if index not in view.synthetic]  # earlier notes are rewritten
        first = [
            shown.message for shown in view.head if shown.kind != "note" and request.plan.stays_in_head(shown, cut)
        ]
        self.staying = {self.places[index] for index in staying} | user_message_numbers(first, self.history)
        self.visible = "\n".join(map(message_text, [*map(self._without_shortened, staying), *first]))

    # -- the trail ----------------------------------------------------------------------------------

    def _cut(self, room: int) -> int:
        """Returns where the trail starts: where it is worth most, never after an unfinished tool loop."""
        messages, turns = self.request.messages, self.request.view.turns
        chars = self._chars_per_token
        cut = choose_trail(
            [step._replace(size=int(step.size * chars)) for step in self.trail.steps],
            int(room * chars),
            self.sections.fixed_size(int(room * chars)),
            MAX_SHARE if self.history.files else MAX_TALK_SHARE,
            self.sections.name_scores,
            self.sections.line_scores.per_character,
            self.sections.price,
        )
        latest = self.trail.latest_cut(room)
        cut = latest if cut is None else min(cut, latest)
        if turns and cut > turns[-1] and all(message.role == "system" for message in messages[turns[-1] + 1 : cut]):
            return turns[-1]  # the newest user message stays anyway, with what belongs to it
        return cut

    def _without_shortened(self, index: int) -> Message:
        message, long = self.request.messages[index], self.long_request
        parts = [part for place, part in enumerate(message.parts) if (index, place) not in self.shortened]
        if long and index == long.place:
            parts.append(Text(long.text(self.places[index])))
        return structs.replace(message, parts=tuple(parts))

    # -- the plan -----------------------------------------------------------------------------------

    def plan(self) -> Plan | Skip:
        page = self._fit_page()
        while page is None and (later := [step.cut for step in self.trail.steps if step.cut > self.cut]):
            self._start_at(later[len(later) // 2])  # the trail took the room of the task and the rules
            page = self._fit_page()
        if page is None:
            return self._plan_without_page()
        for _ in range(_MAX_EXTENSIONS):
            cut = self._earlier_cut(self._keep_newest_whole(page))
            if cut == self.cut:
                break
            self._start_at(cut)
            page = self._fit_page() or page
        self.page = page
        plan = self.request.plan.edit(self._texts(page)).archive(self.cut).show(self._notes(page))
        ledger = partial(self._carried, min(PAGE_TOKENS, self.room), page)
        return structs.replace(plan.made_by("ledger", self._remarks()), target=self.limit, ledger=ledger)

    def _earlier_cut(self, left: int) -> int:
        """Returns an earlier start of the trail for the room that is left, if it is worth another page."""
        cut = self.cut
        if left < _EXTENSION_SHARE * self.limit or self.shortened:
            return cut
        for step in self.trail.steps:
            if step.cut < self.cut and (left := left - step.size) >= 0:
                cut = step.cut
        return cut

    def _fit_page(self) -> LedgerPage | None:
        """Returns the largest page that fits, together with the lines of shortened results; None if none fits."""
        fixed = self._size(LedgerPage("", {}), tuple(self.other_notes))
        room = min(PAGE_TOKENS, self.limit - fixed)
        if room <= 0:
            return None
        renderer, best = self._page_renderer(), (0, LedgerPage("", {}))
        tried: dict[int, int] = {}
        characters = int(room * _FIRST_GUESS * self._chars_per_token)
        while characters not in tried and len(tried) < _MAX_ATTEMPTS:
            page = renderer.render(characters)
            used = tried[characters] = max(1, self._size(page, self._notes(page)) - fixed)
            if used <= room:
                best = max(best, (used, page), key=itemgetter(0))
                if used >= room * _FULL_SHARE or characters > 8 * self.request.view.token_sums.cumulative[-1]:
                    break
            characters = _next_characters(tried, room)
        return best[1] if best[0] else None

    def _keep_newest_whole(self, page: LedgerPage) -> int:
        """Leaves the newest results whole as far as there is room; returns the tokens that are still left."""
        estimator = self.request.view.token_sums.estimator
        left = self.limit - self._size(page, self._notes(page))
        for index, texts in reversed(self._texts(page).items()):
            message = self.request.messages[index]
            for part, text in reversed(texts.items()):
                whole = Message(message.role, (message.parts[part],))
                shortened = change(whole, {0: text})
                more = 1 + estimator.tokens(max(0, estimator.measure(whole) - estimator.measure(shortened)))
                if more <= left:
                    left -= more
                    self.shortened.discard((index, part))
        return left

    def _plan_without_page(self) -> Plan | Skip:
        """Returns the plan without a page and carries the notes: a later round may have room."""
        if skip := archives_nothing(self.request, self.cut):
            return skip
        remark = "The notes do not fit next to the fixed content; they are carried to the next round."
        ledger = partial(self._carried, _MIN_CARRIED_TOKENS, LedgerPage("", {}))
        plan = self.request.plan.archive(self.cut).show(self.other_notes)
        return structs.replace(plan.made_by("ledger", (remark, *self._remarks())), ledger=ledger)

    def _remarks(self) -> tuple[str, ...]:
        is_whole = all(note in self.old_notes for note in self.other_notes)
        return () if is_whole else ("A summary was shortened: it does not fit the target.",)

    def _carried(self, room: int, page: LedgerPage) -> Json:
        """Returns the ledger for the next round; computed only when the checkpoint is stored.

        It holds the archived messages, and the lines of shortened results that are no longer visible.
        """
        history = HistoryExtractor(self.before)
        read_history(history, self.request, self.places, self.first, self.cut)
        cut = {(self.places[index], part) for index, part in self.shortened}
        shown = {line.text for lines in page.result_lines.values() for line in lines}
        ledger = history.ledger()
        add_hidden_lines(ledger, self.history, cut, shown)
        ledger = trim_ledger(
            ledger, self.history.name_cache.__getitem__, self.sections.name_scores, _CARRIED_CHARS_PER_TOKEN * room
        )
        return cast(Json, msgspec.to_builtins(ledger))

    @cached_property
    def _chars_per_token(self) -> float:
        """Estimates characters per token from lines that the page may contain."""
        estimator, sample = self.request.view.token_sums.estimator, self.sections.sample(min(PAGE_TOKENS, self.room))
        return max(1.0, len(sample) / max(1, count_tokens(estimator, sample)))

    def _page_renderer(self) -> PageRenderer:
        archived = "1 message is" if self.count == 1 else f"{self.count:,} messages are"
        where = _WITH_RECALL if self.request.view.has_recall else _WITHOUT_RECALL
        counted = f" {COUNTED}{citation(self.places[-1])}." if self.cut < len(self.places) else ""
        intro = (
            f"{PAGE_OPENING}{archived} {where}{counted}{self._round_note()}{self._progress_note()}{self._cut_note()}]"
        )
        shortened = {(self.places[index], part) for index, part in self.shortened}
        trail = sum(step.size for step in self.trail.steps if step.cut >= self.cut)
        trail_chars = int(trail * self._chars_per_token)
        return PageRenderer(self.sections, self.visible, self.staying, shortened, intro, trail_chars)

    def _cut_note(self) -> str:
        """Returns a note on the marks of shortened results and of a shortened request."""
        results = f" {CUT_NOTE}" if len(self.shortened) > bool(self.long_request) else ""
        return results + (f" {REQUEST_NOTE}" if self.long_request else "")

    def _round_note(self) -> str:
        """Returns the number of the round: a page is all that a process without the checkpoint knows of it."""
        round = self.request.view.checkpoint.carry.round + (self.count > self.earlier_count)
        return f" {ROUND}{round:,}." if round > 1 else ""

    def _progress_note(self) -> str:
        """Returns a note for the case that the last user message stays but work done after it is archived."""
        if self.request.plan.is_answered(self.cut):
            return _ANSWERED_NOTE
        return _IN_PROGRESS_NOTE if self.request.plan.newest_turn(self.cut) is not None else ""

    def _notes(self, page: LedgerPage) -> tuple[Message, ...]:
        """Returns the notes to show; without archived messages there is nothing to note but what the marks mean."""
        text = page.text if self.count else self._cut_note() and f"{_ALL_SHOWN}{self._cut_note()}]"
        return (*self.other_notes, *([framed_message(text)] if text else ()))

    def _texts(self, page: LedgerPage) -> dict[int, dict[int, str | None]]:
        """Returns the selected lines that take the place of shortened results."""
        texts: dict[int, dict[int, str | None]] = {}
        for index, part in sorted(self.shortened):
            texts.setdefault(index, {})[part] = self._shortened_text(index, part, page)
        return texts

    def _shortened_text(self, index: int, part: int, page: LedgerPage) -> str:
        lines = [line.text for line in page.result_lines.get((self.places[index], part), ())]
        if (long := self.long_request) and (long.place, long.part) == (index, part):
            return long.text(self.places[index], lines)
        result = cast(ToolResult, self.request.messages[index].parts[part])
        return shortened_text(result, self.places[index], lines or outcome_lines(result))

    def _size(self, page: LedgerPage, notes: tuple[Message, ...]) -> int:
        """Returns the tokens of the whole context with this page."""
        view, measure = self.request.view, self.request.view.token_sums.estimator.measure
        units = sum(map(measure, notes)) - sum(map(measure, self.old_notes))
        for index, texts in self._texts(page).items():
            if (known := self.measured.get(index)) is None or known[0] != texts:
                known = self.measured[index] = texts, measure(change(view.messages[index], texts))
            units += known[1] - (view.token_sums.cumulative[index + 1] - view.token_sums.cumulative[index])
        return self.request.plan.tokens_after_cut(self.cut, units)
