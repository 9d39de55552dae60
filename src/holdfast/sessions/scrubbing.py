"""What a redaction removes from text that was derived from the redacted message: pages, summaries, carried notes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, get_args

import msgspec

from ..context import Checkpoint, CompactionParameters, HeadItem
from ..ledger import PAGE_OPENING, is_section_heading
from ..ledger.entries import Ledger
from ..ledger.lines import LineKind
from ..messages import (
    Edit,
    Json,
    Media,
    Message,
    Opaque,
    Part,
    Path,
    Reasoning,
    Replace,
    Text,
    ToolCall,
    ToolResult,
    add_frame,
    drop_parts,
    is_framed,
    rebase,
    replace_payload,
    strip_frame,
    user_topics,
)
from ..messages.payload import ERROR_MARK
from ..summaries.structured_headings import OWN_HEADINGS, OWN_TITLE
from ..tokens import part_text
from .text_scrubber import REDACTED, TextScrubber

_MIN_QUOTE, _MIN_WORD = 12, 3
"""Shorter texts and words are too common to be searched in notes."""
_SPACED, _NAME, _WORD = re.compile(r"\S+"), re.compile(r"[\w.@/#+=:~%-]+"), re.compile(r"[^\W_]+")
_EDGES = "`'\"()[]{}<>.,:;!?"
_HEADING = re.compile(r"#+ (.*)")
_NOTE_FIELDS = frozenset({"kind", "status", "id"})
"""Fields of a state's and a memory's entries whose value is one of ours."""
_NOTE_WORDS = frozenset(get_args(LineKind))
"""Kinds of lines, which a ledger stores without a name."""
_DATA_FIELDS = frozenset({"input", "arguments", "args", "response"})
"""Fields of messages whose value is the tool's own data, its keys included."""
_FREE_FIELDS = _DATA_FIELDS | {
    "json",
    "value",
    "result",
    "structuredContent",
    "structured_content",
    "artifact",
    "metadata",
}
"""Fields of messages whose value may be anything, if it is no text."""
_ID_FIELDS = frozenset(
    (
        *("id", "call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId"),
        *("name", "toolName", "server_label"),
    )
)
"""Fields of messages that join parts of it to others: they may have any value, if all have the same."""
_FORM_FIELDS = _ID_FIELDS | frozenset(
    ("type", "role", "kind", "status", "caller", "cache_control", "detail", "media_type", "mime_type")
)
"""Fields of messages whose value says what a part is and what it belongs to."""
_SETTING_FIELDS = frozenset(
    (
        *("action", "allowed_callers", "background", "button", "category", "clear_at", "effort", "error_code"),
        *("execution", "file_type", "format", "language", "level", "mediaProcessing", "mode", "moderation_stage"),
        *("nullValue", "outcome", "output_format", "oversized_image", "phase", "quality", "scheduling", "toolType"),
        "ttl",
    )
)
"""Fields whose text is one of those that a provider's type lists: any other would not be valid."""
_SETTING_NAMES = frozenset({"kind", "name"})
"""Fields of policies and strategies that name a class or a preset."""
_SEALED = frozenset(("encrypted_content", "signature", "source", "data", "file_data", "file_id"))
"""Fields of opaque parts without which they are not valid, and which tell what they hold."""


class Scrubber(Protocol):
    """Returns a text without what was redacted."""

    def __call__(self, text: str) -> str: ...

    def identifier(self, text: str) -> str:
        """Returns an id or a name without it, which is the same wherever it was the same."""
        ...


class BothScrubbers:
    """Removes a text, then what notes have left of it."""

    def __init__(self, secret: TextScrubber, notes: NotesScrubber) -> None:
        self._secret, self._notes = secret, notes

    def __call__(self, text: str) -> str:
        return self._notes(self._secret(text))

    def identifier(self, text: str) -> str:
        return self._secret.identifier(text)


