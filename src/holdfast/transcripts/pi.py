"""pi sessions: its own messages, one a line, in a row or (newer) in a tree by ``parentId``."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..messages import Message, Text, is_note
from ..tokens import Usage
from .thread import AnthropicThread, Blocks, anthropic_id
from .transcript import PastCompaction, Record, Transcript, TranscriptWarnings, count_or_none, text_or_none

_FAILED_REASONS = ("aborted", "error")
NO_FOLDER = "/"
"""Written where a session has no folder: pi's header needs one."""
PI_SUMMARY_PREFIX = (
    "Another language model worked on this task and produced a summary. Build on it, and do not do its work again:\n\n"
)
"""pi's files hold the bare summary; its contexts show it as a user message with a prefix."""


def add_pi_message(
    thread: AnthropicThread, message: Record, record: Record, warnings: TranscriptWarnings
) -> int | None:
    """Adds one message; returns the index of its entry."""
    id, time = text_or_none(record.get("id")), text_or_none(record.get("timestamp"))
    match message.get("role"):
        case "user":
            return thread.add_user(pi_user_blocks(message.get("content"), warnings), id=id, time=time)
        case "toolResult":
            return thread.add_user([_pi_tool_result(message, warnings)], id=id, time=time)
        case "assistant":
            failed = message.get("stopReason") in _FAILED_REASONS
            warnings.count("assistant message", "aborted or failed, usage not counted", int(failed))
            usage = None if failed else _read_pi_usage(message.get("usage"))
            return thread.add_reply(_pi_reply_blocks(message, warnings), key=None, id=id, time=time, usage=usage)
        case role:
            warnings.count("message", f"of role {role!r} left out")
            return None


def pi_user_blocks(content: Any, warnings: TranscriptWarnings) -> str | Blocks:
    """Content of a user message as Anthropic blocks; a plain string stays one."""
    if isinstance(content, str):
        return content
    blocks: Blocks = []
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "text", "text": str(value)}:
                blocks.append({"type": "text", "text": value})
            case {"type": "image", "data": str(data), "mimeType": str(mime)}:
                source = {"type": "base64", "media_type": mime, "data": data}
                blocks.append({"type": "image", "source": source})
            case _:
                warnings.count("content part", "of an unknown shape left out")
    return blocks


def _pi_reply_blocks(message: Record, warnings: TranscriptWarnings) -> Blocks:
    content = message.get("content")
    blocks: Blocks = []
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "text", "text": str(value)}:
                blocks.append({"type": "text", "text": value})
            case {"type": "thinking", "thinking": str(value)}:
                blocks.append(_pi_thinking_block(part, value, message))
            case {"type": "toolCall", "id": str(id), "name": str(name)}:
                arguments = part.get("arguments")
                arguments = arguments if isinstance(arguments, dict) else {}
                blocks.append({"type": "tool_use", "id": anthropic_id(id, warnings), "name": name, "input": arguments})
            case _:
                warnings.count("content part", "of an unknown shape left out")
    return blocks


def _pi_thinking_block(part: Record, thinking: str, message: Record) -> Record:
    """A thinking block; only Anthropic's own signature is kept."""
    signature = text_or_none(part.get("thinkingSignature")) if str(message.get("api")).startswith("anthropic") else None
    if signature and part.get("redacted"):
        return {"type": "redacted_thinking", "data": signature}
    block = {"type": "thinking", "thinking": thinking}
    return {**block, "signature": signature} if signature else block


def _pi_tool_result(message: Record, warnings: TranscriptWarnings) -> Record:
    content = pi_user_blocks(message.get("content"), warnings)
    if isinstance(content, list):
        content = [block for block in content if block.get("text") != ""] or ""
    call = anthropic_id(str(message.get("toolCallId") or ""))
    block = {"type": "tool_result", "tool_use_id": call, "content": content}
    return {**block, "is_error": True} if message.get("isError") else block


def _read_pi_usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    counts = [count_or_none(usage.get(name)) or 0 for name in ("input", "output", "cacheRead", "cacheWrite")]
    return Usage(*counts) if any(counts) else None


def matches(record: Record) -> bool:
    if record.get("type") == "session":
        return "cwd" in record or "version" in record
    message = record.get("message")
    return record.get("type") == "message" and isinstance(message, dict) and "role" in message


class _PlacedRecord(Struct, frozen=True):
    """A record of the thread and the index of its entry; None if it was left out."""

    record: Record
    entry: int | None = None

    @property
    def opens_turn(self) -> bool:
        message = self.record.get("message")
        return self.entry is not None and isinstance(message, dict) and message.get("role") == "user"


