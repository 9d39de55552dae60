"""The trail: the newest steps as native messages, with long tool results cut to a few lines.

It follows a page or a summary. Calls and words of many steps say more about the next step than the whole results of a
few; the newest results stay whole as far as there is room.

A step is a run of messages between two legal cuts: usually one reply with its calls and their results. The next steps
repeat a command or a path rather than a long text, and newer text rather than older text: the worth of a step falls
with the length of its texts and with its age, until a line of the notes is worth more. Text that a newer step shows
too is worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from math import sqrt
from typing import NamedTuple, cast

from msgspec import structs

from ..context import Plan, Request, Skip
from ..ledger import (
    READABLE_CHARS,
    HistoryExtractor,
    Ledger,
    PartKey,
    failed_exit_line,
    find_constraints,
    find_user_replies,
    head_and_tail,
    part_key,
    take_fitting,
)
from ..ledger.entries import decay
from ..ledger.lines import find_shingles, unseen_share
from ..ledger.names import find_exact_names
from ..messages import (
    Media,
    Message,
    Part,
    Text,
    ToolResult,
    change,
    describe_media,
)
from ..tokens.budget import require_positive
from .base import BaseStrategy
from .history import is_clearable, message_numbers, message_texts, message_tokens, previous_ledger
from .windows import KEEP_TOKENS, KeepRecent, archives_nothing, snap_to_turn

CUT_MARK = "[cut: {:,}]"
"""Begins a shortened result and refers to the whole one."""
CUT_NOTE = "Results that begin with a cut mark show selected lines of the message it names."
REQUEST_NOTE = "A cut mark inside a user message stands for its middle."
_GAP = "[…]"
_ANY_NUMBER = 10_000
"""Stands for a message's number where only the size counts."""
_SHORT_RESULT_CHARS = 100
"""Results up to this length are never shortened."""
_SHOWN_CHARS = 400
"""Characters shown of a shortened result after a summary."""
_REQUEST_SHARE = 0.25
"""The newest user message stays whole if it takes no more than this share of the room, or has no reply yet."""
_MIN_REQUEST_CHARS = 2 * READABLE_CHARS
"""Shorter user messages always stay whole."""
_MAX_REPLY_SHARE = 0.6
"""The newest reply is archived if it takes more than this share of the room, unless a call of it has no result yet."""
_TRAIL_SHARE = 0.6
"""Share of the room for the trail with its long results cut; the rest keeps the newest results whole."""
_HALF_AGE = 60
"""Age in messages at which a step's text is half as likely to be written again as that of the newest."""
_SHORT_SHARE, _SHORT_CHARS = 0.675, 150
"""Share of a short and new text that is written again, and the length from which a text counts as long."""
MAX_SHARE, MAX_TALK_SHARE = 0.75, 0.2
"""Largest share of the room for the trail, without the lines of its shortened results; in a conversation without files,
where hardly anything is written again."""


def can_shorten(part: Part) -> bool:
    """Whether a part is a tool result that is worth cutting."""
    return isinstance(part, ToolResult) and is_clearable(part) and len(part.text) > _SHORT_RESULT_CHARS


def shortened_text(result: ToolResult, number: int, lines: list[str]) -> str:
    """Returns what is shown of a shortened result: the mark, the exit code of a failure, these lines, and its media."""
    failure = failed_exit_line(result)
    exited = [failure] if failure and not any(failure in line for line in lines) else []
    media = [describe_media(item) for item in result.content if isinstance(item, Media)]
    return "\n".join([CUT_MARK.format(number), *exited, *lines, *media])


class ShortenedRequest(NamedTuple):
    """The newest user message without its middle: whole, it would take the room of the work on it."""

    place: int
    """Index of the live message."""
    part: int
    head: str
    rules: tuple[str, ...]
    """Rules from the middle, which stay."""
    tail: str
    saved: int = 0
    """Tokens that the middle takes."""

    def text(self, number: int, lines: Iterable[str] = ()) -> str:
        """Returns what is shown of the message with this number, with these lines of its middle."""
        shown = dict.fromkeys(line for line in (*self.rules, *lines) if line not in self.head and line not in self.tail)
        return "\n".join([self.head, CUT_MARK.format(number), *shown, *([_GAP] if shown else ()), self.tail])


