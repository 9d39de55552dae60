"""Shortening: cuts the middle of long tool results, for contexts in which nothing more may be archived.

Results that no reply has followed are whole wherever they fit: only here may they be cut.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

import msgspec

from ..context import Plan, Request, Skip
from ..context.references import READ_TOOL, reference
from ..errors import Outcome
from ..ledger import HistoryExtractor, find_constraints, find_task
from ..messages import Message, ToolResult, change
from ..tokens import count_tokens
from ..tokens.budget import require_positive
from ..types import Strategy
from .base import BaseStrategy
from .history import is_clearable, message_numbers, previous_ledger, program_messages
from .trail import shortened_text

_MARK_CHARS = 16
"""Results up to this length are no longer than the mark that would replace them."""
_MIN_END_CHARS = 40
"""Shorter ends of a result are not worth showing."""
_ASK = "ask for them in parts"
_NOTES_SHARE = 0.25
"""Share of the room that is left to notes where unread results do not fit anyway."""
_FRAME_TOKENS = 200
"""Opening, headings and citations of the smallest note."""
_MAX_PART_LINE = 160
"""A part of a line up to this length is left out at the middle."""
LEFT_OUT = "[… {:,} characters left out: {}]"
"""Stands for the middle of a result."""


class ShortenResults(BaseStrategy):
    """Keeps beginning and end of the longest tool results, each as long as fits, behind a mark that cites the whole."""

    def __init__(self, max_tokens: int) -> None:
        require_positive("max_tokens", max_tokens)
        self.max_tokens = max_tokens

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Plan | Skip:
        view = request.view
        texts = _shortened(
            request,
            ((index, place) for index, message in enumerate(view.messages) for place in range(len(message.parts))),
            lambda units: view.tokens_edited(units) <= self.max_tokens,
        )
        if not texts:
            return Skip(Outcome.NOTHING_TO_COMPACT, "no tool result needs to be shortened")
        return request.plan.edit(texts, unread=True).made_by("shortened results")


def lift_target(request: Request) -> Request:
    """Returns the request with a target that unread results leave room below."""
    if request.target is None or not request.plan.unread:
        return request
    lifted = request.at(request.plan)
    lifted.target = request.reachable(request.target)
    return lifted


def fit_unread_results(request: Request, strategy: Strategy) -> Request:
    """Returns the request for a strategy: with a target that unread results leave room below, whole if they fit.

    They fit if the context does that has nothing else beside system prompt, tools and the user's newest message, and
    still has room for the task and the user's rules, where notes have them. Else beginning and end of the longest are
    left.
    """
    writes_notes = getattr(strategy, "writes_notes", True)
    return lift_target(request.at(_shorten_unread(request, has_notes=bool(request.notes) or writes_notes)))


def _shorten_unread(request: Request, *, has_notes: bool) -> Plan:
    budget, plan, estimator = request.budget, request.plan, request.view.token_sums.estimator
    if budget is None or (fixed := plan.fixed_tokens()) <= (1 - _NOTES_SHARE) * budget:
        return plan
    least = _least_note_tokens(request) if has_notes else 0
    if fixed + least <= budget:
        return plan
    results = sum(estimator.measure(Message("tool", (request.messages[at].parts[place],))) for at, place in plan.unread)
    free = max(0, budget - fixed + estimator.tokens(results))
    aim = budget - (min(free, max(least, int(free * _NOTES_SHARE))) if least else 0)
    texts = _shortened(request, plan.unread, lambda units: plan.fixed_tokens(units) <= aim)
    shorter = plan.edit(texts, unread=True)
    if shorter.fixed_tokens() > budget - least:
        return msgspec.structs.replace(plan, keeps_unread=False)
    remark = "A tool result that the model has not read yet does not fit: its beginning and its end are shown."
    return shorter.remarked(remark) if texts else plan


def _least_note_tokens(request: Request) -> int:
    """Returns the tokens of a note with the task and the user's rules; 0 if there is nothing to note."""
    view, notes = request.view, program_messages(request.view)
    if not (request.notes or request.plan.last_cut > view.leading_system_count + len(view.turns[-1:])):
        return 0
    history = HistoryExtractor(previous_ledger(request))
    spoken = [index for index in view.turns[:-1] if index not in notes]
    numbers = message_numbers(request, previous_ledger(request).archived)
    history.read([request.messages[index] for index in spoken], [numbers[index] for index in spoken])
    users = history.ledger().users
    rules = [rule for line in users for rule in find_constraints(line.text)]
    texts = [task.text] if (task := find_task(users)) else []
    return _FRAME_TOKENS + count_tokens(view.token_sums.estimator, "\n".join([*texts, *rules]))


def _shortened(
    request: Request, places: Iterable[tuple[int, int]], fits: Callable[[int], bool]
) -> dict[int, dict[int, str | None]]:
    """Returns the texts of the longest results with which the context fits, changed by so many units.

    Each is at most so many characters shorter than the longest; none if it fits as it is.
    """
    view = request.view
    sums, numbers = view.token_sums, message_numbers(request, previous_ledger(request).archived)
    results = [
        (index, place, part)
        for index, place in sorted(places)
        if isinstance(part := view.messages[index].parts[place], ToolResult)
        and is_clearable(part)
        and len(part.text) > _MARK_CHARS
    ]
    longest = max((len(part.text) for _, _, part in results), default=0)

    def texts(removed: int) -> dict[int, dict[int, str | None]]:
        made: dict[int, dict[int, str | None]] = {}
        for index, place, part in results:
            if len(part.text) > longest - removed:
                number = numbers[index]
                text = shortened_text(part, number, _ends(part.text, longest - removed, number, view.has_recall))
                if len(text) < len(part.text):
                    made.setdefault(index, {})[place] = text
        return made

    def fits_without(removed: int) -> bool:
        units = 0
        for index, changes in texts(removed).items():
            units -= sums.cumulative[index + 1] - sums.cumulative[index]
            units += sums.estimator.measure(change(view.messages[index], changes))
        return fits(units)

    if not results or fits(0):
        return {}
    return texts(min(longest, bisect_left(range(longest + 1), True, key=fits_without)))


def _ends(text: str, room: int, number: int, has_recall: bool) -> list[str]:
    """Returns beginning and end of a result around a line on how to read the rest; nothing where both are too short."""
    gap = LEFT_OUT.format(len(text), f"{READ_TOOL} {reference(number)} shows them" if has_recall else _ASK)
    half = (room - len(gap)) // 2
    if half < _MIN_END_CHARS:
        return []
    head, tail = text[:half], text[-half:]
    if (at := head.rfind("\n", -_MAX_PART_LINE)) > 0:
        head = head[:at]
    if (at := tail.find("\n", 0, _MAX_PART_LINE)) >= 0:
        tail = tail[at + 1 :]
    count = len(text) - len(head) - len(tail)
    return [head, gap.replace(f"{len(text):,}", f"{count:,}", 1), tail]
