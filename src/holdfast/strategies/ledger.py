"""The ledger strategy: extractive notes and a trail of the newest steps, made without a model.

A page of notes replaces the archived messages. The trail follows: the newest steps as native messages, with their
calls whole and their results shortened to the highest-scored lines, except for results that the model has not read
yet. Room that is left keeps the newest results whole.
Notes and trail share the room by what each is worth there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import cast

import msgspec
from msgspec import structs

from ..context import Edit, Plan, Request, Skip, apply_edits
from ..context.references import citation
from ..errors import Outcome
from ..ledger import (
    MAX_SHARE,
    MAX_TALK_SHARE,
    PAGE_OPENING,
    ROUND,
    HistoryExtractor,
    LedgerPage,
    PageExplanation,
    PageRenderer,
    SectionRenderer,
    TrailStep,
    choose_trail,
    explain_page,
    is_ledger_page,
    trim_ledger,
)
from ..messages import (
    Json,
    Message,
    Part,
    Text,
    ToolResult,
    cut_at_or_before,
    framed_message,
    is_legal_cut,
    open_tool_loop_start,
)
from ..tokens import count_tokens
from ..tokens.budget import require_positive
from .base import BaseStrategy
from .history import (
    count_newly_archived,
    message_numbers,
    message_text,
    previous_ledger,
    read_history,
    user_message_numbers,
)
from .trail import CUT_MARK, CUT_NOTE, add_hidden_lines, can_shorten, last_line, shortened_text
from .windows import archive_before

PAGE_TOKENS = 16_000
"""Size limit of a page: longer notes retain hardly more of what is needed."""
_NOTES_SHARE = 0.25
"""Share of the remaining budget for notes where fixed content takes most of the target."""
_SMALL_SHARE = 0.2
"""Messages that take no more than this share of the target are left as they are, even if a compaction is asked for."""
_MAX_CALLS_SHARE = 0.6
"""Answered calls that take more than this share of the room are archived."""
_UNREAD_SHARE = 0.5
"""Results that the model has not read yet stay whole if they take no more than this share of the room."""
_WITH_RECALL = "archived in full under the cited numbers: recall_read shows them."
_WITHOUT_RECALL = "no longer shown; the numbers cite them."
_IN_PROGRESS_NOTE = " Work on the user's message below has begun."
_ANSWERED_NOTE = " The user's message below has been answered."
_CARRIED_CHARS_PER_TOKEN, _MIN_CARRIED_TOKENS = 8, 2_000
"""Characters carried to the next round for each token of the page; page size assumed where none fits."""
_MAX_ATTEMPTS, _FULL_SHARE, _AIM_SHARE, _FIRST_GUESS, _SHRINK_FACTOR = 10, 0.99, 0.997, 1.08, 0.8
"""Search for the page size: the first guess is large, since the selection can be reused for less room; a page that did
not change is tried with much less."""

_MAX_EXTENSIONS, _EXTENSION_SHARE = 3, 0.03
"""How often the trail may be extended when its messages are whole, and the share of the target that must be left."""


class KeepLedger(BaseStrategy):
    """Keeps the newest steps behind extractive notes on everything earlier, within the target."""

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
        if planner.asked_for and isinstance(plan, Plan) and not plan.edits:
            nothing = archive_before(request, plan.cut, "ledger")
            return nothing if isinstance(nothing, Skip) else plan, planner
        return plan, planner

    def _planner(self, request: Request) -> _LedgerPlanner | Skip:
        """Returns the planner for the target; half of the context for a compaction asked for although it fits."""
        limit = self.max_tokens or _token_limit(request)
        if request.tokens > limit:
            return _LedgerPlanner(request, limit)
        view, fixed = request.view, _fixed_tokens(request)
        if view.checkpoint_id is not None and view.previously_kept >= len(view.messages):
            return Skip(Outcome.NOTHING_TO_COMPACT, "no messages since the last compaction")
        if request.tokens - fixed <= _SMALL_SHARE * _free_tokens(request, limit):
            return Skip(Outcome.NOTHING_TO_COMPACT, "the messages take little of the target")
        return _LedgerPlanner(request, max(1, fixed + (request.tokens - fixed) // 2), asked_for=True)


class ExplainedLedger(KeepLedger):
    """`KeepLedger` that remembers why its last page has its lines and not others."""

    explanation: PageExplanation | None = None

    def __call__(self, request: Request) -> Plan | Skip:
        answer, planner = self._plan(request)
        if planner is not None and planner.page.text:
            self.explanation = explain_page(planner.page, planner.sections)
        return answer


def _token_limit(request: Request) -> int:
    """Returns the target, by default half of the context; more if fixed content leaves too little for notes."""
    aim = request.target or max(1, request.tokens // 2)
    if request.budget is None:
        return aim
    fixed = _fixed_tokens(request)
    return max(aim, fixed + int(min(aim, request.budget - fixed) * _NOTES_SHARE))


def _fixed_tokens(request: Request) -> int:
    """Returns the tokens that stay whatever is archived, without pages, which are rewritten."""
    notes = sum(map(request.view.token_sums.estimator.measure, filter(is_ledger_page, request.notes)))
    return request.tokens_after_cut(len(request.messages), -notes)


def _free_tokens(request: Request, limit: int) -> int:
    """Returns the tokens available for notes and the newest messages."""
    return max(0, limit - _fixed_tokens(request))


class _LedgerPlanner:
    """Builds one plan: chooses the trail, renders the page, measures it, and renders it again until it fits."""

    def __init__(self, request: Request, limit: int, *, asked_for: bool = False) -> None:
        view = request.view
        self.request, self.limit, self.asked_for = request, limit, asked_for
        self.page = LedgerPage("", {})
        self.old_notes = request.notes
        self.other_notes = [message for message in self.old_notes if not is_ledger_page(message)]
        earlier = previous_ledger(request)
        self.places = message_numbers(request, earlier.archived)
        room = _free_tokens(request, limit)
        self.unread = set(self._unread_results(room))
        self.steps = list(self._steps(room))
        self.first = min([step.cut for step in self.steps], default=len(view.messages))
        self.history = HistoryExtractor(earlier)
        read_history(self.history, request, self.places, 0, self.first)
        self.before = self.history.ledger()
        read_history(self.history, request, self.places, self.first, len(view.messages))
        self.sections = SectionRenderer(self.history, citation, min(PAGE_TOKENS, room))
        self.earlier_count = view.checkpoint.carry.archived or earlier.archived
        self._start_at(self._cut(room))

    def _start_at(self, cut: int) -> None:
        """Sets the start of the trail, and with it what stays visible."""
        request, view = self.request, self.request.view
        self.cut = cut
        self.count = self.earlier_count + count_newly_archived(request, cut)
        self.shortened = {
            (index, place)
            for index in range(cut, len(view.messages))
            for place, part in enumerate(request.messages[index].parts)
            if self._is_shortened(index, place, part)
        }
        staying = [*request.kept_before(cut), *range(cut, len(view.messages))]
        staying = [index for index in staying if index not in view.synthetic]  # earlier notes are rewritten
        first = [shown.message for shown in view.head if shown.kind != "note" and request.stays_in_head(shown, cut)]
        self.staying = {self.places[index] for index in staying} | user_message_numbers(first, self.history)
        self.visible = "\n".join(map(message_text, [*map(self._without_shortened, staying), *first]))

    # -- the trail ----------------------------------------------------------------------------------

    def _steps(self, room: int) -> Iterator[TrailStep]:
        """Yields the newest steps, newest first, as far as the trail can reach."""
        view = self.request.view
        end, units, texts, size = len(view.messages), 0, list[str](), 0
        oldest = max(view.leading_system_count, max(view.synthetic, default=-1) + 1)
        for index in range(end - 1, oldest - 1, -1):
            rest = self._without_results(index)
            units += self._cut_units(index, rest)
            texts.append(message_text(rest))
            if view.token_sums.estimator.tokens(units) > room:
                return
            if is_legal_cut(view.messages, index):
                taken = view.token_sums.estimator.tokens(units)
                yield TrailStep(index, end - index, "\n".join(reversed(texts)), taken - size)
                texts, size = [], taken

    @cached_property
    def _mark_units(self) -> int:
        measure = self.request.view.token_sums.estimator.measure
        mark = (Text(CUT_MARK.format(10_000)),)
        return measure(Message("tool", (ToolResult("", mark),))) - measure(Message("tool", ()))

    def _cut(self, room: int) -> int:
        """Returns where the trail starts: where it is worth most, never after an unfinished tool loop."""
        messages, turns = self.request.messages, self.request.view.turns
        chars = self._chars_per_token(room)
        cut = choose_trail(
            [step._replace(size=int(step.size * chars)) for step in self.steps],
            int(room * chars),
            self.sections.fixed_size(int(room * chars)),
            MAX_SHARE if self.history.files else MAX_TALK_SHARE,
            self.sections.name_scores,
            self.sections.line_scores.per_character,
            self.sections.price,
        )
        latest = self._latest_cut(room)
        cut = latest if cut is None else min(cut, latest)
        if turns and cut > turns[-1] and all(message.role == "system" for message in messages[turns[-1] + 1 : cut]):
            return turns[-1]  # the newest user message stays anyway, with what belongs to it
        return cut

    def _latest_cut(self, room: int) -> int:
        """Returns the latest possible cut: the newest user message and an unfinished tool loop stay, and never nothing.

        A finished batch of calls that takes most of the room is archived.
        """
        messages, view = self.request.messages, self.request.view
        start, end = open_tool_loop_start(messages), len(messages)
        if view.turns and view.turns[-1] == end - 1:
            return view.turns[-1]
        if not view.turns and view.split_turn is None:
            return min(start, cut_at_or_before(messages, max(0, end - 1)))
        answered = {result.call_id for message in messages[start:] for result in message.results}
        waiting = any(call.id not in answered for message in messages[start:] for call in message.calls)
        estimator = view.token_sums.estimator
        calls = estimator.tokens(sum(estimator.measure(message) for message in messages[start:] if message.calls))
        return start if waiting or calls <= _MAX_CALLS_SHARE * room else end

    def _unread_results(self, room: int) -> Iterator[tuple[int, int]]:
        """Yields where results are that no reply has followed, newest first, in their share of the room."""
        messages, estimator = self.request.messages, self.request.view.token_sums.estimator
        left = int(_UNREAD_SHARE * room)
        for index in range(len(messages) - 1, -1, -1):
            if messages[index].role == "assistant":
                return
            for place, part in enumerate(messages[index].parts):
                if can_shorten(part):
                    size = estimator.tokens(estimator.measure(Message("tool", (part,))))
                    if size <= left:
                        left -= size
                        yield index, place

    def _is_shortened(self, index: int, place: int, part: Part) -> bool:
        return can_shorten(part) and (index, place) not in self.unread

    def _without_results(self, index: int) -> Message:
        """Returns a message without the results that would be shortened."""
        message = self.request.messages[index]
        kept = [part for place, part in enumerate(message.parts) if not self._is_shortened(index, place, part)]
        return structs.replace(message, parts=tuple(kept))

    def _cut_units(self, index: int, rest: Message) -> int:
        """Returns the size of a message with its long results cut."""
        cut = len(self.request.messages[index].parts) - len(rest.parts)
        return self.request.view.token_sums.estimator.measure(rest) + self._mark_units * cut

    def _without_shortened(self, index: int) -> Message:
        message = self.request.messages[index]
        parts = tuple(part for place, part in enumerate(message.parts) if (index, place) not in self.shortened)
        return structs.replace(message, parts=parts)

    # -- the plan -----------------------------------------------------------------------------------

    def plan(self) -> Plan | Skip:
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
        return Plan(
            self.cut,
            notes=self._notes(page),
            edits=self._edits(page),
            target=self.limit,
            strategy="ledger",
            ledger=partial(self._carried, min(PAGE_TOKENS, _free_tokens(self.request, self.limit)), page),
        )

    def _earlier_cut(self, left: int) -> int:
        """Returns an earlier start of the trail for the room that is left, if it is worth another page."""
        cut = self.cut
        if left < _EXTENSION_SHARE * self.limit or self.shortened:
            return cut
        for step in self.steps:
            if step.cut < self.cut and (left := left - step.size) >= 0:
                cut = step.cut
        return cut

    def _fit_page(self) -> LedgerPage | None:
        """Returns the largest page that fits, together with the lines of shortened results; None if none fits."""
        fixed = self._size(LedgerPage("", {}), ())
        room = min(PAGE_TOKENS, self.limit - fixed)
        if room <= 0:
            return None
        renderer, last = self._page_renderer(), LedgerPage("", {})
        best: tuple[int, LedgerPage] | None = None
        characters = int(room * _FIRST_GUESS * self._chars_per_token(room))
        fitting, too_large = 0, 0  # the most characters that fitted, and the fewest that did not
        for _ in range(_MAX_ATTEMPTS):
            page = renderer.render(characters)
            used = max(1, self._size(page, self._notes(page)) - fixed)
            if used <= room:
                fitting = max(fitting, characters)
                best = best if best is not None and best[0] > used else (used, page)
                if used >= room * _FULL_SHARE or characters > 8 * self.request.view.token_sums.cumulative[-1]:
                    break
            else:
                too_large = min(too_large or characters, characters)
            change = min(2.0, room * _AIM_SHARE / used)
            characters = int(characters * (_SHRINK_FACTOR if used > room and page.shows_same(last) else change))
            if fitting and too_large and not fitting < characters < too_large:
                characters = (fitting + too_large) // 2
            last = page
        return best[1] if best else None

    def _keep_newest_whole(self, page: LedgerPage) -> int:
        """Leaves the newest results whole as far as there is room; returns the tokens that are still left."""
        sums = self.request.view.token_sums
        left = self.limit - self._size(page, self._notes(page))
        for index, edits in reversed(self._edits(page).items()):
            whole = sums.cumulative[index + 1] - sums.cumulative[index]
            shortened = sums.estimator.measure(apply_edits(self.request.messages[index], edits))
            more = 1 + sums.estimator.tokens(max(0, whole - shortened))
            if more > left:
                break
            left -= more
            self.shortened -= {(index, edit.part) for edit in edits}
        return left

    def _plan_without_page(self) -> Plan | Skip:
        """Returns the plan without a page and carries the notes: a later round may have room."""
        plan = archive_before(self.request, self.cut, "ledger")
        if isinstance(plan, Skip):
            return plan
        remark = "The notes do not fit next to the fixed content; they are carried to the next round."
        ledger = partial(self._carried, _MIN_CARRIED_TOKENS, LedgerPage("", {}))
        return structs.replace(plan, remarks=(remark,), ledger=ledger)

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
            ledger, self.history.name_cache, self.sections.name_scores, _CARRIED_CHARS_PER_TOKEN * room
        )
        return cast(Json, msgspec.to_builtins(ledger))

    def _chars_per_token(self, room: int) -> float:
        """Estimates characters per token from lines that the page may contain."""
        estimator, sample = self.request.view.token_sums.estimator, self.sections.sample(room)
        return max(1.0, len(sample) / max(1, count_tokens(estimator, sample)))

    def _page_renderer(self) -> PageRenderer:
        archived = "1 message is" if self.count == 1 else f"{self.count:,} messages are"
        cut_note = f" {CUT_NOTE}" if self.shortened else ""
        where = _WITH_RECALL if self.request.view.has_recall else _WITHOUT_RECALL
        intro = f"{PAGE_OPENING}{archived} {where}{self._round_note()}{self._progress_note()}{cut_note}]"
        shortened = {(self.places[index], part) for index, part in self.shortened}
        trail = sum(step.size for step in self.steps if step.cut >= self.cut)
        trail_chars = int(trail * self._chars_per_token(PAGE_TOKENS))
        return PageRenderer(self.sections, self.visible, self.staying, shortened, intro, trail_chars)

    def _round_note(self) -> str:
        """Returns the number of the round: a page is all that a process without the checkpoint knows of it."""
        round = self.request.view.checkpoint.carry.round + (self.count > self.earlier_count)
        return f" {ROUND}{round:,}." if round > 1 else ""

    def _progress_note(self) -> str:
        """Returns a note for the case that the last user message stays but work done after it is archived."""
        if self.request.is_answered(self.cut):
            return _ANSWERED_NOTE
        return _IN_PROGRESS_NOTE if self.request.newest_turn(self.cut) is not None else ""

    def _notes(self, page: LedgerPage) -> tuple[Message, ...]:
        """Returns the notes to show; without archived messages there is nothing to note."""
        return (*self.other_notes, *([framed_message(page.text)] if self.count else ()))

    def _edits(self, page: LedgerPage) -> dict[int, tuple[Edit, ...]]:
        """Returns the edits that replace shortened results by their selected lines."""
        edits: dict[int, tuple[Edit, ...]] = {}
        for index, part in sorted(self.shortened):
            edits[index] = (*edits.get(index, ()), Edit(part, self._shortened_text(index, part, page)))
        return edits

    def _shortened_text(self, index: int, part: int, page: LedgerPage) -> str:
        result = cast(ToolResult, self.request.messages[index].parts[part])
        lines = [line.text for line in page.result_lines.get((self.places[index], part), ())]
        return shortened_text(result, self.places[index], lines or last_line(result))

    def _size(self, page: LedgerPage, notes: tuple[Message, ...]) -> int:
        """Returns the tokens of the whole context with this page."""
        view, measure = self.request.view, self.request.view.token_sums.estimator.measure
        units = sum(map(measure, notes)) - sum(map(measure, self.old_notes))
        for index, changes in self._edits(page).items():
            before = view.token_sums.cumulative[index + 1] - view.token_sums.cumulative[index]
            units += measure(apply_edits(view.messages[index], changes)) - before
        return self.request.tokens_after_cut(self.cut, units)
