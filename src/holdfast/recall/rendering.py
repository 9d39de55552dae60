"""An event for a reader: a line that says what it is, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..events import Event, Kind
from ..messages import to_json
from ..references import reference
from ..service.quoting import quoted, said_when
from ..stores.said import message_of


def heading(event: Event, *, archived: bool = False) -> str:
    """Which event this is, who speaks, when, and whether the context still shows it."""
    message = message_of(event) if event.kind == Kind.MESSAGE else None
    role = "restored copy" if "source" in event.body else message.role if message else event.kind
    return said_when(event, role) + (", archived" if archived else "")


def content(event: Event, tools: Sequence[str] = ()) -> str:
    """All that it says, in words."""
    body = event.body
    match event.kind:
        case Kind.MESSAGE:
            message = message_of(event)
            return to_json(body) if message is None else quoted(message, tools)
        case Kind.COMPACTION:
            return "\n".join(_compaction(body))
        case Kind.UNDO:
            back = body.get("to")
            return f"back to the checkpoint {back}" if back else "back to the log as it was before any compaction"
        case Kind.PIN:
            return f"{'pinned' if body.get('pinned', True) else 'no longer pinned'}: event {body.get('event')}"
        case Kind.REDACTION:
            return f"the content of event {body.get('event')} was removed by its owner"
        case _:
            return to_json(body)


def _compaction(body: dict[str, Any]) -> Iterator[str]:
    runs = [run for run in body.get("archived") or () if isinstance(run, dict)]
    count = sum(run.get("count") or 0 for run in runs)
    sizes = f"{body.get('tokens_before', 0):,} → {body.get('tokens_after', 0):,} tokens"
    yield f"{count:,} events archived, {sizes}, by {body.get('strategy') or 'an unnamed strategy'}"
    if summary := body.get("summary"):
        yield str(summary)
    for item in body.get("head") or ():
        if isinstance(item, dict) and not item.get("ref") and isinstance(message := item.get("message"), dict):
            for part in message.get("parts") or ():
                if isinstance(part, dict) and part.get("text"):
                    yield str(part["text"])


def hit_line(name: str, said: str, *, session_id: str | None) -> str:
    """One hit in a list for a model: where it is, then its surroundings."""
    return f"{session_id + ' ' if session_id else ''}{name}: {said}"


def short_heading(event: Event, role: str | None, tools: Sequence[str], *, archived: bool) -> str:
    about = f" {'/'.join(tools)}" if tools else ""
    when = f", {event.time[:16].replace('T', ' ')}" if event.time else ""
    return f"{reference(event)} {role or event.kind}{about}{when}{', archived' if archived else ''}"
