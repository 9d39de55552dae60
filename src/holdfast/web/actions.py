"""Changes that a person asks for, each with the version that was seen: a conflict is shown, and nothing is lost."""

from __future__ import annotations

from typing import Any

import msgspec

from ..compaction.size import Size
from ..context import Checkpoint
from ..context.events import Event, SessionRecord, try_message_in
from ..errors import Conflict, InvalidInput
from ..messages.json_text import decodable
from ..sessions import SessionService
from ..strategies.names import parse_strategy
from ..triggers import always


@decodable
class ActionRequest(msgspec.Struct, frozen=True):
    """The body of a write."""

    version: int
    """Version of the session that the page showed."""
    event: str | None = None
    strategy: str | None = None
    preset: str | None = None
    budget: int | None = None
    instructions: str | None = None
    pinned: bool = True


async def run_action(
    sessions: SessionService, record: SessionRecord, name: str, given: ActionRequest
) -> dict[str, Any]:
    """Runs an action and returns what to show; raises Conflict if the session was compacted, pinned or undone since."""
    match name:
        case "undo":
            await sessions.undo(record.id, after=given.version)
            return {"message": "The compaction was undone: Redo brings it back."}
        case "redo":
            await sessions.undo(record.id, to=_event(given), after=given.version)
            return {"message": "The compaction is in force again."}
        case "pin":
            await sessions.pin(record.id, _event(given), pinned=given.pinned, after=given.version)
            return {"message": "Pinned: it survives every compaction." if given.pinned else "Unpinned."}
    if (tip := record.lanes.get("")) is not None and tip.mark > given.version:
        raise Conflict(record.id)
    match name:
        case "fork":
            fork = await sessions.fork(record.id, given.event)
            return {"message": "Forked.", "session": fork.id}
        case "restore":
            copy = await sessions.restore(record.id, _event(given))
            return {"message": f"Restored as #{copy.seq}.", "seq": copy.seq}
        case "compact":
            strategy = None if given.strategy is None else parse_strategy(given.strategy)
            instructions = given.instructions or None
            result = await sessions.compact(
                record.id, always, strategy, preset=given.preset, budget=given.budget, instructions=instructions
            )
            sizes = f"{result.tokens_before:,} → {result.tokens_after:,} tokens"
            why = f": {result.why}" if result.why else ""
            return {"message": f"{result.outcome.value}, {sizes}{why}", "outcome": result.outcome.value}
    raise InvalidInput(f"{name!r} is not an action.")


class ActionPlan(msgspec.Struct, frozen=True):
    """What a session would be after an action, to be shown before it is asked for."""

    title: str
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


async def plan_action(
    sessions: SessionService, record: SessionRecord, name: str, event: Event | None, compaction: Event | None
) -> ActionPlan:
    """Returns what an action would do, on an event or on the compaction to undo or redo; nothing is written."""
    now = await sessions.size(record.id)
    if name in ("undo", "redo") and compaction is not None:
        back = name == "redo"
        after = await sessions.preview_undo(record.id, to=compaction.id if back else None)
        lines = _note_lines(compaction)
        notes = (
            f"{lines:,} {'line' if lines == 1 else 'lines'} of notes {'come back' if back else 'leave the context'}."
        )
        kept = "The log keeps everything: " + ("Undo is there again." if back else "Redo brings the compaction back.")
        title = f"{'Redo' if back else 'Undo'} compaction #{compaction.seq}"
        return ActionPlan(title, _facts(now, after.tokens, after.count), (notes, kept, *_over(now, after.tokens)))
    if name == "restore" and event is not None:
        message = try_message_in(event)
        tokens = now.tokens + (0 if message is None else sessions.estimator.tokens(sessions.estimator.measure(message)))
        notes = "A quoted copy is appended at the end; nothing before it changes."
        return ActionPlan(f"Restore #{event.seq}", _facts(now, tokens, now.count + 1), (notes, *_over(now, tokens)))
    if name == "fork" and event is not None:
        context = await sessions.context_at(record.id, event.id)
        notes = "A new session begins with the context of that moment. This session stays as it is."
        facts = (("tokens of the fork", f"{context.tokens:,}"), ("messages of the fork", f"{len(context):,}"))
        return ActionPlan(f"Fork after #{event.seq}", facts, (notes,))
    raise InvalidInput("There is nothing to do: look again, then repeat.")


def _note_lines(compaction: Event) -> int:
    head = msgspec.convert(compaction.body, Checkpoint).head
    return sum(len(item.message.text.splitlines()) for item in head if item.kind == "note" and item.message)


def _facts(now: Size, tokens: int, count: int) -> tuple[tuple[str, str], ...]:
    return ("tokens", f"{now.tokens:,} → {tokens:,}"), ("messages", f"{now.count:,} → {count:,}")


def _over(now: Size, tokens: int) -> tuple[str, ...]:
    if now.limit is not None and tokens > now.limit:
        return (f"That is {tokens - now.limit:,} more than leaves room for a reply: the next request may be refused.",)
    if now.threshold is not None and tokens >= now.threshold:
        return (f"That is over {now.threshold:,}, where an automatic compaction is due.",)
    return ()


def _event(given: ActionRequest) -> str:
    if given.event is None:
        raise InvalidInput("This action needs an event.")
    return given.event