def shorten_request(request: Request, free: int) -> ShortenedRequest | None:
    """Shortens the newest user message if it takes too large a share of the room; `free` tokens are left beside it.

    A message without a reply stays whole: the model has not read it yet.
    """
    view, estimator = request.view, request.view.token_sums.estimator
    place = view.turns[-1] if view.turns else -1
    if place < 0 or (view.pins and view.ids[place] in view.pins):
        return None
    message = view.messages[place]
    texts = [(len(one.text), at) for at, one in enumerate(message.parts) if isinstance(one, Text)]
    length, part = max(texts, default=(0, 0))
    if length <= _MIN_REQUEST_CHARS or all(later.role != "assistant" for later in view.messages[place + 1 :]):
        return None
    whole = message_tokens([message], estimator)
    most = int(max(0, free + whole) * _REQUEST_SHARE)
    room = max(_MIN_REQUEST_CHARS, length * most // max(1, whole))
    if length <= room:
        return None
    text = cast(Text, message.parts[part]).text
    rules = take_fitting(find_constraints(text), room // 2)
    head, tail = head_and_tail(text, room - sum(map(len, rules)) - len(rules))
    found = ShortenedRequest(place, part, head, tuple(rules), tail)
    left = message_tokens([change(message, {part: found.text(_ANY_NUMBER)})], estimator)
    return found._replace(saved=whole - left) if left < whole else None


def add_hidden_lines(ledger: Ledger, history: HistoryExtractor, parts: set[PartKey], shown: set[str]) -> None:
    """Adds to a ledger the lines of shortened results that are not shown; their messages are not archived yet."""
    known, errors = {line.text for line in ledger.lines}, {line.text for line in ledger.errors}
    hidden = [line for line in history.lines.values() if part_key(line) in parts and line.text not in shown]
    names = dict.fromkeys(name for line in hidden for name in history.name_cache.find_exact(line.text))
    ledger.lines += [
        structs.replace(line, time=ledger.time, offset=ledger.offset)  # the clock stands at the cut
        for line in hidden
        if line.text not in known
    ]
    ledger.errors += [
        line
        for line in history.errors.values()
        if part_key(line) in parts and line.text not in errors and line.text not in shown
    ]
    ledger.names |= {name: seen for name in names if name not in ledger.names and (seen := history.names.get(name))}


class ShortenedTrail:
    """The newest steps with their long results cut, except for the user's words and what the model has not read yet."""

    def __init__(self, request: Request, room: int, long_request: ShortenedRequest | None) -> None:
        self.request = request
        self._long_request = long_request
        self._whole = {*find_user_replies(request.messages), *request.plan.unread}
        self.steps = list(self._find_steps(room))

    def is_shortened(self, index: int, place: int, part: Part) -> bool:
        return can_shorten(part) and (index, place) not in self._whole

    def _find_steps(self, room: int) -> Iterator[TrailStep]:
        """Yields the newest steps, newest first, as far as the trail can reach; what stays anyway takes no room."""
        view, last = self.request.view, self.request.plan.last_cut
        end, units, texts, size = len(view.messages), 0, list[str](), 0
        oldest = max(view.leading_system_count, max(view.synthetic, default=-1) + 1)
        for index in range(end - 1, oldest - 1, -1):
            rest = self._without_results(index)
            units += self._cut_units(index, rest) if index < last else 0
            texts += message_texts(rest)
            if view.token_sums.estimator.tokens(units) > room:
                return
            if index <= last and view.links.is_legal_cut(index):
                taken = view.token_sums.estimator.tokens(units)
                yield TrailStep(index, end - index, tuple(texts), taken - size)
                texts, size = [], taken

    @cached_property
    def _mark_units(self) -> int:
        measure = self.request.view.token_sums.estimator.measure
        mark = (Text(CUT_MARK.format(_ANY_NUMBER)),)
        return measure(Message("tool", (ToolResult("", mark),))) - measure(Message("tool", ()))

    def _without_results(self, index: int) -> Message:
        """Returns a message without the results that would be shortened; a long request without its middle."""
        message, long = self.request.messages[index], self._long_request
        if long and long.place == index:
            message = change(message, {long.part: long.text(_ANY_NUMBER)})
        kept = [part for place, part in enumerate(message.parts) if not self.is_shortened(index, place, part)]
        return structs.replace(message, parts=tuple(kept))

    def _cut_units(self, index: int, rest: Message) -> int:
        """Returns the size of a message with its long results cut."""
        cut = len(self.request.messages[index].parts) - len(rest.parts)
        return self.request.view.token_sums.estimator.measure(rest) + self._mark_units * cut

    def latest_cut(self, room: int) -> int:
        """Returns the latest possible cut: the newest user message and the newest reply stay, and never nothing.

        The user answers the reply, or its calls are not finished. One that takes most of the room is archived.
        """
        return min(self._latest_cut(room), self.request.plan.last_cut)

    def _latest_cut(self, room: int) -> int:
        messages, view = self.request.messages, self.request.view
        links, end = view.links, len(messages)
        start = links.cut_at_or_before(max(0, links.last_spoken))
        if view.turns and view.turns[-1] == end - 1:
            return view.turns[-1]
        if not view.turns and view.split_turn is None:
            return min(start, links.cut_at_or_before(max(0, end - 1)))
        answered = {result.call_id for message in messages[start:] for result in message.results}
        waiting = any(call.id not in answered for message in messages[start:] for call in message.calls)
        waiting = waiting or links.has_open(start)
        replies = (message for message in messages[start:] if message.role == "assistant")
        size = message_tokens(replies, view.token_sums.estimator)
        return start if waiting or size <= _MAX_REPLY_SHARE * room else end


class KeepTrail(BaseStrategy):
    """Keeps the newest steps within `keep_tokens` and the room that the target leaves; cuts their long results."""

    def __init__(self, keep_tokens: int = KEEP_TOKENS, *, leaves: float = 0.6) -> None:
        require_positive("keep_tokens", keep_tokens)
        self.keep_tokens = keep_tokens
        self.leaves = leaves
        """Share of the room that is reserved for a summary."""

    def __call__(self, request: Request) -> Plan | Skip:
        most = self.keep_tokens
        if request.target is not None:
            free = request.target - request.plan.tokens_after_cut(len(request.messages))
            most = min(most, max(0, int(free * (1 - self.leaves))) + request.plan.unread_tokens)
        trail = _Trail(request)
        unread = min(most, request.plan.unread_tokens)
        cut = trail.start(unread + int((most - unread) * _TRAIL_SHARE))
        if archives_nothing(request, cut):  # all steps are in the trail: a summary replaces the oldest of them
            return KeepRecent(self.keep_tokens, leaves=self.leaves)(request)
        return request.plan.edit(trail.texts(cut, most)).archive(cut).made_by("keep trail")


class _Trail:
    """The live messages of a request with their long results cut, and their sizes."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.numbers = message_numbers(request, previous_ledger(request).archived)
        self._whole = {*find_user_replies(request.messages), *request.plan.unread}
        self.measure = request.view.token_sums.estimator.measure

    def start(self, room: int) -> int:
        """Returns where the trail of this many tokens starts: at a turn, or inside the newest one."""
        estimator, end = self.request.view.token_sums.estimator, len(self.request.messages)
        units, raw = 0, end
        for index in range(end - 1, -1, -1):
            units += self.measure(change(self.request.messages[index], self._texts(index)))
            if estimator.tokens(units) > room:
                break
            raw = index
        return snap_to_turn(self.request, raw, lambda cut: cut >= raw)

    def texts(self, cut: int, room: int) -> dict[int, dict[int, str | None]]:
        """Returns the texts of the cut results in the trail; the newest results stay whole as far as there is room."""
        messages, estimator = self.request.messages, self.request.view.token_sums.estimator
        trail = range(cut, len(messages))
        found = {index: texts for index in trail if (texts := self._texts(index))}
        used = sum(self.measure(change(messages[index], found.get(index, {}))) for index in trail)
        for index in reversed(list(found)):
            used += self.measure(messages[index]) - self.measure(change(messages[index], found[index]))
            if estimator.tokens(used) > room:
                break
            del found[index]
        return found

    def _texts(self, index: int) -> dict[int, str | None]:
        """Returns the texts of a message's long results, cut."""
        texts: dict[int, str | None] = {}
        for place, part in enumerate(self.request.messages[index].parts):
            if can_shorten(part) and (index, place) not in self._whole:
                result = cast(ToolResult, part)
                text = shortened_text(result, self.numbers[index], result.text[:_SHOWN_CHARS].rstrip().splitlines())
                if len(text) < len(result.text):
                    texts[place] = text
        return texts


class TrailStep(NamedTuple):
    """A step with which the trail may begin."""

    cut: int
    """Index of its first message."""
    age: int
    """Number of messages from there to the end."""
    texts: tuple[str, ...]
    """Words and values of calls, which stay whole, and short results, each apart."""
    size: int
    """The room that it takes with its long results cut."""


def choose_trail(
    steps: Iterable[TrailStep],
    room: int,
    reserved: int,
    max_share: float,
    scores: dict[str, float],
    per_character: float,
    price: Callable[[int], float],
) -> int | None:
    """Returns the cut with which the trail gains most over notes in the same room; None if no trail gains anything.

    `steps` begin with the newest. `reserved` is the room of the notes' fixed sections, `price` the score of one more
    character of notes in so much room, `per_character` that of a character which will be written again.
    """
    best, best_cut, gain, spent = 0.0, None, 0.0, 0
    seen: set[str] = set()
    shown: set[str] = set()
    for step in steps:
        spent += step.size
        if spent > min(max_share * room, room - reserved):
            break
        for text in step.texts:
            names = [name for name in dict.fromkeys(find_exact_names(text)) if name not in seen]
            seen.update(names)
            gain += sum(scores.get(name, 0.0) for name in names)
            shingles = find_shingles(text)
            gain += per_character * reused_characters(len(text), step.age) * unseen_share(shingles, shown)
            shown.update(shingles)
        gain -= step.size * price(room - reserved - spent)
        if gain >= best:
            best, best_cut = gain, step.cut
    return best_cut


def reused_characters(length: int, age: int) -> float:
    """Returns how much of a text the next steps are likely to write again."""
    return length * _SHORT_SHARE * decay(age, _HALF_AGE) / sqrt(1 + length / _SHORT_CHARS)
