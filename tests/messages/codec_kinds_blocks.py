"""Every kind of payload of Anthropic and Gemini, with a short history for each."""

from __future__ import annotations

from typing import Any

from codec_kinds import ASK, LINK, PDF, PNG, Wire


def message(role: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks), **more}


def block(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def source(**fields: Any) -> dict[str, Any]:
    return {"source": fields}


USE = message("assistant", block("tool_use", id="t1", name="read", input={"a": 1}))


def used(**fields: Any) -> Wire:
    return [ASK, USE, message("user", block("tool_result", tool_use_id="t1", **fields))]


TEXT = block("text", text="ok")
DATA = {"type": "base64", "media_type": "application/pdf", "data": PDF}

ANTHROPIC: dict[str, Wire] = {
    "text": [ASK, message("assistant", TEXT)],
    "text-cached": [message("user", block("text", text="go", cache_control={"type": "ephemeral"}))],
    "several-texts": [message("user", TEXT, block("text", text="more"))],
    "system-between": [ASK, {"role": "system", "content": "be brief"}, message("assistant", TEXT)],
    "empty-list": [ASK, message("assistant")],
    "image-data": [message("user", block("image", **source(type="base64", media_type="image/png", data=PNG)), TEXT)],
    "image-link": [message("user", block("image", **source(type="url", url=LINK)))],
    "image-file": [message("user", block("image", **source(type="file", file_id="file_1")))],
    "document": [message("user", block("document", title="a.pdf", **source(**DATA)))],
    "document-link": [message("user", block("document", **source(type="url", url="https://example.org/a.pdf")))],
    "document-text": [message("user", block("document", **source(type="text", media_type="text/plain", data="hello")))],
    "document-blocks": [message("user", block("document", **source(type="content", content=[TEXT])))],
    "thinking": [ASK, message("assistant", block("thinking", thinking="hm", signature="sig"), TEXT)],
    "thinking-unsigned": [ASK, message("assistant", block("thinking", thinking="hm"), TEXT)],
    "thinking-redacted": [ASK, message("assistant", block("redacted_thinking", data="xx"), TEXT)],
    "call": used(content="ok"),
    "call-without-input": [ASK, message("assistant", block("tool_use", id="t1", name="now", input={}))],
    "result-missing": used(),
    "result-empty-list": used(content=[]),
    "result-empty-text": used(content=[block("text", text="")]),
    "result-several": used(content=[TEXT, block("text", text="more")]),
    "result-picture": used(content=[TEXT, block("image", **source(type="url", url=LINK))]),
    "result-search": used(content=[block("search_result", source="x", title="y", content=[TEXT])]),
    "result-reference": used(content=[block("tool_reference", tool_name="read")]),
    "result-failed": used(content="no such file", is_error=True),
    "result-failed-silently": used(is_error=True),
    "result-with-words": [ASK, USE, message("user", block("tool_result", tool_use_id="t1", content="ok"), TEXT)],
    "server-tool": [
        ASK,
        message(
            "assistant",
            block("server_tool_use", id="s1", name="web_search", input={"query": "x"}),
            block("web_search_tool_result", tool_use_id="s1", content=[]),
            TEXT,
        ),
    ],
    "compaction": [message("assistant", block("compaction", content="So far.", signature="sig")), ASK],
    "container-upload": [message("user", block("container_upload", file_id="f1"), TEXT)],
    "unknown-fields": [message("user", block("text", text="go", x=1), y={"z": [None]})],
}


def content(role: str | None, *parts: Any, **more: Any) -> dict[str, Any]:
    return ({"role": role} if role else {}) | {"parts": list(parts)} | more


GO = content("user", {"text": "go"})
CALL = content("model", {"functionCall": {"id": "f1", "name": "read", "args": {"a": 1}}, "thoughtSignature": "c2ln"})


def answered(response: Any, **more: Any) -> Wire:
    return [GO, CALL, content("user", {"functionResponse": {"id": "f1", "name": "read", "response": response, **more}})]


GEMINI: dict[str, Wire] = {
    "text": [GO, content("model", {"text": "done"})],
    "no-role": [content(None, {"text": "go"})],
    "several-texts": [content("user", {"text": "a"}, {"text": "b"})],
    "text-signed": [GO, content("model", {"text": "4", "thoughtSignature": "c2ln"})],
    "signature-alone": [GO, content("model", {"text": "", "thoughtSignature": "c2ln"})],
    "thought": [GO, content("model", {"text": "hm", "thought": True}, {"text": "4"})],
    "image-data": [content("user", {"inlineData": {"mimeType": "image/png", "data": PNG}})],
    "image-named": [content("user", {"inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "cat"}})],
    "image-url-alphabet": [content("user", {"inlineData": {"mimeType": "image/png", "data": "a-_b"}})],
    "audio": [content("user", {"inlineData": {"mimeType": "audio/mpeg", "data": "SUQz"}})],
    "video": [content("user", {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}})],
    "file-link": [content("user", {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/a.pdf"}})],
    "snake-case": [
        GO,
        content("model", {"function_call": {"name": "read", "args": {}}, "thought_signature": "c2ln"}),
        content("user", {"function_response": {"name": "read", "response": {"output": "ok"}}}),
    ],
    "call": answered({"output": "ok"}),
    "result": answered({"result": "ok"}),
    "result-any-object": answered({"files": ["a.py"], "count": 1}),
    "result-object-as-output": answered({"output": {"files": ["a.py"]}}),
    "result-several-texts": answered({"output": ["a", "b", ""]}),
    "result-list": answered({"output": [1, 2]}),
    "result-empty": answered({"output": ""}),
    "result-empty-object": answered({}),
    "result-failed": answered({"error": "no such file"}),
    "result-failed-silently": answered({"error": ""}),
    "result-picture": answered({"output": "ok"}, parts=[{"inlineData": {"mimeType": "image/png", "data": PNG}}]),
    "code-snake-case": [
        GO,
        content("model", {"executable_code": {"language": "PYTHON", "code": "1"}}),
    ],
    "call-nameless": [
        GO,
        content("model", {"functionCall": {"name": "a", "args": {}}}, {"functionCall": {"name": "b"}}),
        content(
            "function",
            {"functionResponse": {"name": "a", "response": {"output": "1"}}},
            {"functionResponse": {"name": "b", "response": {"output": "2"}}},
        ),
    ],
    "call-answered-without-id": [GO, CALL, content("user", {"functionResponse": {"name": "read", "response": {}}})],
    "code": [
        GO,
        content(
            "model",
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        ),
    ],
    "unknown-fields": [content("user", {"text": "go", "x": 1}, y={"z": [None]})],
}
