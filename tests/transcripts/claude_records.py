"""Records as Claude Code writes them."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]


def line(kind: str, uuid: str, content: Any, **more: Any) -> Record:
    """A record of Claude Code; ``message`` fields are passed with a leading ``m_``."""
    inner = {key[2:]: value for key, value in more.items() if key.startswith("m_")}
    outer = {key: value for key, value in more.items() if not key.startswith("m_")}
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": None,
        "isSidechain": False,
        "sessionId": "s-1",
        "timestamp": f"2026-01-01T00:00:0{len(uuid)}Z",
        "message": {"role": kind, "content": content, **inner},
        **outer,
    }


def user(uuid: str, content: Any, **more: Any) -> Record:
    return line("user", uuid, content, **more)


def reply(uuid: str, message_id: str, *blocks: Record, **more: Any) -> Record:
    return line("assistant", uuid, list(blocks), **{"m_id": message_id, "m_model": "claude-x", **more})


def text_block(text: str) -> Record:
    return {"type": "text", "text": text}


def call(id: str) -> Record:
    return {"type": "tool_use", "id": id, "name": "ls", "input": {}}


def result(id: str, content: Any = "done") -> Record:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def tokens(input: int, output: int, cached: int = 0, written: int = 0) -> Record:
    return {
        "input_tokens": input,
        "output_tokens": output,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }
