"""Changes that a person asks for, each with the version that was seen: a conflict is shown, and nothing is lost."""

from __future__ import annotations

from typing import Any

import msgspec

from ..context.events import SessionRecord
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
            return {"message": "The compaction was undone."}
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
            result = await sessions.compact(record.id, always, strategy, budget=given.budget, instructions=instructions)
            sizes = f"{result.tokens_before:,} → {result.tokens_after:,} tokens"
            why = f": {result.why}" if result.why else ""
            return {"message": f"{result.outcome.value}, {sizes}{why}", "outcome": result.outcome.value}
    raise InvalidInput(f"{name!r} is not an action.")


def _event(given: ActionRequest) -> str:
    if given.event is None:
        raise InvalidInput("This action needs an event.")
    return given.event
