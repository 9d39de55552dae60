"""Search shared by every store: queries, searchable documents, filters, ranking, snippets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import msgspec

from ..context.events import Event, EventKind, lane_key, try_message_in
from ..messages import Json, Media, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from .base import Hit, Where

SNIPPET_LENGTH = 160
"""Approximate length of a snippet in characters."""
_MAX_OCCURRENCES = 10_000
"""Occurrences among which a snippet is chosen."""
_BLOCK_LENGTH = 4_096
_CONTROL_CHARACTERS = dict.fromkeys((*range(32), 127), " ")


def normalize(text: str) -> str:
    """Case-folds, applies NFKC and replaces control characters with spaces."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).casefold()
    return text.lower().translate(_CONTROL_CHARACTERS)


def make_snippet(text: str, words: Sequence[str]) -> str:
    """Returns one line of context around the position where most words occur close together."""
    at = _best_position(text, words)
    start = max(0, at - SNIPPET_LENGTH // 3)
    end = start + SNIPPET_LENGTH
    piece = " ".join(text[start:end].split())
    return ("…" if start else "") + piece + ("…" if end < len(text) else "")


def _best_position(text: str, words: Sequence[str]) -> int:
    pattern = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)
    found = [(match.start(), match[0].lower()) for match in islice(pattern.finditer(text), _MAX_OCCURRENCES)]
    if not found:
        return _normalized_position(text, words)
    best, most, first = found[0][0], 0, 0
    for last, (end, _) in enumerate(found):
        while end - found[first][0] > SNIPPET_LENGTH // 2:
            first += 1
        near = len({word for _, word in found[first : last + 1]}) if last - first < 50 else 0
        if near > most:
            best, most = found[first][0], near
    return best


def _normalized_position(text: str, words: Sequence[str]) -> int:
    """Position of a word that matches only after normalisation, such as `STRASSE` in `Straße`.

    Block by block, since a normalised text does not tell where its characters came from.
    """
    longest = max(map(len, words), default=0)
    for start in range(0, len(text), _BLOCK_LENGTH):
        block = text[start : start + _BLOCK_LENGTH + longest]
        if any(word in normalize(block) for word in words):
            return start + _position_in_block(block, words)
    return 0


def _position_in_block(block: str, words: Sequence[str]) -> int:
    """Last position from which the rest of the block still has a word that the whole block has."""
    word = next(word for word in words if word in normalize(block))
    first, last = 0, len(block)
    while last - first > 1:
        middle = (first + last) // 2
        if word in normalize(block[middle:]):
            first = middle
        else:
            last = middle
    return first


UNSEGMENTED_FROM = "\u0e00"
"""First character of the scripts that do not separate words by spaces, and of symbols that are no letters."""
MAX_WORD_LENGTH = 40
"""Longer runs of characters are not indexed as words."""
HALF_SCORE_LENGTH = 2000
"""Length of a text at which its score is halved."""


class SearchRequest(msgspec.Struct, frozen=True):
    """Arguments of one search."""

    query: str
    session_id: str | None
    owner: str | None
    where: Where
    limit: int
    offset: int


class QueryScore(msgspec.Struct, frozen=True):
    """How well a text matches a query."""

    value: float
    whole_words: bool
    """Every word of the query occurs as a whole word, not only inside a longer one."""


class Query:
    """Words that must all occur, in any order, anywhere in a text. A query has no syntax."""

    def __init__(self, text: str) -> None:
        words = normalize(text).split()
        self.words = tuple(dict.fromkeys(words))
        self._phrase = " ".join(words)

    @cached_property
    def has_word_boundaries(self) -> bool:
        """Whether every word can match as a whole word; false for Chinese, emoji or `--`."""
        return all(
            len(word) <= MAX_WORD_LENGTH and max(word) < UNSEGMENTED_FROM and any(map(str.isalnum, word))
            for word in self.words
        )

    @cached_property
    def _whole_word_patterns(self) -> list[re.Pattern[str]]:
        return [re.compile(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])") for word in self.words]

    def score(self, normalized: str) -> QueryScore | None:
        """Returns None unless every word occurs; scores frequency, whole words, adjacency and short texts higher."""
        counts = [normalized.count(word) for word in self.words]
        if not counts or not all(counts):
            return None
        whole = (
            [bool(pattern.search(normalized)) for pattern in self._whole_word_patterns]
            if self.has_word_boundaries
            else []
        )
        score = sum(count / (count + 1) for count in counts) + sum(whole) / 2
        if len(self.words) > 1 and self._phrase in normalized:
            score += 1
        return QueryScore(score / (1 + len(normalized) / HALF_SCORE_LENGTH), bool(whole) and all(whole))

    def cannot_match(self, body: str) -> bool:
        """Cheap pre-check on the encoded JSON: plain ASCII words appear there unchanged. False if unsure."""
        if not body.isascii() or "\\u" in body:
            return False
        lower = body.lower()
        return any(word not in lower and word.isascii() and not _JSON_ESCAPED & set(word) for word in self.words)


