"""pi sessions: its own messages, one a line, in a row or (newer) in a tree by ``parentId``."""

from __future__ import annotations

from msgspec import Struct

from .notes import Notes
from .pi_messages import add_message, user_blocks
from .thread import Thread
from .transcript import PastCompaction, Record, Transcript, text, whole


def fits(record: Record) -> bool:
    if record.get("type") == "session":
        return "cwd" in record or "version" in record
    message = record.get("message")
    return record.get("type") == "message" and isinstance(message, dict) and "role" in message


class _Landing(Struct, frozen=True):
    """Where a record of the thread went: a place among the entries, or none if it was left out."""

    record: Record
    entry: int | None = None

    @property
    def opens_turn(self) -> bool:
        message = self.record.get("message")
        return self.entry is not None and isinstance(message, dict) and message.get("role") == "user"


def read(records: list[Record], notes: Notes) -> Transcript:
    """The thread that leads to the newest record, as Anthropic messages (P6)."""
    thread = Thread(notes)
    compactions: list[PastCompaction] = []
    landings: list[_Landing] = []
    since = 0
    model = session = None
    for record in _live_thread(records, notes):
        kind, entry = record.get("type"), None
        message = record.get("message")
        if kind == "message" and isinstance(message, dict):
            model = text(message.get("model")) or model
            entry = add_message(thread, message, record, notes)
        elif kind == "custom_message":
            blocks = user_blocks(record.get("content"), notes)
            entry = thread.add_user(blocks, id=text(record.get("id")), time=text(record.get("timestamp")))
        elif kind == "compaction":
            thread.cut()
            kept = _kept(record, landings, since, len(thread), records, notes)
            compactions.append(_compaction(record, len(thread), kept))
            since = len(landings)
        elif kind == "session":
            session, model = text(record.get("id")), text(record.get("modelId")) or model
        else:
            model = (text(record.get("modelId")) if kind == "model_change" else None) or model
            notes.count("record", f"of type {kind!r} left out")
        landings.append(_Landing(record, entry))
    entries = thread.entries()
    return Transcript("pi", "anthropic", entries, tuple(compactions), model=model, id=session, notes=notes.lines())


def _live_thread(records: list[Record], notes: Notes) -> list[Record]:
    """From the first record to the newest along ``parentId``; all of them where the file is no tree."""
    by_id = {record["id"]: record for record in records if "parentId" in record and text(record.get("id"))}
    if not by_id:
        return records
    path: set[str] = set()
    at = next(reversed(by_id))
    while at in by_id and at not in path:
        path.add(at)
        at = text(by_id[at].get("parentId")) or ""
    live = [record for record in records if "parentId" not in record or text(record.get("id")) in path]
    notes.count("record", "on abandoned branches left out", len(records) - len(live))
    return live


def _compaction(record: Record, after: int, kept: int) -> PastCompaction:
    return PastCompaction(
        after,
        summary=text(record.get("summary")),
        tokens_before=whole(record.get("tokensBefore")),
        trigger=text(record.get("trigger")),
        kept=kept,
    )


def _kept(record: Record, landings: list[_Landing], since: int, after: int, records: list[Record], notes: Notes) -> int:
    """How many entries stay visible: counted from a named record on, or the last so many messages.

    A count does not reach over the compaction before, and starts at a user message (P7).
    """
    if (count := whole(record.get("keepLastMessages"))) is not None:
        messages = [landing for landing in landings[since:] if landing.record.get("type") == "message"]
        window = messages[-count:] if count else []
        first = next((landing.entry for landing in window if landing.opens_turn), None)
        return 0 if first is None else after - first
    index, named = record.get("firstKeptEntryIndex"), text(record.get("firstKeptEntryId"))
    if named is not None and named == record.get("id"):
        return 0  # nothing before it: what is kept starts with itself
    if isinstance(index, int) and 0 <= index < len(records):
        target: Record | None = records[index]  # counts the lines of the file, the header included
    else:
        target = next((landing.record for landing in landings if named and landing.record.get("id") == named), None)
    places = [place for place, landing in enumerate(landings) if landing.record is target]
    if not places:
        notes.count("compaction", "that does not say what it kept")
        return 0
    entries = [landing.entry for landing in landings[places[0] :] if landing.entry is not None]
    return after - entries[0] if entries else 0