class NotesScrubber:
    """Removes texts, their lines, and each of their words that no other message of the log has.

    Notes select, shorten and rearrange, so whole texts alone would leave names and clipped lines behind.
    """

    def __init__(self, texts: Sequence[str], others: Iterable[str] = ()) -> None:
        lines = [line.strip() for text in texts for line in text.splitlines()]
        self.quotes = sorted({text for text in [*texts, *lines] if len(text) >= _MIN_QUOTE}, key=len, reverse=True)
        self._words = set[str]().union(*map(_words, texts))
        self._sorted = sorted(self._words)
        self._common = set[str]()
        self._unproven = set(self._words)
        """Words of which it matters whether others have them."""
        for text in others:
            self.spare(text)

    def relevant_words(self, notes: Iterable[str]) -> set[str]:
        """Returns the words that matter for these notes: the removed ones that they have, whole or cut short."""
        wanted = set[str]()
        for word in set[str]().union(*map(_words, notes)):
            if word in self._words or self._is_cut(word):
                wanted.add(word)
                at = bisect_left(self._sorted, word)
                while at < len(self._sorted) and self._sorted[at].startswith(word):
                    wanted.add(self._sorted[at])
                    at += 1
        return wanted

    def look_only_for(self, words: set[str]) -> None:
        """Leaves the other words out of account: then fewer are looked for in the other messages."""
        self._unproven = words

    @property
    def is_decided(self) -> bool:
        """Whether no other message could spare a word any more."""
        return not self._unproven

    def spare(self, text: str) -> None:
        """Keeps the words that another message has."""
        if self._unproven and (known := self._unproven & _words(text)):
            self._unproven -= known
            self._common |= known
            self._words -= known
            self._sorted = sorted(self._words)

    def __call__(self, text: str) -> str:
        for quote in self.quotes:
            if quote in text:
                text = text.replace(quote, REDACTED)
        return "\n".join(line if _is_structure(line) else self._scrub_line(line) for line in text.split("\n"))

    def identifier(self, text: str) -> str:
        return text

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


