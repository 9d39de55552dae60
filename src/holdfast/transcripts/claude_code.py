"""Claude Code sessions: one JSONL record for each content block, linked into a tree by ``parentUuid``."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from msgspec.structs import replace

from .notes import Notes
from .thread import Blocks, Thread
from .transcript import PastCompaction, Record, Transcript, Usage, text, whole

_MESSAGES = ("user", "assistant")
_SYNTHETIC = "<synthetic>"


def fits(record: Record) -> bool:
    kind = record.get("type")
    if kind in _MESSAGES:
        return isinstance(record.get("message"), dict) and ("sessionId" in record or "uuid" in record)
    return (kind == "system" and "uuid" in record) or (kind == "summary" and "leafUuid" in record)


def read(records: list[Record], notes: Notes) -> Transcript:
    """The root thread; sub-agents, abandoned branches and bookkeeping are left out and counted."""
    thread = Thread(notes)
    compactions: list[PastCompaction] = []
    model = session = None
    root = _root_thread(records, notes)
    for record in root:
        session = text(record.get("sessionId")) or session
        message = record.get("message")
        if record.get("type") == "system" and record.get("subtype") == "compact_boundary":
            thread.cut()
            compactions.append(_boundary(record, len(thread)))
        elif record.get("type") not in _MESSAGES:
            _note_bookkeeping(record, notes)
        elif not isinstance(message, dict) or (content := _content(message.get("content"), notes)) is None:
            notes.count("record", "without a readable message left out")
        elif record["type"] == "assistant":
            if record.get("isApiErrorMessage"):
                notes.count("API error", "shown as a reply left out")
                continue
            _add_reply(thread, record, message, content)
            model = text(message.get("model")) if message.get("model") != _SYNTHETIC else model
        else:
            if record.get("isCompactSummary"):
                _add_summary(compactions, content, thread)
            thread.add_user(content, id=text(record.get("uuid")), time=text(record.get("timestamp")))
    return Transcript(
        "claude-code",
        "anthropic",
        thread.entries(),
        tuple(compactions),
        model=model,
        id=_id(session, root),
        notes=notes.lines(),
    )


def _id(session: str | None, root: list[Record]) -> str | None:
    """A sub-agent's file names the session that it works for: its own name is told apart."""
    agent = next((text(record.get("agentId")) for record in root if record.get("isSidechain")), None)
    return f"{session}.{agent}" if session and agent else session


def _root_thread(records: list[Record], notes: Notes) -> list[Record]:
    root = [record for record in records if not record.get("isSidechain")]
    if not any(record.get("type") in _MESSAGES for record in root):
        root = records  # newer versions give each sub-agent a file of its own: there it is the thread
    notes.count("sub-agent record", "(isSidechain) left out", len(records) - len(root))
    lost = _abandoned(root)
    notes.count("record", "on abandoned branches left out", len(lost))
    return [record for place, record in enumerate(root) if place not in lost]


def _abandoned(records: list[Record]) -> set[int]:
    """Places of records on branches that were left: their parent got another next step, which went on.

    Parallel calls also branch (a call has its result and the next call as children), so only a new reply or
    a new user text counts as a step. A parent that is not in the file tells nothing.
    """
    places = {record["uuid"]: place for place, record in enumerate(records) if text(record.get("uuid"))}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        parent = text(record.get("parentUuid"))
        if parent in places and places[parent] < place:
            children[places[parent]].append(place)
    reach = list(range(len(records)))
    for place in reversed(reach.copy()):
        reach[place] = max([place, *(reach[child] for child in children[place])])
    lost: set[int] = set()
    for parent_place, below in list(children.items()):
        steps = [child for child in below if _is_step(records[child], records[parent_place])]
        alive = max(steps, key=reach.__getitem__, default=None)
        left = [child for child in steps if child != alive]
        while left:
            lost.add(place := left.pop())
            left.extend(children[place])
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


def _content(content: Any, notes: Notes) -> str | Blocks | None:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    blocks = [block for block in content if isinstance(block, dict)]
    notes.count("content block", "of an unknown shape left out", len(content) - len(blocks))
    return blocks


def _add_reply(thread: Thread, record: Record, message: dict[str, Any], content: str | Blocks) -> None:
    thread.add_reply(
        [{"type": "text", "text": content}] if isinstance(content, str) else content,
        key=text(message.get("id")),
        id=text(record.get("uuid")),
        time=text(record.get("timestamp")),
        usage=_usage(message.get("usage")),
    )


def _usage(usage: Any) -> Usage | None:
    """All zeros is what Claude Code writes for a reply that no model gave."""
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [whole(usage.get(name)) or 0 for name in names]
    return Usage(*counts) if any(counts) else None


def _boundary(record: Record, after: int) -> PastCompaction:
    about = record.get("compactMetadata")
    about = about if isinstance(about, dict) else {}
    return PastCompaction(
        after,
        tokens_before=whole(about.get("preTokens")),
        tokens_after=whole(about.get("postTokens")),
        trigger=text(about.get("trigger")),
    )


def _add_summary(compactions: list[PastCompaction], content: str | Blocks, thread: Thread) -> None:
    """The summary stands right after its boundary; older versions write it without one."""
    if not compactions or compactions[-1].after != len(thread) or compactions[-1].summary is not None:
        thread.cut()
        compactions.append(PastCompaction(len(thread)))
    said = content if isinstance(content, str) else "\n".join(str(block.get("text") or "") for block in content)
    compactions[-1] = replace(compactions[-1], summary=said)


def _note_bookkeeping(record: Record, notes: Notes) -> None:
    about = record.get("microcompactMetadata")
    cleared = about.get("compactedToolIds") if isinstance(about, dict) else None
    if isinstance(cleared, list):
        notes.count("tool result", "cleared by microcompaction, shown here in full", len(cleared))
    name = "/".join(str(record[key]) for key in ("type", "subtype") if record.get(key))
    notes.count("record", f"of type {name!r} left out")
