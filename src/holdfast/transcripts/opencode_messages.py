"""OpenCode's messages as Anthropic messages, converted as OpenCode does it for that provider."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from ..messages import OPENCODE_QUESTION
from ..tokens import Usage
from .thread import AnthropicThread, Blocks, anthropic_id
from .transcript import Record, TranscriptWarnings, count_or_none, text_or_none

_SUBTASK_TEXT = "The following tool was executed by the user"
_INTERRUPTED_TEXT = "[Tool execution was interrupted]"
_IGNORED_PARTS = ("step-start", "step-finish", "snapshot", "patch", "agent", "retry")
_INLINED_TYPES = ("text/plain", "application/x-directory")
"""Files of these types are already in the message as text parts."""


class OpenCodeMessage(Struct, frozen=True):
    """A message of OpenCode with its parts, not validated."""

    id: str
    info: Record
    parts: tuple[Record, ...]

    @property
    def parent(self) -> str:
        return str(self.info.get("parentID"))

    @property
    def time(self) -> str | None:
        time = self.info.get("time")
        return iso_time(time.get("created")) if isinstance(time, dict) else None

    @property
    def text(self) -> str:
        return "\n".join(
            part["text"] for part in self.parts if part.get("type") == "text" and text_or_none(part.get("text"))
        )

    @property
    def is_summary(self) -> bool:
        """Is this a completed summary?"""
        time = self.info.get("time")
        ended = self.info.get("finish") or (isinstance(time, dict) and time.get("completed"))
        return self.info.get("summary") is True and not self.info.get("error") and bool(ended and self.text)

    def part(self, kind: str) -> Record | None:
        return next((part for part in self.parts if part.get("type") == kind), None)


def parse_opencode_message(record: Record) -> OpenCodeMessage:
    info, parts = record["info"], record.get("parts")
    kept = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return OpenCodeMessage(str(info.get("id")), info, tuple(kept))


def iso_time(milliseconds: Any) -> str | None:
    """Converts OpenCode's milliseconds since 1970 to an ISO timestamp."""
    if (since := count_or_none(milliseconds)) is None:
        return None
    try:
        time = datetime.fromtimestamp(since / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def add_opencode_message(
    thread: AnthropicThread, message: OpenCodeMessage, warnings: TranscriptWarnings
) -> Usage | None:
    """Adds one message; returns the usage of its last step if it is a complete reply."""
    info, parts = message.info, message.parts
    if info.get("role") == "user":
        thread.add_user(_user_blocks(parts, warnings), id=text_or_none(info.get("id")), time=message.time)
        return None
    if info.get("role") != "assistant":
        warnings.count("message", f"of role {info.get('role')!r} left out")
        return None
    failed = info.get("error")
    if failed and not _is_partial_reply(failed, parts):
        warnings.count("assistant message", "that failed left out")
        return None
    warnings.count("assistant message", "broken off, usage not counted", int(bool(failed)))
    return _add_steps(thread, message, warnings, counts=not failed)


def _is_partial_reply(error: Any, parts: Sequence[Record]) -> bool:
    """Is this a reply that the user aborted? OpenCode sends its parts so far."""
    aborted = isinstance(error, dict) and error.get("name") == "MessageAbortedError"
    return aborted and any(part.get("type") not in ("step-start", "reasoning") for part in parts)


def _add_steps(
    thread: AnthropicThread, message: OpenCodeMessage, warnings: TranscriptWarnings, *, counts: bool
) -> Usage | None:
    """Adds one reply for each step, each followed by the results of its calls."""
    id, time, usage = text_or_none(message.info.get("id")), message.time, None
    steps: list[list[Record]] = [[]]
    for part in message.parts:
        if part.get("type") == "step-start" and steps[-1]:
            steps.append([])
        steps[-1].append(part)
    for number, step in enumerate(steps):
        finish = next((part for part in step if part.get("type") == "step-finish"), message.info)
        usage = _read_opencode_usage(finish.get("tokens")) if counts else None
        own = id if number == 0 or id is None else f"{id}.{number}"
        thread.add_reply(_reply_blocks(step, warnings), key=None, id=own, time=time, usage=usage)
        results = [_result_block(part, warnings) for part in step if _is_tool_part(part)]
        if results:
            thread.add_user(results, id=None if own is None else f"{own}-results", time=time)
    return usage


def _is_tool_part(part: Record) -> bool:
    return part.get("type") == "tool" and isinstance(part.get("callID"), str) and isinstance(part.get("state"), dict)


def _user_blocks(parts: Sequence[Record], warnings: TranscriptWarnings) -> Blocks:
    blocks: Blocks = []
    for part in parts:
        match part:
            case {"type": "text", "ignored": True}:
                warnings.count("text part", "marked as ignored left out")
            case {"type": "text", "text": str(value)}:
                blocks.append({"type": "text", "text": value})
            case {"type": "file", "mime": str(mime)} if mime in _INLINED_TYPES:
                warnings.count("file part", "already included as text left out")
            case {"type": "file", "mime": str(mime), "url": str(url)}:
                blocks.append(_file_block(mime, url, part.get("filename")))
            case {"type": "compaction"}:
                blocks.append({"type": "text", "text": OPENCODE_QUESTION})
            case {"type": "subtask"}:
                blocks.append({"type": "text", "text": _SUBTASK_TEXT})
            case {"type": str(kind)} if kind in _IGNORED_PARTS:
                pass
            case _:
                warnings.count("content part", "of an unknown shape left out")
    return blocks


def _reply_blocks(parts: Sequence[Record], warnings: TranscriptWarnings) -> Blocks:
    blocks: Blocks = []
    for part in parts:
        match part:
            case {"type": "text", "text": str(value)}:
                blocks.append({"type": "text", "text": value})
            case {"type": "reasoning", "text": str(value)}:
                blocks.append(_thinking_block(value, part.get("metadata")))
            case {"type": "tool", "callID": str(id), "tool": str(name), "state": dict(state)}:
                given = state.get("input")
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": anthropic_id(id, warnings),
                        "name": name,
                        "input": given if isinstance(given, dict) else {},
                    }
                )
            case {"type": str(kind)} if kind in _IGNORED_PARTS:
                pass
            case _:
                warnings.count("content part", "of an unknown shape left out")
    return blocks


