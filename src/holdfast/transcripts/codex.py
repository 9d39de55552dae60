"""Codex CLI rollouts: Responses API items, wrapped one a line, among events about them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .notes import Notes
from .transcript import Entry, PastCompaction, Record, Transcript, Usage, text, whole

_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_LOG_ONLY = ("internal_chat_message_metadata_passthrough",)
_ENCRYPTED = ("compaction", "compaction_summary", "context_compaction")


def fits(record: Record) -> bool:
    return record.get("type") in _TYPES and isinstance(record.get("payload"), dict)


def read(records: list[Record], notes: Notes) -> Transcript:
    session = _Session(notes)
    for record in records:
        payload = record.get("payload")
        if not isinstance(payload, dict):
            notes.count("record", "without a payload left out")
            continue
        match record.get("type"):
            case "session_meta":
                session.about(payload)
            case "turn_context":
                session.model = text(payload.get("model")) or session.model
            case "response_item":
                session.add(payload, text(record.get("timestamp")))
            case "compacted":
                session.compact(payload)
            case "event_msg" if payload.get("type") == "token_count":
                session.count(payload.get("info"))
            case "event_msg" if payload.get("type") == "thread_rolled_back":
                notes.count("rollback", "not applied: the turns it undid are still here")
            case other:
                name = f"{other}/{payload.get('type')}" if other == "event_msg" else other
                notes.count("record", f"of type {name!r} left out")
    return session.transcript()


class _Session:
    """A rollout, read so far."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.model: str | None = None
        self._id: str | None = None
        self._system: str | None = None
        self._entries: list[Entry] = []
        self._compactions: list[PastCompaction] = []
        self._unmeasured: int | None = None
        self._totals: Any = None
        self._context: int | None = None

    def about(self, payload: Record) -> None:
        """The first header is this session's; a forked one repeats its parent's after it."""
        base = payload.get("base_instructions")
        said = base.get("text") if isinstance(base, dict) else payload.get("instructions")
        self._id = self._id or text(payload.get("id"))
        self._system = self._system or text(said)

    def add(self, payload: Record, time: str | None) -> None:
        item = _sendable(payload, self.notes)
        if item is None:
            return
        if _is_from_model(item):
            self._unmeasured = len(self._entries)
        self._entries.append(Entry(item, text(item.get("id")), time))

    def compact(self, payload: Record) -> None:
        """The file says what took the history's place, but not always the summary: it may be encrypted."""
        history = payload.get("replacement_history")
        items = [item for item in history if isinstance(item, dict)] if isinstance(history, list) else []
        head = [shown for item in items if (shown := _sendable(item, self.notes)) is not None]
        self._compactions.append(
            PastCompaction(
                len(self._entries),
                summary=text(payload.get("message")),
                tokens_before=self._context,
                head=tuple(head),
            )
        )
        self._unmeasured = self._context = None

    def count(self, info: Any) -> None:
        """A report belongs to the newest thing the model said (P3); without new totals it is a repetition."""
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if not isinstance(last, dict):
            return
        report, totals = _Report.of(last), info.get("total_token_usage")
        if self._compactions and report.usage is None and self._context is None:
            self._compactions[-1] = replace(self._compactions[-1], tokens_after=report.context)
        elif totals is not None and totals == self._totals:
            return
        elif report.usage is None or self._unmeasured is None:
            self.notes.count("usage report", "without a reply")
        else:
            self._entries[self._unmeasured] = replace(self._entries[self._unmeasured], usage=report.usage)
            self._unmeasured = None
        self._totals, self._context = totals, report.context

    def transcript(self) -> Transcript:
        calls = {entry.message["call_id"] for entry in self._entries if _is_part(entry.message, "_call")}
        outputs = {entry.message["call_id"] for entry in self._entries if _is_part(entry.message, "_output")}
        self.notes.count("tool call", "without a result", len(calls - outputs))
        self.notes.count("tool result", "without its call", len(outputs - calls))
        return Transcript(
            "codex",
            "openai-responses",
            tuple(self._entries),
            tuple(self._compactions),
            system=self._system,
            model=self.model,
            id=self._id,
            notes=self.notes.lines(),
        )


class _Report(Struct, frozen=True):
    """One token count: what it says of a reply, if it is about one, and how large the context is now."""

    usage: Usage | None
    context: int | None

    @classmethod
    def of(cls, last: Record) -> _Report:
        sent, cached = whole(last.get("input_tokens")) or 0, whole(last.get("cached_input_tokens")) or 0
        usage = Usage(max(sent - cached, 0), whole(last.get("output_tokens")) or 0, cached)
        return cls(usage if usage.total else None, whole(last.get("total_tokens")) or usage.total or None)


def _sendable(payload: Record, notes: Notes) -> Record | None:
    """The item without what only the log knows; nothing if nothing is left to send."""
    item = {key: value for key, value in payload.items() if key not in _LOG_ONLY}
    kind = item.get("type")
    if kind == "ghost_snapshot":
        notes.count("record", "of type 'response_item/ghost_snapshot' left out")
    elif kind == "reasoning" and not any(item.get(key) for key in ("summary", "content", "encrypted_content")):
        notes.count("reasoning item", "without content left out")
    elif kind == "message" and not item.get("content"):
        notes.count("message", "without content left out")
    elif kind in _ENCRYPTED and not item.get("encrypted_content"):
        notes.count("compaction item", "without its encrypted summary left out")
    else:
        return item
    return None


def _is_from_model(item: Record) -> bool:
    kind = str(item.get("type"))
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _is_part(item: Record, ending: str) -> bool:
    return str(item.get("type")).endswith(ending) and isinstance(item.get("call_id"), str)
