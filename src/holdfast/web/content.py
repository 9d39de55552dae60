"""The content of an event as parts that a page can draw: texts, calls, results, images, data, and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ..context import Checkpoint
from ..context.events import Event, EventKind, SessionRecord, try_message_in
from ..io.text import printable
from ..messages import (
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    describe_media,
    is_framed,
    strip_frame,
    to_json,
)
from ..sessions import SessionService
from ..stores import Slice

_IMAGE_TYPES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""Types that cannot contain scripts."""
_MAX_IMAGE = 3_000_000
"""Characters of an image in a reply."""
_NEAR = 60
"""Events around a call in which its result is looked for."""
_HIDDEN_FIELDS = ("carry", "head", "edits")


class ContentPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of an event."""

    kind: str
    """`text`, `thinking`, `call`, `result`, `image`, `note`, `data` or `sentence`."""
    text: str = ""
    name: str = ""
    failed: bool = False
    src: str = ""
    """The image as a data URL."""


def content_of(event: Event, message: Message | None) -> list[ContentPart]:
    """Returns the parts of an event, oldest first."""
    if message is not None:
        return [one for part in message.parts for one in _parts(part)]
    found = [ContentPart("sentence", text) for text in sentences_of(event)]
    if event.kind == EventKind.COMPACTION:
        head = msgspec.convert(event.body, Checkpoint).head
        notes = [item.message for item in head if item.kind == "note" and item.message is not None]
        found += [ContentPart("note", strip_frame(note) if is_framed(note) else note.text) for note in notes]
    body = {name: value for name, value in event.body.items() if name not in _HIDDEN_FIELDS}
    return [*found, ContentPart("data", to_json(body), "As it is stored")]


def _parts(part: Any) -> Iterator[ContentPart]:
    match part:
        case Text():
            yield ContentPart("text", part.text)
        case Reasoning():
            readable = part.text or "(encrypted by the provider: only the model itself can read it)"
            yield ContentPart("thinking", readable)
        case ToolCall():
            yield ContentPart("call", part.arguments_json, printable(part.name))
        case ToolResult():
            yield ContentPart("result", part.text, printable(part.name or ""), part.is_error)
            for item in part.content:
                if not isinstance(item, Text):
                    yield from _parts(item)
        case Media():
            yield _image(part)
        case Opaque():
            yield ContentPart("data", to_json(part.data), printable(part.kind))


def _image(media: Media) -> ContentPart:
    if media.data and media.mime in _IMAGE_TYPES and len(media.data) <= _MAX_IMAGE:
        return ContentPart("image", describe_media(media), src=f"data:{media.mime};base64,{media.data}")
    return ContentPart("sentence", f"[{describe_media(media)}]")


def sentences_of(event: Event) -> list[str]:
    """Returns what a mark in the log means."""
    body = event.body
    match event.kind:
        case EventKind.COMPACTION:
            archived = sum(run["count"] for run in body.get("archived", ()))
            by = f" by {body['strategy']}" if body.get("strategy") else ""
            sizes = f"{body.get('tokens_before', 0):,} to {body.get('tokens_after', 0):,} tokens"
            found = [f"Compacted from {sizes}{by}: {archived:,} message{'s' * (archived != 1)} archived."]
            if body.get("fallback"):
                found.append(f"No model wrote a summary: the {body['fallback']} was used instead.")
            if body.get("strategy") == "codex" and not body.get("summary"):
                found.append(
                    "The summary of this compaction is encrypted: only OpenAI's models can read it. It is not in the "
                    "session file, so it is neither shown nor counted here; user messages that it kept are."
                )
            return found
        case EventKind.PIN:
            return ["Pinned a message." if body.get("pinned", True) else "Unpinned a message."]
        case EventKind.UNDO:
            to = "every message is visible again" if body.get("to") is None else "another compaction is in force"
            return [f"Went back over a compaction: {to}."]
        case EventKind.ATTEMPT:
            return [f"A compaction failed, {body.get('failures', 1)} in a row: {printable(str(body.get('why', '')))}"]
        case EventKind.POLICY:
            return ["What is known about window, prompt or policy of the session changed."]
    return [f"{event.kind.capitalize()}."]


async def partner_of(
    sessions: SessionService, record: SessionRecord, event: Event, message: Message
) -> tuple[int, list[ContentPart]] | None:
    """Returns the event with the results of a message's calls, or with the calls of its results, and their parts."""
    calls, results = (
        {part.id for part in message.parts if isinstance(part, ToolCall)},
        {result.call_id for result in message.results},
    )
    if not calls and not results:
        return None
    first = event.seq + 1 if calls else max(1, event.seq - _NEAR)
    near = await sessions.store.read(
        record.id,
        Slice(lane=event.lane, after=first - 1, until=event.seq + _NEAR if calls else event.seq - 1),
    )
    for other in near if calls else reversed(near):
        found = try_message_in(other) if other.kind == EventKind.MESSAGE else None
        if found is None:
            continue
        parts = [
            one
            for part in found.parts
            if (isinstance(part, ToolResult) and part.call_id in calls)
            or (isinstance(part, ToolCall) and part.id in results)
            for one in _parts(part)
        ]
        if parts:
            return other.seq, parts
    return None
