"""What a redaction removes from text that was derived from the redacted message: pages, summaries, carried notes."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, get_args

import msgspec

from ..context import Checkpoint, CompactionParameters, Edit, HeadItem
from ..context.checkpoint import rebase_edits
from ..ledger import PAGE_OPENING, is_section_heading
from ..ledger.entries import Ledger
from ..ledger.lines import LineKind
from ..messages import Json, Message, Part, Text, ToolCall, ToolResult, add_frame, is_framed, strip_frame
from ..strategies.history import user_topics
from ..summaries.structured_headings import OWN_HEADINGS, OWN_TITLE
from ..tokens import part_text

REDACTED = "[redacted]"
_MIN_QUOTE, _MIN_WORD = 12, 3
"""Shorter texts and words are too common to be searched in notes."""
_SPACED, _NAME, _WORD = re.compile(r"\S+"), re.compile(r"[\w.@/#+=:~%-]+"), re.compile(r"[^\W_]+")
_EDGES = "`'\"()[]{}<>.,:;!?"
_HEADING = re.compile(r"#+ (.*)")
_UNTOUCHED_FIELDS = frozenset({"kind", "status", "id"})
_UNTOUCHED_TEXTS = frozenset(get_args(LineKind))
_DATA_FIELDS = frozenset({"input", "arguments", "args", "response"})
"""Fields of messages whose value is the tool's own data, its keys included."""


class Scrubber(Protocol):
    """Returns a text without what was redacted."""

    def __call__(self, text: str) -> str: ...


