"""Every kind of payload of the OpenAI formats, with a short history for each."""

from __future__ import annotations

from typing import Any

Wire = list[dict[str, Any]]

PNG, PDF = "iVBORw0KGgo=", "JVBERi0xLjQ="
LINK = "https://example.org/cat.png"
ASK: dict[str, Any] = {"role": "user", "content": "go"}


def chat(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts), **more}


def chat_call(arguments: Any = '{"a": 1}', **more: Any) -> dict[str, Any]:
    function = {"name": "read", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    } | more


CHAT: dict[str, Wire] = {
    "text": [ASK, {"role": "assistant", "content": "done"}],
    "system": [{"role": "system", "content": "be brief"}, ASK],
    "developer": [{"role": "developer", "content": [{"type": "text", "text": "be brief"}]}, ASK],
    "name": [{"role": "user", "content": "go", "name": "ann"}],
    "empty-string": [{"role": "user", "content": ""}],
    "empty-text-part": [chat({"type": "text", "text": ""})],
    "several-texts": [chat({"type": "text", "text": "a"}, {"type": "text", "text": "b"})],
    "image-data": [chat({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}})],
    "image-link": [chat({"type": "image_url", "image_url": {"url": LINK}})],
    "image-not-base64": [chat({"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}})],
    "audio": [chat({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "mp3"}})],
    "file-data": [
        chat({"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"}})
    ],
    "file-bare-data": [chat({"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}})],
    "file-id": [chat({"type": "file", "file": {"file_id": "file-1"}})],
    "call": [ASK, chat_call(), {"role": "tool", "tool_call_id": "c1", "content": "ok"}],
    "call-with-text": [ASK, chat_call(content="let me see"), {"role": "tool", "tool_call_id": "c1", "content": "ok"}],
    "call-without-content": [ASK, {k: v for k, v in chat_call().items() if k != "content"}],
    "call-empty-arguments": [ASK, chat_call("")],
    "call-broken-arguments": [ASK, chat_call('{"a": ')],
    "call-arguments-no-object": [ASK, chat_call("[1, 2]")],
    "call-arguments-as-object": [ASK, chat_call({"a": 1})],
    "call-custom": [
        ASK,
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "patch", "input": '{"x":  1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ],
    "result-parts": [
        ASK,
        chat_call(),
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}]},
    ],
    "result-several": [
        ASK,
        chat_call(),
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
    ],
    "result-empty": [ASK, chat_call(), {"role": "tool", "tool_call_id": "c1", "content": ""}],
    "result-failed": [ASK, chat_call(), {"role": "tool", "tool_call_id": "c1", "content": "[tool error] no file"}],
    "result-failed-silently": [ASK, chat_call(), {"role": "tool", "tool_call_id": "c1", "content": "[tool error] "}],
    "legacy-call": [
        ASK,
        {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}},
        {"role": "function", "name": "read", "content": "ok"},
    ],
    "refusal": [ASK, {"role": "assistant", "content": None, "refusal": "I cannot"}],
    "refusal-part": [ASK, {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot"}]}],
    "voice": [ASK, {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}],
    "reasoning-content": [ASK, {"role": "assistant", "content": "4", "reasoning_content": "2 + 2"}],
    "reasoning-alone": [ASK, {"role": "assistant", "content": "", "reasoning": "hm"}],
    "unknown-fields": [{"role": "user", "content": "go", "x": {"y": [1, None]}}],
}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def message_item(role: str, *parts: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(parts)}


def pair(call: str, answer: str, /, **fields: Any) -> Wire:
    """A call of one kind and an output of another with these fields."""
    action = {"name": "read", "arguments": '{"a": 1}'} if call == "function_call" else {"action": {"commands": ["ls"]}}
    return [ASK, item(call, call_id="c1", **action), item(answer, **{"call_id": "c1", **fields})]


RESPONSES: dict[str, Wire] = {
    "text": [ASK, {"role": "assistant", "content": "done"}],
    "developer": [{"role": "developer", "content": "be brief"}, ASK],
    "input-text": [message_item("user", item("input_text", text="go"))],
    "output-text": [ASK, message_item("assistant", item("output_text", text="4", annotations=[])) | {"id": "msg_1"}],
    "refusal": [ASK, message_item("assistant", item("refusal", refusal="I cannot"))],
    "image-data": [message_item("user", item("input_image", image_url=f"data:image/png;base64,{PNG}", detail="auto"))],
    "image-link": [message_item("user", item("input_image", image_url=LINK))],
    "image-file": [message_item("user", item("input_image", file_id="file-1"))],
    "file-data": [
        message_item("user", item("input_file", file_data=f"data:application/pdf;base64,{PDF}", filename="a.pdf"))
    ],
    "file-link": [message_item("user", item("input_file", file_url="https://example.org/a.pdf"))],
    "audio": [message_item("user", item("input_audio", input_audio={"data": "UklGRg==", "format": "wav"}))],
    "reasoning": [
        ASK,
        item("reasoning", id="rs_1", summary=[item("summary_text", text="hm")]),
        message_item("assistant"),
    ],
    "reasoning-content": [ASK, item("reasoning", id="rs_1", summary=[], content=[item("reasoning_text", text="hm")])],
    "reasoning-encrypted": [ASK, item("reasoning", summary=[], encrypted_content="gAAAA")],
    "function": pair("function_call", "function_call_output", output="ok"),
    "function-parts": pair("function_call", "function_call_output", output=[item("input_text", text="ok")]),
    "function-picture": pair("function_call", "function_call_output", output=[item("input_image", image_url=LINK)]),
    "function-failed": pair("function_call", "function_call_output", output="[tool error] no"),
    "function-empty": pair("function_call", "function_call_output", output=""),
    "custom": [
        ASK,
        item("custom_tool_call", call_id="c1", name="patch", input='{"x":  1}'),
        item("custom_tool_call_output", call_id="c1", output="ok"),
    ],
    "local-shell": pair("local_shell_call", "local_shell_call_output", call_id=None, id="c1", output="a.py"),
    "shell": pair(
        "shell_call",
        "shell_call_output",
        output=[{"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}],
    ),
    "apply-patch": pair("apply_patch_call", "apply_patch_call_output", status="failed", output="no such file"),
    "computer": pair(
        "computer_call",
        "computer_call_output",
        output=item("computer_screenshot", image_url=f"data:image/png;base64,{PNG}"),
    ),
    "tool-search": pair("tool_search_call", "tool_search_output", execution="client", tools=[{"name": "read"}]),
    "tool-search-by-api": [
        ASK,
        item("tool_search_call", call_id=None, arguments={}, execution="server"),
        item("tool_search_output", call_id=None, tools=[], execution="server"),
    ],
    "program": [ASK, item("program", call_id="p1", code="1"), item("program_output", call_id="p1", result="1")],
    "web-search": [ASK, item("web_search_call", id="ws_1", action={"type": "search", "query": "x"})],
    "mcp": [ASK, item("mcp_call", id="mcp_1", name="read", arguments="{}", output="ok")],
    "mcp-approval": [item("mcp_approval_request", id="r1", name="read"), item("mcp_approval_response", approve=True)],
    "item-reference": [ASK, item("item_reference", id="msg_1")],
    "item-reference-untyped": [ASK, {"id": "msg_1"}],
    "item-reference-null-type": [ASK, {"id": "msg_1", "type": None}],
    "agent-message": [
        ASK,
        item("agent_message", author="a", recipient="b", content=[item("input_text", text="go")]),
    ],
    "compaction": [item("compaction", id="cmp_1", encrypted_content="gAAAA"), ASK],
    "compaction-trigger": [ASK, item("compaction_trigger")],
    "unknown-fields": [message_item("user", item("input_text", text="go")) | {"x": {"y": [1, None]}}],
}
