"""Transcripts for a summarizer: numbered messages with roles, long texts truncated and marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise

import msgspec

from ..context.references import citation
from ..io.text import replace_surrogates
from ..messages import Media, Message, Opaque, Text, ToolCall, ToolResult, describe_media
from ..messages.payload import placeholder_text

SHRINK_STEPS = (0.6, 0.3, 0.12)
"""Shares of the transcript that are tried, one after the other, after an overflow."""
_MAX_BRIEF_RESULT = 80


class Style(msgspec.Struct, frozen=True):
    """How messages are written into a transcript."""

    result_limit: int = 500
    """Maximum characters of a tool result."""
    text_limit: int = 2_000
    """Maximum characters of any other part."""
    tools: Callable[[str], bool] | None = None
    """Predicate on tool names: whose calls and results are included. None includes all."""
    images: int = 0
    """How many of the newest images are attached, for models with vision."""


class SummaryTranscriptEntry(msgspec.Struct, frozen=True):
    """One message of a transcript."""

    number: int
    role: str
    text: str
    brief: str
    """The text without tool results."""


class SummaryTranscript(msgspec.Struct, frozen=True):
    """The messages that a summarizer reads."""

    entries: tuple[SummaryTranscriptEntry, ...] = ()
    media: tuple[Media, ...] = ()
    left_out: int = 0
    """How many of the oldest messages were omitted to make it fit."""
    brief: bool = False

    @property
    def text(self) -> str:
        """All entries as text, each with its number and role."""
        return "\n\n".join(map(self._entry_text, self.entries))

    def _entry_text(self, entry: SummaryTranscriptEntry) -> str:
        return f"{citation(entry.number)} {entry.role.upper()}:\n{entry.brief if self.brief else entry.text}"

    def chunks(self, limit: int) -> Iterator[SummaryTranscript]:
        """Yields transcripts of at most so many characters, split between messages; the last one has the images."""
        chunk: list[SummaryTranscriptEntry] = []
        size = 0
        for entry in self.entries:
            length = len(self._entry_text(entry)) + 2
            if chunk and size + length > limit:
                yield msgspec.structs.replace(self, entries=tuple(chunk), media=())
                chunk, size = [], 0
            chunk.append(entry)
            size += length
        if chunk:
            yield msgspec.structs.replace(self, entries=tuple(chunk))

    def reductions(self) -> Iterator[SummaryTranscript]:
        """Yields smaller and smaller versions: without images, without tool results, without the oldest messages."""
        current = self
        if current.media:
            yield (current := msgspec.structs.replace(current, media=()))
        if not current.brief and any(entry.text != entry.brief for entry in current.entries):
            yield (current := msgspec.structs.replace(current, brief=True))
        size = len(current.text)
        shorter = [current, *(current.newest(int(size * part)) for part in SHRINK_STEPS)]
        yield from (less for more, less in pairwise(shorter) if less.left_out > more.left_out)

    def newest(self, characters: int) -> SummaryTranscript:
        """Keeps the newest entries within so many characters; at least one."""
        used, count = 0, 0
        for entry in reversed(self.entries):
            used += len(self._entry_text(entry)) + 2
            if count and used > characters:
                break
            count += 1
        kept = self.entries[len(self.entries) - count :]
        return msgspec.structs.replace(self, entries=kept, left_out=self.left_out + len(self.entries) - count)


def build_transcript(messages: Sequence[Message], numbers: Sequence[int], style: Style) -> SummaryTranscript:
    """Writes messages with their sequence numbers; reasoning is omitted."""
    tool_names: dict[str, str] = {}
    entries = []
    for message, number in zip(messages, numbers, strict=True):
        tool_names.update(
            (call.id, call.name) for call in message.calls
        )  # a later tool may be called under the same id
        rendered = [_render_part(part, style, tool_names) for part in message.parts]
        if text := "\n".join(full for full, _ in rendered if full):
            brief = "\n".join(short for _, short in rendered if short)
            entries.append(
                SummaryTranscriptEntry(number, message.role, replace_surrogates(text), replace_surrogates(brief))
            )
    pictures = (part for message in reversed(messages) for part in _images(message))
    return SummaryTranscript(tuple(entries), tuple(reversed(list(islice(pictures, style.images)))))


def _render_part(part: object, style: Style, tool_names: dict[str, str]) -> tuple[str, str]:
    """Returns a part in full and in brief."""
    if isinstance(part, Text):
        return (truncate(part.text.strip(), style.text_limit),) * 2
    if isinstance(part, ToolCall):
        if not _includes_tool(part.name, style):
            return "", ""
        return (f"[call] {part.name}({truncate(part.arguments_json, style.text_limit)})",) * 2
    if isinstance(part, ToolResult):
        name = part.name or tool_names.get(part.call_id, "")
        return _render_result(part, name, style) if _includes_tool(name, style) else ("", "")
    if isinstance(part, Media | Opaque):
        return (truncate(_describe_part(part), style.text_limit),) * 2
    return "", ""


def _describe_part(part: Media | Opaque) -> str:
    """Describes media, and returns the readable text of a part that only one format has."""
    if isinstance(part, Media):
        return describe_media(part)
    content = part.data.get("content")
    return content if isinstance(content, str) else placeholder_text(part)


def _render_result(result: ToolResult, name: str, style: Style) -> tuple[str, str]:
    seen = [describe_media(item) for item in result.content if isinstance(item, Media)]
    read = [_describe_part(item) for item in result.content if isinstance(item, Opaque)]
    text = "\n".join(filter(None, [result.text.strip(), *read]))
    label = f"[{'error' if result.is_error else 'result'} of {name or 'a tool'}]"
    shown = truncate(text, style.result_limit)
    short = (
        min(shown, f"{len(text):,} characters, not shown here", key=len) if len(shown) > _MAX_BRIEF_RESULT else shown
    )
    full, brief = ("\n".join(filter(None, [version, *seen])) for version in (shown, short))
    return f"{label} {full}", f"{label} {brief}"


def _includes_tool(tool: str, style: Style) -> bool:
    return style.tools is None or style.tools(tool)


def truncate(text: str, limit: int) -> str:
    """Returns the beginning of a text, with a marker for what was cut."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} [… {len(text) - limit:,} more characters]"


def _images(message: Message) -> Iterator[Media]:
    for part in reversed(message.parts):
        inside = part.content if isinstance(part, ToolResult) else (part,)
        for item in reversed(inside):
            if isinstance(item, Media) and item.kind == "image" and (item.data or item.url):
                yield item
