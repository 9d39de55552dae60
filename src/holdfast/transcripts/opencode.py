"""OpenCode sessions: messages made of parts, from `opencode export` or from its storage folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..messages import OPENCODE_QUESTION
from .opencode_messages import (
    OpenCodeMessage,
    add_opencode_message,
    iso_time,
    parse_opencode_message,
)
from .records import parse_json_values
from .thread import AnthropicThread, anthropic_id
from .transcript import (
    PastCompaction,
    Record,
    Transcript,
    TranscriptEntry,
    TranscriptWarnings,
    count_or_none,
    text_or_none,
)

ClearedResults = tuple[tuple[int, str], ...]


def matches(record: Record) -> bool:
    """Is this an exported session? One in storage is assembled into the same shape first."""
    messages = record.get("messages")
    if not isinstance(record.get("info"), dict) or not isinstance(messages, list):
        return False
    return all(isinstance(message, dict) and isinstance(message.get("info"), dict) for message in messages)


def read(records: list[Record], warnings: TranscriptWarnings) -> Transcript:
    """Reads the messages as OpenCode would send them to Anthropic."""
    session = records[0]["info"]
    messages = _without_reverted(
        [parse_opencode_message(message) for message in records[0]["messages"]], session.get("revert"), warnings
    )
    requests = {message.id for message in messages if message.part("compaction")}
    summaries = {message.parent: message for message in messages if message.is_summary and message.parent in requests}
    thread, log = AnthropicThread(warnings), _CompactionLog(warnings)
    model = None
    for message in messages:
        if message.id in summaries:
            log.compact(thread, message, summaries[message.id])
        elif message.is_summary and message.parent not in summaries:
            log.compact(thread, None, message)
        elif not message.is_summary:
            model = text_or_none(message.info.get("modelID")) or model
            log.starts[message.id] = len(thread)
            usage = add_opencode_message(thread, message, warnings)
            log.context = usage.total if usage is not None else log.context
    entries = thread.entries()
    return Transcript(
        "opencode",
        "anthropic",
        entries,
        log.compactions(entries, _cleared_results(messages, entries)),
        model=model,
        id=text_or_none(session.get("id")),
        warnings=warnings.lines(),
        folder=text_or_none(session.get("directory")),
        title=text_or_none(session.get("title")),
    )


def _without_reverted(
    messages: list[OpenCodeMessage], revert: Any, warnings: TranscriptWarnings
) -> list[OpenCodeMessage]:
    """The messages without reverted ones, which OpenCode drops at the next message. Ids sort by time."""
    first = text_or_none(revert.get("messageID")) if isinstance(revert, dict) else None
    if first is None:
        return messages
    part = text_or_none(revert.get("partID"))
    kept = [message for message in messages if message.id < first]
    for message in messages:
        if part is not None and message.id == first:
            parts = tuple(one for one in message.parts if str(one.get("id")) < part)
            kept.append(replace(message, parts=parts))
    warnings.count("message", "reverted left out", len(messages) - len(kept))
    return kept


def _cleared_results(
    messages: list[OpenCodeMessage], entries: tuple[TranscriptEntry, ...]
) -> dict[str, ClearedResults]:
    """Tool results that OpenCode cleared, by the time of clearing."""
    indexes = {
        block["tool_use_id"]: index
        for index, entry in enumerate(entries)
        if isinstance(entry.message["content"], list)
        for block in entry.message["content"]
        if block.get("type") == "tool_result"
    }
    cleared: dict[str, ClearedResults] = {}
    for part in (part for message in messages for part in message.parts):
        match part:
            case {"callID": str(id), "state": {"time": {"compacted": when}}} if count_or_none(when):
                if (call := anthropic_id(id)) in indexes:
                    time = iso_time(when) or ""
                    cleared[time] = (*cleared.get(time, ()), (indexes[call], call))
    return cleared


class _CompactionLog:
    """Collects compactions and the entry index of each message while reading a session."""

    def __init__(self, warnings: TranscriptWarnings) -> None:
        self._warnings = warnings
        self._done: list[tuple[str, PastCompaction]] = []
        self.starts: dict[str, int] = {}
        """Message ids with the index of their first entry."""
        self.context: int | None = None
        """Context size after the newest reply."""

    def compact(self, thread: AnthropicThread, request: OpenCodeMessage | None, summary: OpenCodeMessage) -> None:
        """Adds a compaction. Older versions show the summary alone, newer ones a user's question before it."""
        thread.cut()
        part = request.part("compaction") or {} if request is not None else {}
        question = [{"role": "user", "content": OPENCODE_QUESTION}] if request is not None else []
        past = PastCompaction(
            len(thread),
            summary=summary.text,
            tokens_before=self.context,
            trigger=("auto" if part["auto"] else "manual") if "auto" in part else None,
            kept=self._kept(text_or_none(part.get("tail_start_id")), len(thread)),
            head=(*question, {"role": "assistant", "content": [{"type": "text", "text": summary.text}]}),
        )
        self._done.append((summary.time or "", past))
        self.context = None

    def _kept(self, tail: str | None, after: int) -> int:
        if tail is None:
            return 0
        if tail not in self.starts:
            self._warnings.count("compaction", "that does not say what it kept")
            return 0
        return after - self.starts[tail]

    def compactions(
        self, entries: tuple[TranscriptEntry, ...], cleared: dict[str, ClearedResults]
    ) -> tuple[PastCompaction, ...]:
        """All compactions in order of time, the clearing of old tool results included."""
        done: list[PastCompaction] = []
        gone: ClearedResults = ()
        times = sorted(cleared)
        for when, past in [*self._done, ("~", None)]:
            while times and times[0] < when:
                gone = (*gone, *cleared[times[0]])
                before = sum(entry.time is not None and entry.time <= times[0] for entry in entries)
                done.append(_prune_compaction(done, before if past is None else min(before, past.after), gone))
                times.pop(0)
            if past is not None:
                done.append(replace(past, cleared=gone))
        return tuple(done)


def _prune_compaction(done: list[PastCompaction], after: int, gone: ClearedResults) -> PastCompaction:
    """The clearing of results as a compaction: shows the same entries as the one before it, with these cleared."""
    before = done[-1] if done else PastCompaction(0)
    after = max(after, before.after)
    first = before.after - before.kept
    return replace(before, after=after, kept=after - first, tokens_before=None, trigger="prune", cleared=gone)


def is_session_info(record: Record) -> bool:
    """Is this the content of `storage/session/<project>/<id>.json`: a session without its messages?"""
    return text_or_none(record.get("id")) is not None and "projectID" in record and isinstance(record.get("time"), dict)


def is_storage_folder(folder: Path) -> bool:
    return (folder / "session").is_dir() and (folder / "message").is_dir()


def storage_session_files(storage: Path) -> list[Path]:
    return sorted((storage / "session").glob("*/*.json"))


def assemble_export(file: Path, session: Record, warnings: TranscriptWarnings) -> Record:
    """Reads a session's messages and parts from storage into the shape of an export; ids sort by time."""
    storage = file.absolute().parents[2]
    messages = []
    for info in _read_records(storage / "message" / str(session["id"]), warnings):
        parts = list(_read_records(storage / "part" / str(info.get("id")), warnings))
        messages.append({"info": info, "parts": parts})
    return {"info": session, "messages": messages}


def _read_records(folder: Path, warnings: TranscriptWarnings) -> Iterator[Record]:
    for file in sorted(folder.glob("*.json")):
        value: Any = parse_json_values(file.read_bytes(), str(file), warnings)[0]
        if isinstance(value, dict):
            yield value
        else:
            warnings.count("file", "without a record left out")
