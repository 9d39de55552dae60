"""Codex CLI rollouts: one record a line, each a Responses API item or an event about the session."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..tokens import Usage
from .transcript import (
    PastCompaction,
    Record,
    Transcript,
    TranscriptEntry,
    TranscriptWarnings,
    count_or_none,
    text_or_none,
)

_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_LOG_ONLY = ("internal_chat_message_metadata_passthrough",)
_WINDOW_SHARE = 0.95
"""Codex records what is left of the model's window after the share that it keeps free: 258,400 of 272,000."""
_ENCRYPTED = ("compaction", "compaction_summary", "context_compaction")


def matches(record: Record) -> bool:
    return record.get("type") in _TYPES and isinstance(record.get("payload"), dict)


def read(records: list[Record], warnings: TranscriptWarnings) -> Transcript:
    session = _RolloutReader(warnings)
    for record in records:
        payload = record.get("payload")
        if not isinstance(payload, dict):
            warnings.count("record", "without a payload left out")
            continue
        match record.get("type"):
            case "session_meta":
                session.read_meta(payload)
            case "turn_context":
                session.model = text_or_none(payload.get("model")) or session.model
            case "response_item":
                session.add(payload, text_or_none(record.get("timestamp")))
            case "compacted":
                session.compact(payload)
            case "event_msg" if payload.get("type") == "token_count":
                session.add_token_count(payload.get("info"))
            case "event_msg" if payload.get("type") == "thread_rolled_back":
                warnings.count("rollback", "not applied: the turns it undid are still here")
            case other:
                name = f"{other}/{payload.get('type')}" if other == "event_msg" else other
                warnings.count("record", f"of type {name!r} left out")
    return session.transcript()


class _RolloutReader:
    """Collects entries, compactions and usage while reading a rollout."""

    def __init__(self, warnings: TranscriptWarnings) -> None:
        self.warnings = warnings
        self.model: str | None = None
        self._id: str | None = None
        self._system: str | None = None
        self._folder: str | None = None
        self._entries: list[TranscriptEntry] = []
        self._compactions: list[PastCompaction] = []
        self._unmeasured: int | None = None
        self._totals: Any = None
        self._context: int | None = None
        self._window: int | None = None

    def read_meta(self, payload: Record) -> None:
        """Reads a header. Only the first counts: a forked session repeats its parent's after its own."""
        base = payload.get("base_instructions")
        instructions = base.get("text") if isinstance(base, dict) else payload.get("instructions")
        self._id = self._id or text_or_none(payload.get("id"))
        self._system = self._system or text_or_none(instructions)
        self._folder = self._folder or text_or_none(payload.get("cwd"))

    def add(self, payload: Record, time: str | None) -> None:
        item = _sendable_item(payload, self.warnings)
        if item is None:
            return
        if _is_from_model(item):
            self._unmeasured = len(self._entries)
        self._entries.append(TranscriptEntry(item, text_or_none(item.get("id")), time))

    def compact(self, payload: Record) -> None:
        """Adds a compaction with its replacement history. The summary is missing where it is encrypted."""
        history = payload.get("replacement_history")
        items = [item for item in history if isinstance(item, dict)] if isinstance(history, list) else []
        head = [shown for item in items if (shown := _sendable_item(item, self.warnings)) is not None]
        self._compactions.append(
            PastCompaction(
                len(self._entries),
                summary=text_or_none(payload.get("message")),
                tokens_before=self._context,
                head=tuple(head),
            )
        )
        self._unmeasured = self._context = None

    def add_token_count(self, info: Any) -> None:
        """Assigns a usage report to the newest model item; one with unchanged totals is a repetition."""
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if isinstance(info, dict):
            self._window = count_or_none(info.get("model_context_window")) or self._window
        if not isinstance(last, dict):
            return
        report, totals = _TokenReport.of(last), info.get("total_token_usage")
        if self._compactions and report.usage is None and self._context is None:
            self._compactions[-1] = replace(self._compactions[-1], tokens_after=report.context)
        elif totals is not None and totals == self._totals:
            return
        elif report.usage is None or self._unmeasured is None:
            self.warnings.count("usage report", "without a reply")
        else:
            self._entries[self._unmeasured] = replace(self._entries[self._unmeasured], usage=report.usage)
            self._unmeasured = None
        self._totals, self._context = totals, report.context

    def transcript(self) -> Transcript:
        calls = {entry.message["call_id"] for entry in self._entries if _is_call_part(entry.message, "_call")}
        outputs = {entry.message["call_id"] for entry in self._entries if _is_call_part(entry.message, "_output")}
        self.warnings.count("tool call", "without a result", len(calls - outputs))
        self.warnings.count("tool result", "without its call", len(outputs - calls))
        return Transcript(
            "codex",
            "openai-responses",
            tuple(self._entries),
            tuple(self._compactions),
            system=self._system,
            model=self.model,
            id=self._id,
            warnings=self.warnings.lines(),
            folder=self._folder,
            window=self._window,
            whole_window=None if self._window is None else round(self._window / _WINDOW_SHARE),
        )


class _TokenReport(Struct, frozen=True):
    """A token count: the usage of a reply, if it is about one, and the context size after it."""

    usage: Usage | None
    context: int | None

    @classmethod
    def of(cls, last: Record) -> _TokenReport:
        sent, cached = count_or_none(last.get("input_tokens")) or 0, count_or_none(last.get("cached_input_tokens")) or 0
        usage = Usage(max(sent - cached, 0), count_or_none(last.get("output_tokens")) or 0, cached)
        return cls(usage if usage.total else None, count_or_none(last.get("total_tokens")) or usage.total or None)


def _sendable_item(payload: Record, warnings: TranscriptWarnings) -> Record | None:
    """The item without log-only fields; None if it cannot be sent to the provider."""
    item = {key: value for key, value in payload.items() if key not in _LOG_ONLY}
    kind = item.get("type")
    if kind == "ghost_snapshot":
        warnings.count("record", "of type 'response_item/ghost_snapshot' left out")
    elif kind == "reasoning" and not any(item.get(key) for key in ("summary", "content", "encrypted_content")):
        warnings.count("reasoning item", "without content left out")
    elif kind == "message" and not item.get("content"):
        warnings.count("message", "without content left out")
    elif kind in _ENCRYPTED and not item.get("encrypted_content"):
        warnings.count("compaction item", "without its encrypted summary left out")
    else:
        return item
    return None


def _is_from_model(item: Record) -> bool:
    kind = str(item.get("type"))
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _is_call_part(item: Record, ending: str) -> bool:
    return str(item.get("type")).endswith(ending) and isinstance(item.get("call_id"), str)
