"""Export a session as a session file of pi, with the same context and compactions.

pi shows a summary as a user message, then a run of messages from the file. Where a checkpoint shows more than that (a
message out of order, a cleared result), its context is written again on a branch that starts where the archived part
ends; pi's files are trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ..context import Checkpoint, HeadMessage, View
from ..context.events import Event, EventKind, SessionRecord, message_in
from ..messages import COMMON, Json, Message, Text, encode_all, is_vendor_summary, opening_pair, rules_for
from ..sessions.history import FOLDER, TITLE
from ..tokens import Estimator, Usage
from ..tokens.estimators import prompt_overhead
from .pi import NO_FOLDER, PI_SUMMARY_PREFIX
from .transcript import Record, TranscriptWarnings

_NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}


class PiMessageWriter:
    """Converts messages to pi's format, by way of the Anthropic format that pi's resembles."""

    def __init__(self, model: str | None, warnings: TranscriptWarnings) -> None:
        self._model = model or ""
        self._warnings = warnings
        self._tools: dict[str, str] = {}

    def write(self, message: Message, time: str, usage: Usage | None) -> Iterator[Record]:
        """Yields pi's messages for one message: one for user content, a reply, and each tool result."""
        if message.role == "system":
            self._warnings.count("system message", "written as a user message: pi has no other place for it")
        for payload in encode_all([message], "anthropic"):
            content = payload.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            if payload["role"] == "assistant":
                if parts := [part for block in blocks for part in self._reply(block)]:
                    yield self._assistant(parts, time, usage)
                continue
            for block in blocks:
                if block.get("type") == "tool_result":
                    yield self._result(block, time)
            rest = [block for block in blocks if block.get("type") != "tool_result"]
            if parts := self._user_parts(rest):
                yield {"role": "user", "content": parts, "timestamp": _milliseconds(time)}

    def _assistant(self, parts: list[Record], time: str, usage: Usage | None) -> Record:
        calls = any(part["type"] == "toolCall" for part in parts)
        return {
            "role": "assistant",
            "content": parts,
            "api": "anthropic-messages",
            "provider": "anthropic",
            "model": self._model,
            "usage": _pi_usage(usage or Usage()),
            "stopReason": "toolUse" if calls else "stop",
            "timestamp": _milliseconds(time),
        }

    def _reply(self, block: Json) -> Iterator[Record]:
        match block:
            case {"type": "thinking", "thinking": str(value)}:
                yield {"type": "thinking", "thinking": value, "thinkingSignature": block.get("signature") or ""}
            case {"type": "redacted_thinking", "data": str(data)}:
                yield {"type": "thinking", "thinking": "", "thinkingSignature": data, "redacted": True}
            case {"type": "tool_use", "id": str(id), "name": str(name)}:
                self._tools[id] = name
                yield {"type": "toolCall", "id": id, "name": name, "arguments": block.get("input") or {}}
            case _:
                yield from self._user_parts([block])

    def _result(self, block: Json, time: str) -> Record:
        content, call = block.get("content"), str(block.get("tool_use_id"))
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        return {
            "role": "toolResult",
            "toolCallId": call,
            "toolName": self._tools.get(call, ""),
            "content": self._user_parts(blocks),
            "isError": bool(block.get("is_error")),
            "timestamp": _milliseconds(time),
        }

    def _user_parts(self, blocks: Sequence[Json]) -> list[Record]:
        """Text and images; any other block as text."""
        parts: list[Record] = []
        for block in blocks:
            match block:
                case {"type": "text", "text": str(value)}:
                    parts.append({"type": "text", "text": value})
                case {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": str(mime)}}:
                    parts.append({"type": "image", "data": data, "mimeType": mime})
                case _:
                    self._warnings.count("content block", f"of type {block.get('type')!r} written as text")
                    parts.append({"type": "text", "text": _text_of_block(block)})
        return parts


def _text_of_block(block: Json) -> str:
    source = block.get("source")
    content: Any = block.get("content") or block.get("title")
    if isinstance(source, dict):
        content = source.get("url") or (source.get("data") if source.get("type") == "text" else None) or content
    return content if isinstance(content, str) else f"[{block.get('type')}]"


def _pi_usage(usage: Usage) -> Record:
    counts = {"input": usage.input, "output": usage.output}
    cached = {"cacheRead": usage.cache_read, "cacheWrite": usage.cache_write}
    return {**counts, **cached, "totalTokens": usage.total, "cost": _NO_COST}


def _milliseconds(time: str) -> int:
    try:
        return int(datetime.fromisoformat(time).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


PI_VERSION = 3


class PathSegment(msgspec.Struct):
    """Records on the path to the newest one, with the messages they represent; none for a compaction."""

    records: list[Record]
    shown: list[tuple[str, Message]] = []


def build_pi_records(
    exported: Sequence[Mapping[str, Any]], estimator: Estimator, warnings: TranscriptWarnings
) -> list[Record]:
    """Converts the records of `SessionService.export` to the records of a pi session file."""
    session = msgspec.convert({k: v for k, v in exported[0].items() if k != "kind"}, SessionRecord)
    events = [msgspec.convert(line, Event) for line in exported[1:]]
    root = [event for event in events if event.lane is None]
    warnings.count("event", "of sub-agents left out", len(events) - len(root))
    return _PiFileBuilder(session, root, estimator, warnings).build()


class _PiFileBuilder:
    """Builds the records of a pi file event by event."""

    def __init__(
        self, session: SessionRecord, events: list[Event], estimator: Estimator, warnings: TranscriptWarnings
    ) -> None:
        self._session = session
        self._events = events
        self._estimator = estimator
        self._warnings = warnings
        self._known = {event.id: event for event in events}
        self._writer = PiMessageWriter(session.model, warnings)
        self._view = self._new_view()
        self._records: list[Record] = []
        self._path: list[PathSegment] = []
        self._ids: set[str] = set()

    def build(self) -> list[Record]:
        effective = self._effective_checkpoints()
        for index, event in enumerate(self._events):
            if event.kind == EventKind.MESSAGE:
                self._append_message(event)
            elif event.id in effective:
                self._compact(event, self._events[:index])
            elif event.kind == EventKind.COMPACTION:
                self._warnings.count("compaction", "that was undone left out")
        header: Record = {
            "type": "session",
            "version": PI_VERSION,
            "id": self._session.id,
            "timestamp": self._session.created,
            "cwd": self._session.metadata.get(FOLDER) or NO_FOLDER,
        }
        if title := self._session.metadata.get(TITLE):
            self._path.append(PathSegment([]))
            self._add("session_info", f"{self._session.id}.title", self._session.created, {"name": title})
        return [header | ({"modelId": self._session.model} if self._session.model else {}), *self._records]

    def _effective_checkpoints(self) -> set[str]:
        """Ids of the current checkpoint and its predecessors."""
        now: str | None = None
        for event in self._events:
            if event.kind == EventKind.COMPACTION:
                now = event.id
            elif event.kind == EventKind.UNDO:
                now = event.body.get("to")
        chain: set[str] = set()
        while now in self._known and now not in chain:
            chain.add(now)
            now = self._known[now].body.get("previous")
        return chain

    def _append_message(self, event: Event) -> None:
        before = len(self._view.messages)
        self._view.append(event)
        fresh = list(zip(self._view.ids[before:], self._view.messages[before:], strict=True))
        self._warnings.count("event", "that is in no context left out", int(not fresh))
        usage = event.body.get("usage")
        for name, message in fresh:
            counted = msgspec.convert(usage, Usage) if usage and name == event.id else None
            self._write(name, message, event.time, counted)

    def _write(self, name: str, message: Message, time: str, usage: Usage | None = None, start: int = 0) -> None:
        pi_messages = list(self._writer.write(message, time, usage))
        last = self._path[-1] if len(self._path) > start else None
        if last is not None and not is_vendor_summary(message) and self._continues_reply(last, pi_messages):
            last.records[-1]["message"] = _merge_replies(last.records[-1]["message"], pi_messages[0])
            last.shown.append((name, message))
            return
        self._path.append(PathSegment([], [(name, message)]))
        for one in pi_messages:
            self._add("message", name, time, {"message": one})

    def _continues_reply(self, last: PathSegment, pi_messages: Sequence[Record]) -> bool:
        """True for items of one OpenAI reply and assistant messages that Anthropic merges: one message in pi."""
        profile = rules_for(self._view.format)
        if not ((profile.items or profile.merges_roles) and last.shown and last.records and len(pi_messages) == 1):
            return False
        return bool(pi_messages[0]["role"] == last.records[-1]["message"]["role"] == "assistant")

    def _add(self, kind: str, name: str, time: str, more: Record) -> Record:
        """Adds a record as a child of the newest one, to the current segment."""
        id, number = name, 2
        while id in self._ids:
            id, number = f"{name}.{number}", number + 1
        self._ids.add(id)
        parent = next((segment.records[-1]["id"] for segment in reversed(self._path) if segment.records), None)
        record = {"type": kind, "id": id, "parentId": parent, "timestamp": time} | more
        self._records.append(record)
        self._path[-1].records.append(record)
        return record

    # -- compactions --------------------------------------------------------------------------------

    def _compact(self, event: Event, before: Sequence[Event]) -> None:
        checkpoint = msgspec.convert(event.body, Checkpoint)
        view = self._view = self._open(event, checkpoint, before)
        summary, rest = _split_summary(view.head)
        shown = [*((one.source or event.id, one.message) for one in rest), *zip(view.ids, view.messages, strict=True)]
        start = self._start_of(shown)
        if start is None:
            start = self._write_branch(shown, event.time)
        kept = [one["id"] for segment in self._path[start:] for one in segment.records]
        self._path.append(PathSegment([]))
        record = self._add(
            "compaction", event.id, event.time, {"summary": summary, "tokensBefore": checkpoint.tokens_before}
        )
        record["firstKeptEntryId"] = kept[0] if kept else record["id"]

    def _open(self, event: Event, checkpoint: Checkpoint, before: Sequence[Event]) -> View:
        view = self._new_view()
        head = []
        for item in checkpoint.head:
            source = self._known.get(item.ref or "")
            message = item.message
            if message is None and source is not None:
                message = message_in(source)
            if message is not None:
                head.append(HeadMessage(item.kind, message, item.ref))
        view.start_from(event.id, checkpoint, head, event.seq)
        boundary = self._known.get(checkpoint.boundary or "")
        for one in before:
            if boundary is None or one.seq > boundary.seq:
                view.append(one)
        return view

    def _start_of(self, shown: Sequence[tuple[str, Message]]) -> int | None:
        """The segment from which the path shows exactly these messages; None if it does not."""
        rest = list(shown)
        for index in range(len(self._path), 0, -1):
            written = self._path[index - 1].shown
            if not rest:
                return index
            if written and rest[-len(written) :] != written:
                return None
            rest = rest[: len(rest) - len(written)]
        return None if rest else 0

    def _write_branch(self, shown: Sequence[tuple[str, Message]], time: str) -> int:
        """Writes the messages again on a branch after the archived part; returns the segment where it starts."""
        kept = {name for name, _ in shown}
        while self._path and self._path[-1].shown and all(name in kept for name, _ in self._path[-1].shown):
            self._path.pop()
        start = len(self._path)
        for name, message in shown:
            self._write(name, message, time, start=start)
        return start

    def _new_view(self) -> View:
        session = self._session
        return View(
            self._estimator,
            format=session.format or COMMON,
            prompt_overhead=prompt_overhead(session.system, session.tools),
        )


def _split_summary(head: Sequence[HeadMessage]) -> tuple[str, Sequence[HeadMessage]]:
    """Splits the head into the summary, which pi shows as a user message with a prefix, and the rest."""
    asks = bool(opening_pair([shown.message for shown in head]))  # OpenCode's question: its reply is the summary
    if head and head[0].message.role == "user" and head[0].source is None and not asks:
        parts = head[0].message.parts
        if len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text.removeprefix(PI_SUMMARY_PREFIX), head[1:]
    return "", head


def _merge_replies(first: Record, more: Record) -> Record:
    usage = more["usage"] if more["usage"]["totalTokens"] else first["usage"]
    stop = "toolUse" if "toolUse" in (first["stopReason"], more["stopReason"]) else "stop"
    return first | {"content": [*first["content"], *more["content"]], "usage": usage, "stopReason": stop}
