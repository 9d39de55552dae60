"""Every kind of payload in every format: exact round trip, equal when rendered from parts, equal in other formats."""

from __future__ import annotations

import copy

import pytest
from codec_facts import Wire, all_parts, bare, facts, moved, read
from codec_kinds import CHAT, RESPONSES
from codec_kinds_ai_sdk import AI_SDK
from codec_kinds_blocks import ANTHROPIC, GEMINI

from holdfast.messages import (
    FORMATS,
    Opaque,
    ToolResult,
    ai_sdk,
    anthropic,
    encode_all,
    gemini,
    openai_chat,
    openai_responses,
)
from holdfast.messages.payload import result_texts
from judge import judge

KINDS = {"openai-chat": CHAT, "openai-responses": RESPONSES, "anthropic": ANTHROPIC, "gemini": GEMINI}
KINDS["ai-sdk"] = AI_SDK
OPAQUE = {module.name: module.OPAQUE for module in (openai_chat, openai_responses, anthropic, gemini, ai_sdk)}
CASES = [
    pytest.param(format, payloads, id=f"{format}-{kind}")
    for format, kinds in KINDS.items()
    for kind, payloads in kinds.items()
]
each_kind = pytest.mark.parametrize(("format", "payloads"), CASES)


@each_kind
def test_codec_kind_unchanged_round_trips_exactly(format: str, payloads: Wire) -> None:
    before = copy.deepcopy(payloads)
    assert encode_all(read(payloads, format), format) == before
    assert payloads == before


@each_kind
def test_codec_kind_rendered_from_parts_has_same_content(format: str, payloads: Wire) -> None:
    messages = read(payloads, format)
    rendered = encode_all(bare(messages), format)
    assert all_parts(read(rendered, format)) == all_parts(messages)
    if not judge(payloads, format):
        assert judge(rendered, format) == []
    if not judge(payloads, format, extras_ok=False):
        assert judge(rendered, format, extras_ok=False) == []


@each_kind
def test_codec_kind_in_another_format_has_same_content(format: str, payloads: Wire) -> None:
    """Only placeholder text for unsupported content may be added."""
    messages = read(payloads, format)
    before = facts(messages)
    wanted = [(r.call_id, "\n".join(result_texts(r)), r.is_error) for m in messages for r in m.results]
    for other in FORMATS:
        there = moved(messages, other)
        after = facts(there)
        assert after.calls == before.calls, other
        assert [text for text in after.texts if not text[1].startswith("[")] == before.texts, other
        held = [(r.call_id, "\n".join(result_texts(r)), r.is_error) for m in there for r in m.results]
        assert held == wanted, other


@each_kind
def test_codec_kind_is_opaque_only_if_listed(format: str, payloads: Wire) -> None:
    parts = [part for message in read(payloads, format) for part in message.parts]
    parts += [inner for part in parts if isinstance(part, ToolResult) for inner in part.content]
    assert {part.kind for part in parts if isinstance(part, Opaque)} <= OPAQUE[format]


@pytest.mark.parametrize("format", FORMATS)
def test_codec_kind_listed_as_opaque_is_opaque(format: str) -> None:
    """The lists themselves: a kind is listed if the codec has no neutral part for it."""
    assert sorted(OPAQUE[format]) == LISTED[format]


LISTED = {
    "openai-chat": ["audio"],
    "openai-responses": [
        "additional_tools",
        "agent_message",
        "code_interpreter_call",
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "configuration_update",
        "context_compaction",
        "file_search_call",
        "image_generation_call",
        "item_reference",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    ],
    "anthropic": [
        "advisor_tool_result",
        "bash_code_execution_tool_result",
        "browser_state",
        "code_execution_tool_result",
        "compaction",
        "container_upload",
        "document",
        "fallback",
        "mcp_tool_listing",
        "mcp_tool_result",
        "mcp_tool_use",
        "search_result",
        "server_tool_use",
        "text_editor_code_execution_tool_result",
        "tool_addition",
        "tool_reference",
        "tool_removal",
        "tool_search_tool_result",
        "web_fetch_tool_result",
        "web_search_tool_result",
    ],
    "gemini": ["codeExecutionResult", "executableCode", "toolCall", "toolResponse"],
    "ai-sdk": [
        "custom",
        "file",
        "file-id",
        "file-reference",
        "image",
        "image-file-id",
        "image-file-reference",
        "source",
        "tool-approval-request",
        "tool-approval-response",
        "tool-call",
        "tool-result",
    ],
}