class TextScrubber:
    """Removes one text wherever it occurs, also as it is written inside JSON."""

    def __init__(self, secret: str) -> None:
        written = (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
        self._forms = sorted(set(written), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, REDACTED)
        return text


class NotesScrubber:
    """Removes texts, their lines, and each of their words that no other message of the log has.

    Notes select, shorten and rearrange, so whole texts alone would leave names and clipped lines behind.
    """

    def __init__(self, texts: Sequence[str], others: Iterable[str]) -> None:
        lines = [line.strip() for text in texts for line in text.splitlines()]
        self._quotes = sorted({text for text in [*texts, *lines] if len(text) >= _MIN_QUOTE}, key=len, reverse=True)
        self._words = set[str]().union(*map(_words, texts))
        self._common = set[str]()
        for text in others if self._words else ():
            self._common |= _words(text)
        self._words -= self._common
        self._sorted = sorted(self._words)

    def __call__(self, text: str) -> str:
        for quote in self._quotes:
            if quote in text:
                text = text.replace(quote, REDACTED)
        return "\n".join(line if _is_structure(line) else self._scrub_line(line) for line in text.split("\n"))

    def _scrub_line(self, line: str) -> str:
        for pattern in (_SPACED, _NAME, _WORD):
            line = pattern.sub(self._replace, line)
        return line

    def _replace(self, found: re.Match[str]) -> str:
        run = found[0]
        word = run.strip(_EDGES)
        if word not in self._words and not self._is_cut(word):
            return run
        return run.replace(word, REDACTED)

    def _is_cut(self, word: str) -> bool:
        """Whether the word is the beginning of a removed one, as clipping may leave it."""
        if len(word) < _MIN_WORD or word in self._common:
            return False
        at = bisect_left(self._sorted, word)
        return at < len(self._sorted) and self._sorted[at].startswith(word)


def texts_of(message: Message) -> list[str]:
    """Returns the texts of a message that notes may quote."""
    texts = [part_text(part) for part in message.parts] + [message.text, *user_topics([message])]
    return [*texts, strip_frame(message).partition("\n")[2]] if is_framed(message) else texts


def _words(text: str) -> set[str]:
    found = {run.strip(_EDGES) for pattern in (_SPACED, _NAME, _WORD) for run in pattern.findall(text)}
    return {word for word in found if len(word) >= _MIN_WORD}


def _is_structure(line: str) -> bool:
    """Whether a line is written by the product itself: without it, a page could no longer be read back."""
    if line.startswith((PAGE_OPENING, REDACTED)) or is_section_heading(line):
        return True
    heading = _HEADING.match(line)
    return heading is not None and (heading[1] in OWN_HEADINGS or OWN_TITLE.fullmatch(heading[1]) is not None)


def strings_in(value: Any) -> Iterator[str]:
    """Yields all strings in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item)


def scrub_data(value: Any, scrub: Scrubber, *, keys: bool = False) -> Any:
    """Returns plain data with its strings scrubbed; `keys` tells that its keys are data, too."""
    if isinstance(value, str):
        return value if value in _UNTOUCHED_TEXTS else scrub(value)
    if isinstance(value, dict):
        return {
            (scrub(name) if keys else name): item
            if name in _UNTOUCHED_FIELDS
            else scrub_data(item, scrub, keys=keys or name in _DATA_FIELDS)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [scrub_data(item, scrub, keys=keys) for item in value]
    return value


class DroppedParts(msgspec.Struct, frozen=True):
    """Parts that a redaction dropped from a message: their indices, and the number of parts before."""

    indices: tuple[int, ...]
    count: int


def scrub_checkpoint(
    body: Json, scrub: Scrubber, removed: Iterable[str], dropped: Mapping[str, DroppedParts] | None = None
) -> Json:
    """Returns the body of a compaction event without what was redacted.

    `removed` are the ids of redacted events; what the head shows of another event stays. Without any, a text is removed
    from all of it. `dropped` are the parts that events lost: edits of the others are rebased.
    """
    gone = frozenset(removed)
    checkpoint = msgspec.convert(body, Checkpoint)
    carry = msgspec.structs.replace(
        checkpoint.carry,
        topics=tuple(map(scrub, checkpoint.carry.topics)),
        ledger=_scrub_ledger(checkpoint.carry.ledger, scrub),
        state=scrub_data(checkpoint.carry.state, scrub),
        memory=scrub_data(checkpoint.carry.memory, scrub),
    )
    clean = msgspec.structs.replace(
        checkpoint,
        head=tuple(_scrub_head(item, scrub, gone) for item in checkpoint.head),
        edits={
            id: tuple(msgspec.structs.replace(edit, text=edit.text and scrub(edit.text)) for edit in edits)
            for id, edits in _rebased(checkpoint.edits, dropped or {})
            if id not in gone
        },
        carry=carry,
        summary=checkpoint.summary and scrub(checkpoint.summary),
        parameters=_scrub_parameters(checkpoint.parameters, scrub),
        remarks=tuple(map(scrub, checkpoint.remarks)),
    )
    unknown = {name: value for name, value in body.items() if name not in Checkpoint.__struct_fields__}
    written: Json = msgspec.json.decode(msgspec.json.encode(clean))  # as a store returns it, with lists for tuples
    return {**unknown, **written}


def _rebased(
    edits: Mapping[str, tuple[Edit, ...]], dropped: Mapping[str, DroppedParts]
) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    for id, changes in edits.items():
        lost = dropped.get(id)
        if kept := changes if lost is None else rebase_edits(changes, lost.indices, lost.count):
            yield id, kept


def _scrub_parameters(parameters: CompactionParameters | None, scrub: Scrubber) -> CompactionParameters | None:
    if parameters is None or parameters.instructions is None:
        return parameters
    return msgspec.structs.replace(parameters, instructions=scrub(parameters.instructions))


def _scrub_ledger(ledger: Json | None, scrub: Scrubber) -> Json | None:
    if ledger is None:
        return None
    notes = msgspec.convert(ledger, Ledger)
    names = {name: stats for name, stats in notes.names.items() if scrub(name) == name}
    plain: Json = msgspec.to_builtins(msgspec.structs.replace(notes, names={}))
    clean: Json = scrub_data(plain, scrub)
    return clean | ({"names": msgspec.to_builtins(names)} if names else {})


def _scrub_head(item: HeadItem, scrub: Scrubber, gone: frozenset[str]) -> HeadItem:
    if item.message is None or (gone and item.ref is not None and item.ref not in gone):
        return item
    if item.ref not in gone:
        shown = _scrub_message(item.message, scrub)
    elif is_framed(item.message):  # a quoted pin: the event itself may not be valid here
        shown = item.message.with_parts((Text(add_frame(REDACTED)),))
    else:
        shown = without_content(item.message)
    return msgspec.structs.replace(item, message=shown)


def without_content(message: Message) -> Message:
    """Returns the message without its content: still valid in its place, with its calls and results."""
    bare = tuple(kept for part in message.parts if (kept := _bare(part)) is not None)
    return message.with_parts(bare or (Text(REDACTED),))


def _bare(part: Part) -> Part | None:
    match part:
        case ToolCall():
            return ToolCall(part.id, part.name, {}, part.kind)
        case ToolResult():
            return ToolResult(part.call_id, (Text(REDACTED),), part.is_error, part.name, part.kind)
        case Text():
            return Text(REDACTED)
        case _:
            return None


def _scrub_message(message: Message, scrub: Scrubber) -> Message:
    parts = []
    for part in message.parts:
        if isinstance(part, Text) and (clean := scrub(part.text)) != part.text:
            part = Text(add_frame(clean.rpartition("\n[holdfast:")[0])) if is_framed(message) else Text(clean)
        elif isinstance(part, ToolResult) and (clean := scrub(part.text)) != part.text:
            part = ToolResult(part.call_id, (Text(clean),), part.is_error, part.name, part.kind)
        parts.append(part)
    return message if tuple(parts) == message.parts else message.with_parts(tuple(parts))