def read(records: list[Record], warnings: TranscriptWarnings) -> Transcript:
    """Reads the branch that ends in the newest record, as Anthropic messages."""
    thread = AnthropicThread(warnings)
    compactions: list[PastCompaction] = []
    placed: list[_PlacedRecord] = []
    since = 0
    model = session = folder = title = None
    for record in _active_branch(records, warnings):
        kind, entry = record.get("type"), None
        message = record.get("message")
        if kind == "message" and isinstance(message, dict):
            model = text_or_none(message.get("model")) or model
            entry = add_pi_message(thread, message, record, warnings)
        elif kind == "custom_message":
            blocks = pi_user_blocks(record.get("content"), warnings)
            entry = thread.add_user(
                blocks, id=text_or_none(record.get("id")), time=text_or_none(record.get("timestamp"))
            )
        elif kind == "compaction":
            thread.cut()
            kept = _kept_count(record, placed, since, len(thread), records, warnings)
            compactions.append(_past_compaction(record, len(thread), kept))
            since = len(placed)
        elif kind == "session":
            session, model = text_or_none(record.get("id")), text_or_none(record.get("modelId")) or model
            folder = text_or_none(record.get("cwd"))
        elif kind == "session_info":
            title = text_or_none(record.get("name"))
        else:
            model = (text_or_none(record.get("modelId")) if kind == "model_change" else None) or model
            warnings.count("record", f"of type {kind!r} left out")
        placed.append(_PlacedRecord(record, entry))
    entries = thread.entries()
    return Transcript(
        "pi",
        "anthropic",
        entries,
        tuple(compactions),
        model=model,
        id=session,
        warnings=warnings.lines(),
        folder=None if folder == NO_FOLDER else folder,
        title=title,
    )


def _active_branch(records: list[Record], warnings: TranscriptWarnings) -> list[Record]:
    """Records from the root to the newest along ``parentId``; all of them if the file is not a tree."""
    by_id = {record["id"]: record for record in records if "parentId" in record and text_or_none(record.get("id"))}
    if not by_id:
        return records
    path: set[str] = set()
    at = next(reversed(by_id))
    while at in by_id and at not in path:
        path.add(at)
        at = text_or_none(by_id[at].get("parentId")) or ""
    live = [record for record in records if "parentId" not in record or text_or_none(record.get("id")) in path]
    warnings.count("record", "on abandoned branches left out", len(records) - len(live))
    return live


def _past_compaction(record: Record, after: int, kept: int) -> PastCompaction:
    summary = text_or_none(record.get("summary"))
    return PastCompaction(
        after,
        summary=summary,
        head=() if summary is None else ({"role": "user", "content": _with_prefix(summary)},),
        tokens_before=count_or_none(record.get("tokensBefore")),
        trigger=text_or_none(record.get("trigger")),
        kept=kept,
    )


def _with_prefix(summary: str) -> str:
    """Returns a summary as pi shows it; one that already says what it is stays as it is."""
    return summary if is_note(Message("user", (Text(summary),))) else f"{PI_SUMMARY_PREFIX}{summary}"


def _kept_count(
    record: Record,
    placed: list[_PlacedRecord],
    since: int,
    after: int,
    records: list[Record],
    warnings: TranscriptWarnings,
) -> int:
    """How many entries stay visible: those from a named record on, or a number of last messages.

    A number does not reach past the previous compaction, and the kept part starts at a user message.
    """
    if (count := count_or_none(record.get("keepLastMessages"))) is not None:
        messages = [item for item in placed[since:] if item.record.get("type") == "message"]
        window = messages[-count:] if count else []
        first = next((item.entry for item in window if item.opens_turn), None)
        return 0 if first is None else after - first
    index, named = record.get("firstKeptEntryIndex"), text_or_none(record.get("firstKeptEntryId"))
    if named is not None and named == record.get("id"):
        return 0  # it names itself: no earlier record is kept
    if isinstance(index, int) and 0 <= index < len(records):
        target: Record | None = records[index]  # a line number, the header included
    else:
        target = next((item.record for item in placed if named and item.record.get("id") == named), None)
    indexes = [index for index, item in enumerate(placed) if item.record is target]
    if not indexes:
        warnings.count("compaction", "that does not say what it kept")
        return 0
    entries = [item.entry for item in placed[indexes[0] :] if item.entry is not None]
    return after - entries[0] if entries else 0
