"""A history written out for a summariser: numbered, with roles, long texts cut and every cut marked (L8, W4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise

import msgspec

from ..messages import Media, Message, Opaque, Text, ToolCall, ToolResult, media_in_words
from ..messages.standins import stand_in
from ..references import citation
from .readable import readable

SHRINK = (0.6, 0.3, 0.12)
"""What part of it stays, step by step, where a model finds it too long."""
_BRIEF_RESULT = 80


class Style(msgspec.Struct, frozen=True):
    """How a history is written out."""

    result_limit: int = 500
    """Characters of a tool's result."""
    text_limit: int = 2_000
    """Characters of anything else."""
    tools: Callable[[str], bool] | None = None
    """Which tools' calls and results are told at all (W4); None for every tool's."""
    images: int = 0
    """How many of the newest images go along, for a model that can see."""


class Entry(msgspec.Struct, frozen=True):
    """One message as it is told."""

    place: int
    role: str
    text: str
    brief: str
    """The same with tool results left out."""


class Transcript(msgspec.Struct, frozen=True):
    """What a summariser is given to read."""

    entries: tuple[Entry, ...] = ()
    media: tuple[Media, ...] = ()
    left_out: int = 0
    """How many of the oldest messages are not told one by one, because they would be too much."""
    brief: bool = False

    @property
    def text(self) -> str:
        return "\n\n".join(map(self._told, self.entries))

    def _told(self, entry: Entry) -> str:
        return f"{citation(entry.place)} {entry.role.upper()}:\n{entry.brief if self.brief else entry.text}"

    def chunks(self, limit: int) -> Iterator[Transcript]:
        """In pieces of at most so many characters, cut between messages (W6); images go with the newest."""
        piece: list[Entry] = []
        size = 0
        for entry in self.entries:
            length = len(self._told(entry)) + 2
            if piece and size + length > limit:
                yield msgspec.structs.replace(self, entries=tuple(piece), media=())
                piece, size = [], 0
            piece.append(entry)
            size += length
        if piece:
            yield msgspec.structs.replace(self, entries=tuple(piece))

    def smaller(self) -> Iterator[Transcript]:
        """The same, told with less and less: without images, without results, without its oldest part.

        Each is less than the one before: what was too much is not tried again.
        """
        now = self
        if now.media:
            yield (now := msgspec.structs.replace(now, media=()))
        if not now.brief and any(entry.text != entry.brief for entry in now.entries):
            yield (now := msgspec.structs.replace(now, brief=True))
        size = len(now.text)
        shorter = [now, *(now.newest(int(size * part)) for part in SHRINK)]
        yield from (less for more, less in pairwise(shorter) if less.left_out > more.left_out)

    def newest(self, characters: int) -> Transcript:
        """The newest entries that take at most so many characters; at least one."""
        used, count = 0, 0
        for entry in reversed(self.entries):
            used += len(self._told(entry)) + 2
            if count and used > characters:
                break
            count += 1
        kept = self.entries[len(self.entries) - count :]
        return msgspec.structs.replace(self, entries=kept, left_out=self.left_out + len(self.entries) - count)


def transcript_of(messages: Sequence[Message], places: Sequence[int], style: Style) -> Transcript:
    """Messages under their numbers; thoughts are left out."""
    called: dict[str, str] = {}
    entries = []
    for message, place in zip(messages, places, strict=True):
        called.update((call.id, call.name) for call in message.calls)  # a later tool may be called under the same id
        told = [_part(part, style, called) for part in message.parts]
        if text := "\n".join(full for full, _ in told if full):
            brief = "\n".join(short for _, short in told if short)
            entries.append(Entry(place, message.role, readable(text), readable(brief)))
    pictures = (part for message in reversed(messages) for part in _images(message))
    return Transcript(tuple(entries), tuple(reversed(list(islice(pictures, style.images)))))


def _part(part: object, style: Style, called: dict[str, str]) -> tuple[str, str]:
    """A part as it is told, in full and in brief."""
    if isinstance(part, Text):
        return (cut(part.text.strip(), style.text_limit),) * 2
    if isinstance(part, ToolCall):
        if not _is_told(part.name, style):
            return "", ""
        return (f"[call] {part.name}({cut(part.json, style.text_limit)})",) * 2
    if isinstance(part, ToolResult):
        name = part.name or called.get(part.call_id, "")
        return _result(part, name, style) if _is_told(name, style) else ("", "")
    if isinstance(part, Media | Opaque):
        return (cut(_in_words(part), style.text_limit),) * 2
    return "", ""


def _in_words(part: Media | Opaque) -> str:
    """What media are, and what can be read of a part that only one format has (P12)."""
    if isinstance(part, Media):
        return media_in_words(part)
    said = part.data.get("content")
    return said if isinstance(said, str) else stand_in(part)


def _result(result: ToolResult, name: str, style: Style) -> tuple[str, str]:
    seen = [media_in_words(item) for item in result.content if isinstance(item, Media)]
    read = [_in_words(item) for item in result.content if isinstance(item, Opaque)]
    text = "\n".join(filter(None, [result.text.strip(), *read]))
    label = f"[{'error' if result.is_error else 'result'} of {name or 'a tool'}]"
    said = cut(text, style.result_limit)
    short = min(said, f"{len(text):,} characters, not shown here", key=len) if len(said) > _BRIEF_RESULT else said
    full, brief = ("\n".join(filter(None, [told, *seen])) for told in (said, short))
    return f"{label} {full}", f"{label} {brief}"


def _is_told(tool: str, style: Style) -> bool:
    return style.tools is None or style.tools(tool)


def cut(text: str, limit: int) -> str:
    """The beginning of a text, with the cut marked."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} [… {len(text) - limit:,} more characters]"


def _images(message: Message) -> Iterator[Media]:
    for part in reversed(message.parts):
        inside = part.content if isinstance(part, ToolResult) else (part,)
        for item in reversed(inside):
            if isinstance(item, Media) and item.kind == "image" and (item.data or item.url):
                yield item