_JSON_ESCAPED = frozenset('"\\')
"""Characters that JSON escapes."""
_KINDS_WITHOUT_TEXT = frozenset((EventKind.UNDO, EventKind.PIN, EventKind.REDACTION))
"""Kinds of event that contain nothing but ids."""
_SKIPPED_FIELDS = frozenset(("type", "id", "call_id", "status", "signature", "encrypted_content"))
"""Fields of provider-specific parts that are not indexed."""


class SearchDocument(msgspec.Struct, frozen=True):
    """The searchable content of one event."""

    text: str = ""
    role: str | None = None
    tools: tuple[str, ...] = ()
    """Tools that the event calls, and those whose results name their tool."""
    unnamed_results: tuple[str, ...] = ()
    """Call ids of tool results that do not name their tool, as in some wire formats."""


def search_document(event: Event) -> SearchDocument:
    """Returns the searchable content of an event; empty for a restored copy, since its source is indexed."""
    body = event.body
    if event.kind in _KINDS_WITHOUT_TEXT or "source" in body:
        return SearchDocument()
    if event.kind == EventKind.COMPACTION:
        return SearchDocument(_join_lines(_compaction_texts(body)))
    message = try_message_in(event)
    if message is None:
        return SearchDocument(_join_lines(_texts_in(body)))
    results = message.results
    tools = [call.name for call in message.calls] + [result.name for result in results if result.name]
    return SearchDocument(
        _join_lines(piece for part in message.parts for piece in _part_texts(part)),
        message.role,
        tuple(dict.fromkeys(tools)),
        tuple(result.call_id for result in results if not result.name),
    )


def called_tool(event: Event, call_id: str) -> str | None:
    """Returns the name of the tool that the event calls under this call id."""
    message = try_message_in(event)
    return next((call.name for call in message.calls if call.id == call_id), None) if message else None


def _join_lines(pieces: Iterable[str]) -> str:
    return "\n".join(pieces)


def _part_texts(part: Part | Text | Media | Opaque) -> Iterator[str]:
    match part:
        case Text() | Reasoning():
            yield from _texts_in(part.text)
        case ToolCall():
            yield part.name
            yield from _argument_texts(part.arguments)
        case ToolResult():
            for item in part.content:
                yield from _part_texts(item)
        case Media():
            where = part.url if part.url and not part.url.startswith(("data:", "holdfast-media:")) else None
            yield from filter(None, (part.name, where, part.file_id))
        case Opaque():
            yield from _texts_in({name: value for name, value in part.data.items() if name not in _SKIPPED_FIELDS})


def _argument_texts(arguments: Json | str) -> Iterator[str]:
    """Argument names and values; text that is not JSON is returned unchanged."""
    try:
        yield from _texts_in(msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments, keys=True)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        yield str(arguments)


def _compaction_texts(body: Json) -> Iterator[str]:
    """The summary of a compaction, and those of its notes that do not quote an event."""
    yield from _texts_in(body.get("summary"))
    for item in body.get("head") or ():
        if isinstance(item, dict) and not item.get("ref") and isinstance(message := item.get("message"), dict):
            for part in message.get("parts") or ():
                yield from _texts_in(part.get("text") if isinstance(part, dict) else None)


