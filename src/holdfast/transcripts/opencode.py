"""OpenCode sessions: messages made of parts, as `opencode export` writes them or as they lie in its storage."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from .notes import Notes
from .opencode_messages import ASKED, Said, add_message, moment, said_from
from .thread import Thread, legal_id
from .transcript import Entry, PastCompaction, Record, Transcript, text, whole

Cleared = tuple[tuple[int, str], ...]


def fits(record: Record) -> bool:
    """An exported session; one in storage is put into the same shape first."""
    messages = record.get("messages")
    if not isinstance(record.get("info"), dict) or not isinstance(messages, list):
        return False
    return all(isinstance(message, dict) and isinstance(message.get("info"), dict) for message in messages)


def read(records: list[Record], notes: Notes) -> Transcript:
    """The messages as OpenCode would send them to Anthropic."""
    session = records[0]["info"]
    messages = _standing([said_from(message) for message in records[0]["messages"]], session.get("revert"), notes)
    asked = {message.id for message in messages if message.part("compaction")}
    summaries = {message.parent: message for message in messages if message.sums_up and message.parent in asked}
    thread, log = Thread(notes), _Log(notes)
    model = None
    for message in messages:
        if message.id in summaries:
            log.compact(thread, message, summaries[message.id])
        elif message.sums_up and message.parent not in summaries:
            log.compact(thread, None, message)
        elif not message.sums_up:
            model = text(message.info.get("modelID")) or model
            log.starts[message.id] = len(thread)
            usage = add_message(thread, message, notes)
            log.context = usage.total if usage is not None else log.context
    entries = thread.entries()
    return Transcript(
        "opencode",
        "anthropic",
        entries,
        log.compactions(entries, _cleared(messages, entries)),
        model=model,
        id=text(session.get("id")),
        notes=notes.lines(),
    )


def _standing(messages: list[Said], revert: Any, notes: Notes) -> list[Said]:
    """Without what was taken back: OpenCode drops it when the next message comes. Ids grow with time."""
    first = text(revert.get("messageID")) if isinstance(revert, dict) else None
    if first is None:
        return messages
    part = text(revert.get("partID"))
    standing = [message for message in messages if message.id < first]
    for message in messages:
        if part is not None and message.id == first:
            parts = tuple(one for one in message.parts if str(one.get("id")) < part)
            standing.append(replace(message, parts=parts))
    notes.count("message", "taken back left out", len(messages) - len(standing))
    return standing


def _cleared(messages: list[Said], entries: tuple[Entry, ...]) -> dict[str, Cleared]:
    """The results that OpenCode no longer shows, by the time at which it cleared them."""
    places = {
        block["tool_use_id"]: place
        for place, entry in enumerate(entries)
        if isinstance(entry.message["content"], list)
        for block in entry.message["content"]
        if block.get("type") == "tool_result"
    }
    cleared: dict[str, Cleared] = {}
    for part in (part for message in messages for part in message.parts):
        match part:
            case {"callID": str(id), "state": {"time": {"compacted": when}}} if whole(when):
                if (call := legal_id(id)) in places:
                    time = moment(when) or ""
                    cleared[time] = (*cleared.get(time, ()), (places[call], call))
    return cleared


class _Log:
    """Where messages and compactions went, read so far."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._done: list[tuple[str, PastCompaction]] = []
        self.starts: dict[str, int] = {}
        """Messages, by the place of their first entry."""
        self.context: int | None = None
        """The size of the context after the newest reply."""

    def compact(self, thread: Thread, asking: Said | None, summary: Said) -> None:
        """Older versions show the summary alone; since then a question in the user's name stands before it."""
        thread.cut()
        part = asking.part("compaction") or {} if asking is not None else {}
        question = [{"role": "user", "content": ASKED}] if asking is not None else []
        past = PastCompaction(
            len(thread),
            summary=summary.text,
            tokens_before=self.context,
            trigger=("auto" if part["auto"] else "manual") if "auto" in part else None,
            kept=self._kept(text(part.get("tail_start_id")), len(thread)),
            head=(*question, {"role": "assistant", "content": [{"type": "text", "text": summary.text}]}),
        )
        self._done.append((summary.time or "", past))
        self.context = None

    def _kept(self, tail: str | None, after: int) -> int:
        if tail is None:
            return 0
        if tail not in self.starts:
            self._notes.count("compaction", "that does not say what it kept")
            return 0
        return after - self.starts[tail]

    def compactions(self, entries: tuple[Entry, ...], cleared: dict[str, Cleared]) -> tuple[PastCompaction, ...]:
        """Those, and among them the times at which old results were cleared."""
        done: list[PastCompaction] = []
        gone: Cleared = ()
        times = sorted(cleared)
        for when, past in [*self._done, ("~", None)]:
            while times and times[0] < when:
                gone = (*gone, *cleared[times[0]])
                said = sum(entry.time is not None and entry.time <= times[0] for entry in entries)
                done.append(_pruned(done, said if past is None else min(said, past.after), gone))
                times.pop(0)
            if past is not None:
                done.append(replace(past, cleared=gone))
        return tuple(done)


def _pruned(done: list[PastCompaction], after: int, gone: Cleared) -> PastCompaction:
    """What stood before still stands, but for these results."""
    before = done[-1] if done else PastCompaction(0)
    after = max(after, before.after)
    first = before.after - before.kept
    return replace(before, after=after, kept=after - first, tokens_before=None, trigger="prune", cleared=gone)
