"""Claude Code sessions: one JSONL record for each content block, linked into a tree by ``parentUuid``."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from msgspec.structs import replace

from ..tokens import Usage
from .thread import AnthropicThread, Blocks
from .transcript import PastCompaction, Record, Transcript, TranscriptWarnings, count_or_none, text_or_none

_MESSAGES = ("user", "assistant")
_SYNTHETIC = "<synthetic>"


def matches(record: Record) -> bool:
    kind = record.get("type")
    if kind in _MESSAGES:
        return isinstance(record.get("message"), dict) and ("sessionId" in record or "uuid" in record)
    return (kind == "system" and "uuid" in record) or (kind == "summary" and "leafUuid" in record)


def read(records: list[Record], warnings: TranscriptWarnings) -> Transcript:
    """Reads the root thread. Sub-agents, abandoned branches and bookkeeping records are skipped and counted."""
    thread = AnthropicThread(warnings)
    compactions: list[PastCompaction] = []
    model = session = None
    root = _root_thread(records, warnings)
    for record in root:
        session = text_or_none(record.get("sessionId")) or session
        message = record.get("message")
        if record.get("type") == "system" and record.get("subtype") == "compact_boundary":
            thread.cut()
            compactions.append(_past_compaction(record, len(thread)))
        elif record.get("type") not in _MESSAGES:
            _count_skipped(record, warnings)
        elif not isinstance(message, dict) or (content := _read_content(message.get("content"), warnings)) is None:
            warnings.count("record", "without a readable message left out")
        elif record["type"] == "assistant":
            if record.get("isApiErrorMessage"):
                warnings.count("API error", "shown as a reply left out")
                continue
            _add_reply(thread, record, message, content)
            model = text_or_none(message.get("model")) if message.get("model") != _SYNTHETIC else model
        else:
            if record.get("isCompactSummary"):
                _add_summary(compactions, content, thread)
            thread.add_user(content, id=text_or_none(record.get("uuid")), time=text_or_none(record.get("timestamp")))
    return Transcript(
        "claude-code",
        "anthropic",
        thread.entries(),
        tuple(compactions),
        model=model,
        id=_transcript_id(session, root),
        warnings=warnings.lines(),
        folder=next(filter(None, (text_or_none(record.get("cwd")) for record in root)), None),
        title=_title(root),
    )


def _title(root: list[Record]) -> str | None:
    """The newest title; one that the user gave takes precedence."""
    kinds = (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary"))
    found = (
        text_or_none(record.get(key)) for kind, key in kinds for record in reversed(root) if record.get("type") == kind
    )
    return next(filter(None, found), None)


def _transcript_id(session: str | None, root: list[Record]) -> str | None:
    """The session id; a sub-agent's file has its parent's, so its agent id is appended."""
    agent = next((text_or_none(record.get("agentId")) for record in root if record.get("isSidechain")), None)
    return f"{session}.{agent}" if session and agent else session


def _root_thread(records: list[Record], warnings: TranscriptWarnings) -> list[Record]:
    root = [record for record in records if not record.get("isSidechain")]
    if not any(record.get("type") in _MESSAGES for record in root):
        root = records  # newer versions write each sub-agent into its own file, where it is the root thread
    warnings.count("sub-agent record", "(isSidechain) left out", len(records) - len(root))
    lost = _abandoned_records(root)
    warnings.count("record", "on abandoned branches left out", len(lost))
    return [record for index, record in enumerate(root) if index not in lost]


def _abandoned_records(records: list[Record]) -> set[int]:
    """Indexes of records on abandoned branches: siblings of the step that the newest record descends from.

    Parallel calls also branch (a call has its result and the next call as children), so only a new reply or
    a new user text counts as a step. Records whose parent is not in the file are kept.
    """
    indexes = {record["uuid"]: index for index, record in enumerate(records) if text_or_none(record.get("uuid"))}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for index, record in enumerate(records):
        parent = text_or_none(record.get("parentUuid"))
        if parent in indexes and indexes[parent] < index:
            children[indexes[parent]].append(index)
    reach = list(range(len(records)))
    for index in reversed(reach.copy()):
        reach[index] = max([index, *(reach[child] for child in children[index])])
    lost: set[int] = set()
    for parent_place, below in list(children.items()):
        steps = [child for child in below if _is_step(records[child], records[parent_place])]
        alive = max(steps, key=reach.__getitem__, default=None)
        left = [child for child in steps if child != alive]
        while left:
            lost.add(index := left.pop())
            left.extend(children[index])
    return lost


def _is_step(record: Record, parent: Record) -> bool:
    message = record.get("message")
    if not isinstance(message, dict):
        return False
    if record.get("type") == "assistant":
        before = parent.get("message")
        return not isinstance(before, dict) or before.get("id") != message.get("id")
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return not any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _read_content(content: Any, warnings: TranscriptWarnings) -> str | Blocks | None:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    blocks = [block for block in content if isinstance(block, dict)]
    warnings.count("content block", "of an unknown shape left out", len(content) - len(blocks))
    return blocks


def _add_reply(thread: AnthropicThread, record: Record, message: dict[str, Any], content: str | Blocks) -> None:
    thread.add_reply(
        [{"type": "text", "text": content}] if isinstance(content, str) else content,
        key=text_or_none(message.get("id")),
        id=text_or_none(record.get("uuid")),
        time=text_or_none(record.get("timestamp")),
        usage=_read_usage(message.get("usage")),
    )


def _read_usage(usage: Any) -> Usage | None:
    """The reported usage; None if all counts are zero, as for a synthetic reply."""
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [count_or_none(usage.get(name)) or 0 for name in names]
    return Usage(*counts) if any(counts) else None


def _past_compaction(record: Record, after: int) -> PastCompaction:
    metadata = record.get("compactMetadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return PastCompaction(
        after,
        tokens_before=count_or_none(metadata.get("preTokens")),
        tokens_after=count_or_none(metadata.get("postTokens")),
        trigger=text_or_none(metadata.get("trigger")),
    )


def _add_summary(compactions: list[PastCompaction], content: str | Blocks, thread: AnthropicThread) -> None:
    """Adds a summary to the boundary right before it; older versions write no boundary."""
    if not compactions or compactions[-1].after != len(thread) or compactions[-1].summary is not None:
        thread.cut()
        compactions.append(PastCompaction(len(thread)))
    summary = content if isinstance(content, str) else "\n".join(str(block.get("text") or "") for block in content)
    compactions[-1] = replace(compactions[-1], summary=summary)


def _count_skipped(record: Record, warnings: TranscriptWarnings) -> None:
    metadata = record.get("microcompactMetadata")
    cleared = metadata.get("compactedToolIds") if isinstance(metadata, dict) else None
    if isinstance(cleared, list):
        warnings.count("tool result", "cleared by microcompaction, shown here in full", len(cleared))
    name = "/".join(str(record[key]) for key in ("type", "subtype") if record.get(key))
    warnings.count("record", f"of type {name!r} left out")