def _texts_in(value: Any, *, keys: bool = False) -> Iterator[str]:
    """All text inside JSON data, optionally with its keys."""
    if isinstance(value, str):
        yield value
        if "\\" in value and value[:1] in ("{", "["):
            yield from _texts_in_json(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if keys:
                yield str(key)
            yield from _texts_in(inner, keys=keys)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_in(inner, keys=keys)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _texts_in_json(value: str) -> Iterator[str]:
    """Texts of JSON inside a string, where characters such as `ü` may be escaped."""
    try:
        inner = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return
    yield from _texts_in(inner)


RANKING_POOL = 200
"""Number of matches that are ranked against each other: the newest, then the next newest, and so on.

Keeps the cost of ranking constant however long the log is."""
CALL_LOOKBACK = 200
"""Number of events before a tool result in which its call is looked up, if the result does not name its tool."""
EarlierEvents = Callable[[str, Event, str], Iterable[Event]]
"""Returns the events of a session before this one that may contain this call, nearest first."""


class Match(msgspec.Struct, frozen=True):
    """An event that matches a search."""

    session_id: str
    event: Event
    document: SearchDocument
    score: QueryScore
    archived: bool


class EventFilter:
    """Query and conditions of one search; looks up the call of a tool result that does not name its tool."""

    def __init__(self, query: Query, where: Where, earlier: EarlierEvents) -> None:
        self.query = query
        self.where = where
        self._earlier = earlier

    def match(self, session_id: str, event: Event, start: int) -> Match | None:
        """Returns a match or None; `start` is the seq at which the lane's live window begins."""
        where = self.where
        if not _envelope_matches(event, where):
            return None
        archived = event.kind == EventKind.MESSAGE and event.seq <= start and event.id not in where.visible_ids
        if where.archived is not None and (archived is not where.archived or event.kind != EventKind.MESSAGE):
            return None
        document = search_document(event)
        if where.roles and document.role not in where.roles:
            return None
        score = self.query.score(normalize(document.text))
        if score is None or not self._tools_match(session_id, event, document):
            return None
        return Match(session_id, event, document, score, archived)

    def _tools_match(self, session_id: str, event: Event, document: SearchDocument) -> bool:
        where = self.where
        if not where.tools and not where.exclude_tools:
            return True
        tools = self._tool_names(session_id, event, document)
        if where.tools and tools.isdisjoint(where.tools):
            return False
        return not tools or not tools.issubset(where.exclude_tools)

    def _tool_names(self, session_id: str, event: Event, document: SearchDocument) -> set[str]:
        """Names of all tools that an event calls or returns results of, as far as they can be found."""
        called = (
            find_called_tool(self._earlier(session_id, event, call_id), call_id) for call_id in document.unnamed_results
        )
        return {*document.tools, *filter(None, called)}

    def to_hit(self, match: Match) -> Hit:
        return Hit(
            session_id=match.session_id,
            event=match.event,
            snippet=make_snippet(match.document.text, self.query.words),
            role=match.document.role,
            tools=tuple(sorted(self._tool_names(match.session_id, match.event, match.document))),
            archived=match.archived,
        )

    def page(self, matches: list[Match], limit: int, offset: int) -> list[Hit]:
        """Returns one page of all matches, newest first: by seq in one session, by time across several."""
        matches.sort(key=lambda each: (each.event.time, each.session_id, each.event.seq), reverse=True)
        if len({each.session_id for each in matches}) < 2:
            matches.sort(key=lambda each: -each.event.seq)
        whole = (each for each in matches if each.score.whole_words)
        rest = (each for each in matches if not each.score.whole_words)
        return self.page_of_tiers([whole, rest], limit, offset)

    def page_of_tiers(self, tiers: Iterable[Iterable[Match]], limit: int, offset: int) -> list[Hit]:
        """Returns one page of consecutive tiers, each newest first; consumes no more of them than needed."""
        ranked = (match for tier in tiers for match in _rank_by_pool(tier))
        return [self.to_hit(match) for match in islice(ranked, max(0, offset), max(0, offset) + max(0, limit))]


def find_called_tool(earlier: Iterable[Event], call_id: str) -> str | None:
    """Returns the tool that the nearest of these events calls under this id."""
    return next(filter(None, (called_tool(event, call_id) for event in earlier)), None)


def _rank_by_pool(newest_first: Iterable[Match]) -> Iterator[Match]:
    rest = iter(newest_first)
    while pool := list(islice(rest, RANKING_POOL)):
        yield from sorted(pool, key=lambda match: -match.score.value)


def _envelope_matches(event: Event, where: Where) -> bool:
    return (
        (not where.kinds or event.kind in where.kinds)
        and (where.lane is None or lane_key(event.lane) == where.lane)
        and (where.since is None or event.time >= where.since)
        and (where.until is None or "" < event.time <= where.until)
    )
