"""ProviderServer: tools, results, reasoning and the window are validated like the providers do."""

from __future__ import annotations

from typing import Any

import pytest

from providers import Call, ProviderServer, Say, signature
from providers.raw_requests import CHAT, CLAUDE, GEMINI, RESPONSES, post

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
NAMED = {"name": "read", "description": "Reads.", "parameters": SCHEMA}
TOOLS: dict[str, Any] = {
    "chat": {"type": "function", "function": NAMED},
    "responses": {"type": "function", "strict": False} | NAMED,
    "claude": {"name": "read", "description": "Reads.", "input_schema": SCHEMA},
    "gemini": {"functionDeclarations": [NAMED]},
}
BODIES: dict[str, Any] = {"chat": CHAT, "responses": RESPONSES, "claude": CLAUDE, "gemini": GEMINI}


@pytest.mark.parametrize("to", BODIES)
def test_server_accepts_tools_and_streams_calls(to: str) -> None:
    with ProviderServer(Say("So.", thinking="Hm.", calls=(Call("read", {"path": "tides.csv"}),))) as server:
        status, text = post(server, to, BODIES[to] | {"tools": [TOOLS[to]]})
    assert status == 200 and '"read"' in text
    assert ("tides.csv" in text) is (
        to in ("gemini", "responses")
    )  # whole in Gemini's part, and in the item at the end


@pytest.mark.parametrize("to", BODIES)
def test_server_refuses_tool_choice(to: str) -> None:
    with ProviderServer() as server:
        assert post(server, to, BODIES[to] | {"tools": [TOOLS[to]], "tool_choice": "auto"})[0] == 400


@pytest.mark.parametrize(
    ("to", "tools"),
    [
        *((to, []) for to in BODIES),
        *((to, [{}]) for to in BODIES),
        *((to, [TOOLS[to], TOOLS[to]]) for to in BODIES),
        *((to, [TOOLS["claude" if to != "claude" else "chat"]]) for to in BODIES),
        ("chat", [{"type": "function", "function": NAMED | {"name": "read file"}}]),
        ("chat", [{"type": "function", "function": NAMED | {"parameters": {"type": "string"}}}]),
        ("chat", [{"type": "function", "function": NAMED | {"parameters": SCHEMA | {"required": ["nothing"]}}}]),
        ("claude", [TOOLS["claude"] | {"input_schema": {"type": "object", "properties": {"x": {"type": "text"}}}}]),
        ("claude", [TOOLS["claude"] | {"about": "x"}]),
        ("gemini", [{"functionDeclarations": [NAMED | {"parameters": SCHEMA | {"additionalProperties": False}}]}]),
        ("gemini", [{"functionDeclarations": [NAMED | {"parametersJsonSchema": SCHEMA}]}]),
    ],
)
def test_server_refuses_invalid_tool_definitions(to: str, tools: Any) -> None:
    with ProviderServer() as server:
        assert post(server, to, BODIES[to] | {"tools": tools})[0] == 400


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": "So."}
USE = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
ASKED, AGAIN = {"role": "user", "content": "hi"}, {"role": "user", "content": "and?"}


@pytest.mark.parametrize(
    ("to", "body", "message"),
    [
        ("claude", {"messages": [ASKED, {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm!", "signature": signature("Hm.")}, {"type": "text", "text": "So."}
        ]}, AGAIN]}, "Invalid `signature`"),
        ("claude", {"messages": [ASKED, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
        ]}]}, "must define tools"),
        ("claude", {"messages": [ASKED, {"role": "assistant", "content": [USE]}], "tools": [TOOLS["claude"]]},
         "without `tool_result` blocks"),
        ("claude", {"cache_control": {"type": "eternal"}}, "ephemeral"),
        ("responses", {"input": [ASKED, REASONING, MESSAGE, AGAIN]}, "Items are not persisted"),
        ("responses", {"input": [ASKED, REASONING | {"encrypted_content": "gAAAAx"}, MESSAGE, AGAIN]}, "be verified"),
        ("responses", {"include": ["file_search_call.results"]}, "include"),
        ("gemini", {"contents": [*GEMINI["contents"], {"role": "model", "parts": [
            {"text": "So.", "thoughtSignature": signature("no")}
        ]}, *GEMINI["contents"]]}, "signature is not valid"),
        ("chat", {"messages": [ASKED, {"role": "tool", "tool_call_id": "x", "content": "y"}]}, "preceeding message"),
        ("chat", {"messages": [ASKED | {"reasoning_content": "x"}]}, "reasoning_content"),
    ],
)  # fmt: skip
def test_server_refuses_invalid_histories(to: str, body: Any, message: str) -> None:
    with ProviderServer() as server:
        status, text = post(server, to, BODIES[to] | body)
    assert status == 400 and message in text


@pytest.mark.parametrize("to", BODIES)
def test_server_refuses_prompts_over_the_window(to: str) -> None:
    long = "x" * 4_000
    body = BODIES[to] | ({"contents": [{"role": "user", "parts": [{"text": long}]}]} if to == "gemini" else {})
    body |= {"input": [{"role": "user", "content": long}]} if to == "responses" else {}
    body |= {"messages": [{"role": "user", "content": long}]} if to in ("chat", "claude") else {}
    body |= {"stream_options": {"include_usage": True}} if to == "chat" else {}
    counted = {"chat": "prompt_tokens", "gemini": "promptTokenCount"}.get(to, "input_tokens")
    with ProviderServer("fine", window=1_001) as server:
        status, text = post(server, to, body)
        assert status == 200 and f'"{counted}": 1001' in text
        server.window = 1_000
        status, text = post(server, to, body)
    assert status == 400 and ("1000" in text or to == "responses")
