"""The same conversation as a session file of every tool, with a compaction and messages after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.transcripts import opencode_records as opencode
from tests.transcripts.claude_records import call, reply, result, text_block, tokens, user

from holdfast.transcripts import Transcript, read_transcript

Record = dict[str, Any]
FIRST, SECOND = "Where is berth 4?", "And berth 5?"
SUMMARY = "Berth 4 is by the crane."


def claude_code() -> list[Record]:
    return [
        user("u1", FIRST),
        reply("a1", "m1", call("c1"), m_usage=tokens(100, 10)),
        user("r1", [result("c1", "berth 4: by the crane")]),
        reply("a2", "m2", text_block("By the crane."), m_usage=tokens(120, 5)),
        {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "compactMetadata": {"preTokens": 125}},
        user("s1", SUMMARY, isCompactSummary=True),
        user("u2", SECOND),
        reply("a3", "m3", text_block("By the lock."), m_usage=tokens(60, 5)),
    ]


def codex() -> list[Record]:
    def line(kind: str, **payload: Any) -> Record:
        return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}

    def item(role: str, text: str) -> Record:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    def count_record(number: int, sent: int, output: int) -> Record:
        last = {"input_tokens": sent, "output_tokens": output, "total_tokens": sent + output}
        info = {"total_token_usage": {"n": number}, "last_token_usage": last}
        return line("event_msg", type="token_count", info=info)

    rules, first = item("developer", "Be brief."), item("user", FIRST)
    return [
        line("session_meta", id="s-2", cwd="/harbor", base_instructions={"text": "You are a clerk."}),
        line("turn_context", model="gpt-5"),
        line("response_item", **rules),
        line("response_item", **first),
        line("response_item", type="function_call", name="ls", arguments="{}", call_id="c1"),
        line("response_item", type="function_call_output", call_id="c1", output="berth 4: by the crane"),
        line("response_item", **item("assistant", "By the crane.")),
        count_record(1, 120, 5),
        line("compacted", message=SUMMARY, replacement_history=[rules, first, item("user", SUMMARY)]),
        line("response_item", **item("user", SECOND)),
        line("response_item", **item("assistant", "By the lock.")),
        count_record(2, 60, 5),
    ]


def pi() -> list[Record]:
    def line(id: str, parent: str | None, role: str, content: Any, **more: Any) -> Record:
        message = {"role": role, "content": content, **more}
        about = {"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00Z"}
        return about | {"message": message}

    def count_record(sent: int, output: int) -> Record:
        return {"usage": {"input": sent, "output": output}, "stopReason": "stop", "model": "claude-x"}

    listed = {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "."}}
    return [
        {"type": "session", "version": 3, "id": "s-3", "cwd": "/harbor"},
        line("1", None, "user", FIRST),
        line("2", "1", "assistant", [listed], stopReason="toolUse"),
        line("3", "2", "toolResult", [text_block("berth 4: by the crane")], toolCallId="c1", isError=False),
        line("4", "3", "assistant", [text_block("By the crane.")], **count_record(120, 5)),
        line("5", "4", "user", "Thanks."),
        line("6", "5", "assistant", [text_block("Any time.")], **count_record(130, 5)),
        {"type": "compaction", "id": "7", "parentId": "6", "summary": SUMMARY, "firstKeptEntryId": "5"},
        line("8", "7", "user", SECOND),
        line("9", "8", "assistant", [text_block("By the lock.")], **count_record(60, 5)),
    ]


def messages() -> list[Record]:
    listed = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    return [
        {"role": "user", "content": FIRST},
        {"role": "assistant", "content": None, "tool_calls": [listed]},
        {"role": "tool", "tool_call_id": "c1", "content": "berth 4: by the crane"},
        {"role": "assistant", "content": "By the crane."},
        {"role": "user", "content": SECOND},
        {"role": "assistant", "content": "By the lock."},
    ]


def cleared() -> Record:
    """OpenCode: a cleared result, then a compaction whose tail contains it, then more messages."""
    session = opencode.Session()
    session.user(FIRST)
    session.reply("By the crane.", tokens=opencode.tokens(50, 5))
    tail = session.user("Look again.")
    session.reply(opencode.tool("c1", "berth 4: by the crane", cleared=5), tokens=opencode.tokens(60, 5))
    session.reply("Still there.", tokens=opencode.tokens(70, 5))
    session.compact(SUMMARY, tail_start_id=tail)
    session.user(SECOND)
    session.reply("By the lock.", tokens=opencode.tokens(60, 5))
    return session.exported


STORIES: dict[str, Any] = {
    "claude-code": claude_code,
    "codex": codex,
    "pi": pi,
    "opencode": cleared,
    "messages": messages,
}
COMPACTED = [kind for kind in STORIES if kind != "messages"]


def write_session(kind: str, folder: Path, *, lines: int | None = None) -> Transcript:
    """Writes and reads the session file of a tool; only its first lines, if given."""
    story = STORIES[kind]()
    path = folder / f"{kind}.jsonl"
    records = story[:lines] if isinstance(story, list) else [story]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return read_transcript(path)