def strings_in(value: Any, *, keys: bool = False) -> Iterator[str]:
    """Yields all strings in plain data, on request its keys, too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            if keys:
                yield name
            yield from strings_in(item, keys=keys)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item, keys=keys)


def scrub_data(
    value: Any,
    scrub: Scrubber,
    *,
    keys: bool = False,
    form: frozenset[str] = frozenset(),
    words: frozenset[str] = frozenset(),
) -> Any:
    """Returns plain data with its strings scrubbed, and its keys if they are data, too.

    Texts in the fields of `form`, and those among `words`, stay.
    """

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return value if value in words else scrub(value)
        if isinstance(value, dict):
            return {
                (scrub(name) if keys else name): item if name in form and isinstance(item, str) else walk(item)
                for name, item in value.items()
            }
        return [walk(item) for item in value] if isinstance(value, list | tuple) else value

    return walk(value)


def scrub_payload(value: Any, scrub: Scrubber, name: str = "") -> Any:
    """Returns a message, as its provider takes it, with its texts scrubbed; ids stay joined, and settings stay."""
    if isinstance(value, dict | list | tuple) and name in _FREE_FIELDS:
        return scrub_data(value, scrub, keys=True)
    if isinstance(value, dict):
        return {key: scrub_payload(item, scrub, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_payload(item, scrub, name if isinstance(item, str) else "") for item in value]
    if not isinstance(value, str):
        return value
    if name in _ID_FIELDS:
        return scrub.identifier(value)
    return value if name in _FORM_FIELDS or name in _SETTING_FIELDS else scrub(value)


def scrub_checkpoint(
    body: Json, scrub: Scrubber, removed: Iterable[str], dropped: Mapping[str, Sequence[Path]] | None = None
) -> Json:
    """Returns the body of a compaction event without what was redacted.

    `removed` are the ids of redacted events; what the head shows of another event stays. Without any, a text is removed
    from all of it. `dropped` are the places that events lost: edits of others are rebased.
    """
    gone = frozenset(removed)
    checkpoint = msgspec.convert(body, Checkpoint)
    carry = msgspec.structs.replace(
        checkpoint.carry,
        topics=tuple(map(scrub, checkpoint.carry.topics)),
        ledger=_scrub_ledger(checkpoint.carry.ledger, scrub),
        state=scrub_data(checkpoint.carry.state, scrub, form=_NOTE_FIELDS),
        memory=scrub_data(checkpoint.carry.memory, scrub, form=_NOTE_FIELDS),
        policy=scrub_data(checkpoint.carry.policy, scrub, form=_SETTING_NAMES),
    )
    clean = msgspec.structs.replace(
        checkpoint,
        head=tuple(_scrub_head(item, scrub, gone) for item in checkpoint.head),
        edits={
            id: tuple(_scrub_edit(edit, scrub) for edit in rebase(edits, (dropped or {}).get(id, ())))
            for id, edits in checkpoint.edits.items()
            if id not in gone
        },
        carry=carry,
        summary=checkpoint.summary and scrub(checkpoint.summary),
        parameters=_scrub_parameters(checkpoint.parameters, scrub),
        remarks=tuple(map(scrub, checkpoint.remarks)),
        cost=scrub_data(checkpoint.cost, scrub),
    )
    known = msgspec.structs.fields(Checkpoint)
    unknown = scrub_data(
        {n: item for n, item in body.items() if n not in {f.encode_name for f in known}}, scrub, keys=True
    )
    written: Json = msgspec.json.decode(msgspec.json.encode(clean))  # as a store returns it, with lists for tuples
    return {**unknown, **written}


def _scrub_edit(edit: Edit, scrub: Scrubber) -> Edit:
    return Replace(edit.path, scrub_payload(edit.value, scrub)) if isinstance(edit, Replace) else edit


def _scrub_parameters(parameters: CompactionParameters | None, scrub: Scrubber) -> CompactionParameters | None:
    plain = scrub_data(msgspec.to_builtins(parameters), scrub, form=_SETTING_NAMES)
    return msgspec.convert(plain, CompactionParameters | None)


def _scrub_ledger(ledger: Json | None, scrub: Scrubber) -> Json | None:
    if ledger is None:
        return None
    notes = msgspec.convert(ledger, Ledger)
    names = {name: stats for name, stats in notes.names.items() if scrub(name) == name}
    plain: Json = msgspec.to_builtins(msgspec.structs.replace(notes, names={}))
    clean: Json = scrub_data(plain, scrub, words=_NOTE_WORDS)
    return clean | ({"names": msgspec.to_builtins(names)} if names else {})


def _scrub_head(item: HeadItem, scrub: Scrubber, gone: frozenset[str]) -> HeadItem:
    if item.message is None or (gone and item.ref is not None and item.ref not in gone):
        return item
    if item.ref not in gone:
        shown = _scrub_message(item.message, scrub)
    elif is_framed(item.message):  # a quoted pin: the event itself may not be valid here
        shown = Message(item.message.role, (Text(add_frame(REDACTED)),), item.message.format)
    else:
        shown = without_content(item.message)
    return msgspec.structs.replace(item, message=shown)


def without_content(message: Message) -> Message:
    """Returns the message without its content: still valid in its place, with all that joins it to others."""
    bare = drop_parts(message, [index for index, part in enumerate(message.parts) if _is_sealed(part)])
    if not bare.parts or bare.payload is None:
        parts = tuple(_bare(part) for part in bare.parts)
        return Message(message.role, parts or (Text(REDACTED),), message.format)
    return replace_payload(bare, _blank(bare.payload))


def _is_sealed(part: Part) -> bool:
    """Whether this part is of no use, or not valid, without its content."""
    if isinstance(part, Opaque):
        return not _SEALED.isdisjoint(part.data)
    return isinstance(part, Reasoning | Media)


def _bare(part: Part) -> Part:
    match part:
        case ToolCall():
            return ToolCall(part.id, part.name, {}, part.kind)
        case ToolResult():
            return ToolResult(part.call_id, (Text(REDACTED),), part.is_error, part.name, part.kind)
    return Text(REDACTED)


def _blank(value: Any, name: str = "") -> Any:
    """Returns plain data without its texts, except for those that only give it its form."""
    if isinstance(value, dict):
        if name in _DATA_FIELDS:
            return {}
        return {key: item if key in _FORM_FIELDS else _blank(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_blank(item, name if isinstance(item, str) else "") for item in value]
    if not isinstance(value, str) or name in _SETTING_FIELDS:
        return value
    if name in _DATA_FIELDS:
        return "{}"
    return ERROR_MARK + REDACTED if value.startswith(ERROR_MARK) else REDACTED


def _scrub_message(message: Message, scrub: Scrubber) -> Message:
    if is_framed(message):
        clean = scrub(message.text)
        return message if clean == message.text else Message(message.role, (Text(_framed(clean)),), message.format)
    if message.payload is None:
        parts = msgspec.convert(scrub_payload(msgspec.to_builtins(message.parts), scrub), tuple[Part, ...])
        return Message(message.role, parts, message.format)
    signed = [index for index, part in enumerate(message.parts) if is_reasoning_with(part, scrub)]
    kept = drop_parts(message, signed)
    return replace_payload(kept, scrub_payload(kept.payload, scrub))


def _framed(text: str) -> str:
    return add_frame(text.rpartition("\n[holdfast:")[0])


def is_reasoning_with(part: Part, scrub: Scrubber) -> bool:
    """Whether a part is reasoning that has what the scrubber removes: a changed one would not match its signature."""
    plain = msgspec.to_builtins(part) if isinstance(part, Reasoning) else None
    return bool(scrub_payload(plain, scrub) != plain)
