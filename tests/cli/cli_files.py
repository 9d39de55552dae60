"""Input files for the command line: a long conversation in every wire format, and other tools' sessions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

Run = Callable[..., Result]
Record = dict[str, Any]
FORMATS = ("openai-chat", "openai-responses", "anthropic", "gemini")
KEYS = {"openai-chat": "messages", "openai-responses": "input", "anthropic": "messages", "gemini": "contents"}
SYSTEMS = {
    "openai-chat": None,
    "openai-responses": "instructions",
    "anthropic": "system",
    "gemini": "systemInstruction",
}
LONG = "The tide table says high water at noon, and the crane may not swing above force six. " * 6


def conversation(format: str, messages: int = 600) -> list[Record]:
    """A conversation of this many messages: user, call, result, reply; every round has its own words."""
    return [message for round in range(messages // 4) for message in _ROUNDS[format](round)]


def _chat(n: int) -> list[Record]:
    call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"berth": n})}}
    return [
        {"role": "user", "content": f"Question {n}: what about berth {n}?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": f"Berth {n}. {LONG}"},
        {"role": "assistant", "content": f"Berth {n} is free."},
    ]


def _responses(n: int) -> list[Record]:
    return [
        {"role": "user", "content": [{"type": "input_text", "text": f"Question {n}: what about berth {n}?"}]},
        {"type": "function_call", "call_id": f"c{n}", "name": "look", "arguments": json.dumps({"berth": n})},
        {"type": "function_call_output", "call_id": f"c{n}", "output": f"Berth {n}. {LONG}"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": f"Berth {n} is free."}],
        },
    ]


def _anthropic(n: int) -> list[Record]:
    call = {"type": "tool_use", "id": f"c{n}", "name": "look", "input": {"berth": n}}
    result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"Berth {n}. {LONG}"}
    return [
        {"role": "user", "content": f"Question {n}: what about berth {n}?"},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": f"Berth {n} is free."},
    ]


def _gemini(n: int) -> list[Record]:
    answer = {"name": "look", "response": {"output": f"Berth {n}. {LONG}"}}
    return [
        {"role": "user", "parts": [{"text": f"Question {n}: what about berth {n}?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"berth": n}}}]},
        {"role": "user", "parts": [{"functionResponse": answer}]},
        {"role": "model", "parts": [{"text": f"Berth {n} is free."}]},
    ]


_ROUNDS = {"openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic, "gemini": _gemini}


def request(format: str, messages: int = 600) -> Record:
    """A request body with messages, system prompt, tools and model under the provider's keys."""
    body: Record = {"model": "gpt-4o", "temperature": 0.5}
    if (name := SYSTEMS[format]) is not None:
        text = "You are the harbour master's assistant."
        body[name] = {"parts": [{"text": text}]} if format == "gemini" else text
    return body | {"tools": [{"name": "look", "description": "Look at a berth."}], KEYS[format]: conversation(format)}


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def loaded(text: str | Path) -> Any:
    return json.loads(text.read_text(encoding="utf-8") if isinstance(text, Path) else text)


def claude_code() -> list[Record]:
    """A session with one compaction and the provider's token counts."""

    def line(kind: str, uuid: str, content: Any, **more: Any) -> Record:
        message = {"role": kind, "content": content, **more.pop("message", {})}
        time = f"2026-01-01T00:00:{len(uuid):02d}Z"
        return {
            "type": kind,
            "uuid": uuid,
            "parentUuid": None,
            "sessionId": "s-1",
            "timestamp": time,
            "message": message,
        } | more

    about = {"id": "m2", "model": "claude-opus-4-5", "usage": {"input_tokens": 900, "output_tokens": 100}}
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "berths.txt"}}
    return [
        line("user", "u", "Where is berth 4?"),
        line("assistant", "uu", [{"type": "text", "text": "By the crane."}], message={"id": "m1"}),
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "b",
            "sessionId": "s-1",
            "compactMetadata": {"trigger": "auto", "preTokens": 155_000},
        },
        line("user", "uuu", "Summary: berth 4 is by the crane.", isCompactSummary=True),
        line("assistant", "uuuu", [{"type": "text", "text": "Looking."}, call], message=about),
        line("user", "uuuuu", [{"type": "tool_result", "tool_use_id": "t1", "content": "berth 4: crane\n" * 40}]),
        line("assistant", "uuuuuu", [{"type": "text", "text": "Yes."}], message=about | {"id": "m3"}),
    ]


def codex() -> list[Record]:
    def line(kind: str, **payload: Any) -> Record:
        return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}

    def item(role: str, text: str) -> Record:
        kind = "output_text" if role == "assistant" else "input_text"
        return line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])

    last = {"input_tokens": 700, "cached_input_tokens": 0, "output_tokens": 50, "total_tokens": 750}
    return [
        line("session_meta", id="s-2", cwd="/x", base_instructions={"text": "be brief"}),
        line("turn_context", model="gpt-5"),
        item("user", "list the berths"),
        line("response_item", type="function_call", name="ls", arguments="{}", call_id="c1"),
        line("response_item", type="function_call_output", call_id="c1", output="berth 1\nberth 2"),
        item("assistant", "Two berths."),
        line("event_msg", type="token_count", info={"total_token_usage": {"n": 1}, "last_token_usage": last}),
    ]


def pi() -> list[Record]:
    def line(role: str, content: Any, **more: Any) -> Record:
        message = {"role": role, "content": content, **more}
        return {"type": "message", "timestamp": "2026-01-01T00:00:00Z", "message": message}

    def text_part(text: str) -> Record:
        return {"type": "text", "text": text}

    return [
        {"type": "session", "id": "s-3", "cwd": "/x", "provider": "anthropic", "modelId": "claude-sonnet-4-5"},
        line("user", [text_part("first question")]),
        line("assistant", [text_part("first answer")], stopReason="stop"),
        {
            "type": "compaction",
            "timestamp": "2026-01-01T00:00:05Z",
            "summary": "They greeted.",
            "tokensBefore": 90_000,
            "keepLastMessages": 0,
        },
        line("user", [text_part("second question")]),
        line(
            "assistant",
            [{"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "."}}],
            stopReason="toolUse",
        ),
        line("toolResult", [text_part("a\nb")], toolCallId="c1", toolName="ls", isError=False),
        line("assistant", [text_part("second answer")], stopReason="stop"),
    ]
