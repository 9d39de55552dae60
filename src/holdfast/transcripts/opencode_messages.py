"""OpenCode's messages as Anthropic messages, put together as OpenCode does it for that provider."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from .notes import Notes
from .thread import Blocks, Thread, legal_id
from .transcript import Record, Usage, text, whole

ASKED = "What did we do so far?"
"""How the message that asks for a compaction is shown."""
_SUBTASK = "The following tool was executed by the user"
_INTERRUPTED = "[Tool execution was interrupted]"
_BOOKKEEPING = ("step-start", "step-finish", "snapshot", "patch", "agent", "retry")
_READ_IN = ("text/plain", "application/x-directory")
"""Files of these types are put into the message as text parts."""


class Said(Struct, frozen=True):
    """A message with its parts, of whatever shape they are."""

    id: str
    info: Record
    parts: tuple[Record, ...]

    @property
    def parent(self) -> str:
        return str(self.info.get("parentID"))

    @property
    def time(self) -> str | None:
        time = self.info.get("time")
        return moment(time.get("created")) if isinstance(time, dict) else None

    @property
    def text(self) -> str:
        return "\n".join(part["text"] for part in self.parts if part.get("type") == "text" and text(part.get("text")))

    @property
    def sums_up(self) -> bool:
        """Is this a summary that was written to its end?"""
        time = self.info.get("time")
        ended = self.info.get("finish") or (isinstance(time, dict) and time.get("completed"))
        return self.info.get("summary") is True and not self.info.get("error") and bool(ended and self.text)

    def part(self, kind: str) -> Record | None:
        return next((part for part in self.parts if part.get("type") == kind), None)


def said_from(record: Record) -> Said:
    info, parts = record["info"], record.get("parts")
    kept = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return Said(str(info.get("id")), info, tuple(kept))


def moment(milliseconds: Any) -> str | None:
    """OpenCode counts milliseconds since 1970."""
    if (since := whole(milliseconds)) is None:
        return None
    try:
        time = datetime.fromtimestamp(since / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def add_message(thread: Thread, message: Said, notes: Notes) -> Usage | None:
    """Add one message; returns the tokens of its last step, where it was a good reply."""
    info, parts = message.info, message.parts
    if info.get("role") == "user":
        thread.add_user(_user_blocks(parts, notes), id=text(info.get("id")), time=message.time)
        return None
    if info.get("role") != "assistant":
        notes.count("message", f"of role {info.get('role')!r} left out")
        return None
    failed = info.get("error")
    if failed and not _was_heard(failed, parts):
        notes.count("assistant message", "that failed left out")
        return None
    notes.count("assistant message", "broken off, usage not counted", int(bool(failed)))
    return _add_steps(thread, message, notes, counts=not failed)


def _was_heard(error: Any, parts: Sequence[Record]) -> bool:
    """A reply that the person broke off is sent as far as it came."""
    aborted = isinstance(error, dict) and error.get("name") == "MessageAbortedError"
    return aborted and any(part.get("type") not in ("step-start", "reasoning") for part in parts)


def _add_steps(thread: Thread, message: Said, notes: Notes, *, counts: bool) -> Usage | None:
    """One reply of the model for each step, each with the results of its calls behind it."""
    id, time, usage = text(message.info.get("id")), message.time, None
    steps: list[list[Record]] = [[]]
    for part in message.parts:
        if part.get("type") == "step-start" and steps[-1]:
            steps.append([])
        steps[-1].append(part)
    for number, step in enumerate(steps):
        finish = next((part for part in step if part.get("type") == "step-finish"), message.info)
        usage = _usage(finish.get("tokens")) if counts else None
        own = id if number == 0 or id is None else f"{id}.{number}"
        thread.add_reply(_reply_blocks(step, notes), key=None, id=own, time=time, usage=usage)
        results = [_result(part, notes) for part in step if _is_call(part)]
        if results:
            thread.add_user(results, id=None if own is None else f"{own}-results", time=time)
    return usage


def _is_call(part: Record) -> bool:
    return part.get("type") == "tool" and isinstance(part.get("callID"), str) and isinstance(part.get("state"), dict)


def _user_blocks(parts: Sequence[Record], notes: Notes) -> Blocks:
    blocks: Blocks = []
    for part in parts:
        match part:
            case {"type": "text", "ignored": True}:
                notes.count("text part", "marked as ignored left out")
            case {"type": "text", "text": str(said)}:
                blocks.append({"type": "text", "text": said})
            case {"type": "file", "mime": str(mime)} if mime in _READ_IN:
                notes.count("file part", "that stands there as text too left out")
            case {"type": "file", "mime": str(mime), "url": str(url)}:
                blocks.append(_file(mime, url, part.get("filename")))
            case {"type": "compaction"}:
                blocks.append({"type": "text", "text": ASKED})
            case {"type": "subtask"}:
                blocks.append({"type": "text", "text": _SUBTASK})
            case {"type": str(kind)} if kind in _BOOKKEEPING:
                pass
            case _:
                notes.count("content part", "of an unknown shape left out")
    return blocks


def _reply_blocks(parts: Sequence[Record], notes: Notes) -> Blocks:
    blocks: Blocks = []
    for part in parts:
        match part:
            case {"type": "text", "text": str(said)}:
                blocks.append({"type": "text", "text": said})
            case {"type": "reasoning", "text": str(said)}:
                blocks.append(_thinking(said, part.get("metadata")))
            case {"type": "tool", "callID": str(id), "tool": str(name), "state": dict(state)}:
                given = state.get("input")
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": legal_id(id, notes),
                        "name": name,
                        "input": given if isinstance(given, dict) else {},
                    }
                )
            case {"type": str(kind)} if kind in _BOOKKEEPING:
                pass
            case _:
                notes.count("content part", "of an unknown shape left out")
    return blocks


def _thinking(said: str, metadata: Any) -> Record:
    """Signed by Anthropic, or not to be sent to it."""
    about = metadata.get("anthropic") if isinstance(metadata, dict) else None
    about = about if isinstance(about, dict) else {}
    if text(about.get("redactedData")):
        return {"type": "redacted_thinking", "data": about["redactedData"]}
    block = {"type": "thinking", "thinking": said}
    return {**block, "signature": about["signature"]} if text(about.get("signature")) else block


def _result(part: Record, notes: Notes) -> Record:
    state = part["state"]
    block: Record = {"type": "tool_result", "tool_use_id": legal_id(part["callID"])}
    match state:
        case {"status": "completed"}:
            return block | {"content": _output(state, notes)}
        case {"status": "error", "metadata": {"interrupted": True, "output": str(output)}}:
            return block | {"content": output}
        case {"status": "error"}:
            return block | {"content": text(state.get("error")) or "error", "is_error": True}
    notes.count("tool call", "without a result")
    return block | {"content": _INTERRUPTED, "is_error": True}


def _output(state: Record, notes: Notes) -> str | Blocks:
    said = text(state.get("output")) or ""
    given = state.get("attachments")
    attached = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    pictures = [one for one in attached if str(one.get("url")).startswith("data:")]
    notes.count("attachment", "without its data left out", len(attached) - len(pictures))
    blocks = [_file(str(one.get("mime")), str(one["url"]), one.get("filename")) for one in pictures]
    return [*([{"type": "text", "text": said}] if said else []), *blocks] if blocks else said


def _file(mime: str, url: str, name: Any) -> Record:
    """A picture or a PDF as Anthropic takes it; of anything else its name."""
    kind = "image" if mime.startswith("image/") else "document" if mime == "application/pdf" else None
    if kind is not None and url.startswith("data:") and ";base64," in url:
        return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": url.partition(",")[2]}}
    if kind is not None and url.startswith(("http://", "https://")):
        return {"type": kind, "source": {"type": "url", "url": url}}
    return {"type": "text", "text": f"[Attached {mime}: {text(name) or 'file'}]"}


def _usage(tokens: Any) -> Usage | None:
    """Where a total is given, it knows of thoughts that the output leaves out."""
    if not isinstance(tokens, dict):
        return None
    cache = tokens.get("cache")
    cache = cache if isinstance(cache, dict) else {}
    sent, output = whole(tokens.get("input")) or 0, whole(tokens.get("output")) or 0
    read, written = whole(cache.get("read")) or 0, whole(cache.get("write")) or 0
    output = max(output, (whole(tokens.get("total")) or 0) - sent - read - written)
    usage = Usage(sent, output, read, written)
    return usage if usage.total else None