def _thinking_block(thinking: str, metadata: Any) -> Record:
    """A thinking block with Anthropic's signature, if it has one; unsigned ones are dropped later."""
    about = metadata.get("anthropic") if isinstance(metadata, dict) else None
    about = about if isinstance(about, dict) else {}
    if text_or_none(about.get("redactedData")):
        return {"type": "redacted_thinking", "data": about["redactedData"]}
    block = {"type": "thinking", "thinking": thinking}
    return {**block, "signature": about["signature"]} if text_or_none(about.get("signature")) else block


def _result_block(part: Record, warnings: TranscriptWarnings) -> Record:
    state = part["state"]
    block: Record = {"type": "tool_result", "tool_use_id": anthropic_id(part["callID"])}
    match state:
        case {"status": "completed"}:
            return block | {"content": _result_content(state, warnings)}
        case {"status": "error", "metadata": {"interrupted": True, "output": str(output)}}:
            return block | {"content": output}
        case {"status": "error"}:
            return block | {"content": text_or_none(state.get("error")) or "error", "is_error": True}
    warnings.count("tool call", "without a result")
    return block | {"content": _INTERRUPTED_TEXT, "is_error": True}


def _result_content(state: Record, warnings: TranscriptWarnings) -> str | Blocks:
    output = text_or_none(state.get("output")) or ""
    given = state.get("attachments")
    attached = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    pictures = [one for one in attached if str(one.get("url")).startswith("data:")]
    warnings.count("attachment", "without its data left out", len(attached) - len(pictures))
    blocks = [_file_block(str(one.get("mime")), str(one["url"]), one.get("filename")) for one in pictures]
    return [*([{"type": "text", "text": output}] if output else []), *blocks] if blocks else output


def _file_block(mime: str, url: str, name: Any) -> Record:
    """An image or PDF as an Anthropic block; any other file as its name."""
    kind = "image" if mime.startswith("image/") else "document" if mime == "application/pdf" else None
    if kind is not None and url.startswith("data:") and ";base64," in url:
        return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": url.partition(",")[2]}}
    if kind is not None and url.startswith(("http://", "https://")):
        return {"type": kind, "source": {"type": "url", "url": url}}
    return {"type": "text", "text": f"[Attached {mime}: {text_or_none(name) or 'file'}]"}


def _read_opencode_usage(tokens: Any) -> Usage | None:
    """The reported usage; a given total includes reasoning tokens that `output` omits."""
    if not isinstance(tokens, dict):
        return None
    cache = tokens.get("cache")
    cache = cache if isinstance(cache, dict) else {}
    sent, output = count_or_none(tokens.get("input")) or 0, count_or_none(tokens.get("output")) or 0
    read, written = count_or_none(cache.get("read")) or 0, count_or_none(cache.get("write")) or 0
    output = max(output, (count_or_none(tokens.get("total")) or 0) - sent - read - written)
    usage = Usage(sent, output, read, written)
    return usage if usage.total else None
