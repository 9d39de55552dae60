"""Every kind of part of the AI SDK's messages, in version 4 and later, with a short history for each."""

from __future__ import annotations

from typing import Any

from codec_kinds import ASK, LINK, PDF, PNG, Wire

Json = dict[str, Any]


def message(role: str, *parts: Any, **more: Any) -> Json:
    return {"role": role, "content": list(parts), **more}


def part(kind: str, /, **fields: Any) -> Json:
    return {"type": kind, **fields}


def sealed(provider: str, **options: Any) -> Json:
    return {"providerOptions": {provider: options}}


def call(name: str = "c1", **more: Any) -> Json:
    given = more if {"args", "input"} & more.keys() else {"input": {"a": 1}, **more}
    return part("tool-call", toolCallId=name, toolName="read", **given)


def answer(name: str = "c1", **more: Any) -> Json:
    return part("tool-result", toolCallId=name, toolName="read", **more)


def output(kind: str, value: Any = None, **more: Any) -> Json:
    return {"output": {"type": kind, **({} if value is None else {"value": value}), **more}}


def answered(**result: Any) -> Wire:
    """A call of version 5 or later and its result."""
    return [ASK, message("assistant", call()), message("tool", answer(**result))]


def answered_4(**result: Any) -> Wire:
    """A call of version 4 and its result."""
    return [ASK, message("assistant", call(args={"a": 1})), message("tool", answer(**result))]


TEXT = part("text", text="ok")
REQUEST = part("tool-approval-request", approvalId="a1", toolCallId="c1")
RESPONSE = part("tool-approval-response", approvalId="a1", approved=True)
AI_SDK: dict[str, Wire] = {
    "text": [ASK, {"role": "assistant", "content": "done"}],
    "system": [{"role": "system", "content": "be brief"}, ASK],
    "text-options": [message("user", TEXT | sealed("anthropic", cacheControl={"type": "ephemeral"}))],
    "several-texts": [message("user", TEXT, part("text", text="more"))],
    "empty-text-part": [message("user", part("text", text=""))],
    "image-data": [message("user", part("image", image=PNG, mediaType="image/png"), TEXT)],
    "image-data-url": [message("user", part("image", image=f"data:image/png;base64,{PNG}"))],
    "image-link": [message("user", part("image", image=LINK))],
    "image-mime-type": [message("user", part("image", image=PNG, mimeType="image/png"))],
    "image-reference": [message("user", part("image", image={"openai": "file-1"}))],
    "file-data": [message("user", part("file", data=PDF, mediaType="application/pdf", filename="a.pdf"))],
    "file-link": [message("user", part("file", data="https://example.org/a.pdf", mediaType="application/pdf"))],
    "file-id": [message("user", part("file", data="file-1", mediaType="application/pdf"))],
    "file-tagged-data": [message("user", part("file", data={"type": "data", "data": PDF}, mediaType="text/plain"))],
    "file-tagged-link": [message("user", part("file", data={"type": "url", "url": LINK}, mediaType="image/png"))],
    "file-tagged-text": [message("user", part("file", data={"type": "text", "text": "hi"}, mediaType="text/plain"))],
    "audio": [message("user", part("file", data="SUQz", mediaType="audio/mpeg"))],
    "video": [message("user", part("file", data="AAAA", mediaType="video/mp4"))],
    "file-of-the-model": [ASK, message("assistant", part("file", data=PNG, mediaType="image/png"))],
    "reasoning": [ASK, message("assistant", part("reasoning", text="hm"), TEXT)],
    "reasoning-signed": [ASK, message("assistant", part("reasoning", text="hm", **sealed("anthropic", signature="s")))],
    "reasoning-redacted": [
        ASK,
        message("assistant", part("reasoning", text="", **sealed("bedrock", redactedData="x"))),
    ],
    "reasoning-item": [
        ASK,
        message(
            "assistant",
            part("reasoning", text="hm", **sealed("openai", itemId="rs_1", reasoningEncryptedContent="gA")),
            part("text", text="4", **sealed("openai", itemId="msg_1")),
        ),
    ],
    "reasoning-4-signed": [ASK, message("assistant", part("reasoning", text="hm", signature="s"), TEXT)],
    "reasoning-4-redacted": [ASK, message("assistant", part("redacted-reasoning", data="x"), TEXT)],
    "reasoning-file": [ASK, message("assistant", part("reasoning-file", data=PNG, mediaType="image/png"), TEXT)],
    "call": answered(**output("text", "ok")),
    "call-options": [ASK, message("assistant", call(**sealed("google", thoughtSignature="c2ln")))],
    "call-without-input": [ASK, message("assistant", call(input={}))],
    "call-text-input": [ASK, message("assistant", call(input='{"a": '))],
    "call-list-input": [ASK, message("assistant", call(input=[1, 2]))],
    "call-4": answered_4(result="ok"),
    "call-4-in-a-field": [
        ASK,
        {
            "role": "assistant",
            "content": "let me see",
            "toolCalls": [{"toolCallId": "c1", "toolName": "read", "args": {}}],
        },
        message("tool", answer(result="ok")),
    ],
    "calls-4-without-ids": [
        ASK,
        {"role": "assistant", "content": [TEXT], "toolCalls": [{"toolName": "a", "args": {}}]},
    ],
    "call-in-both-places": [ASK, message("assistant", call(), toolCalls=[call()])],
    "calls": [
        ASK,
        message("assistant", TEXT, call("c1"), call("c2")),
        message("tool", answer("c2", **output("text", "2")), answer("c1", **output("text", "1"))),
    ],
    "result-json": answered(**output("json", {"files": ["a.py"], "count": 1})),
    "result-failed": answered(**output("error-text", "no such file")),
    "result-failed-json": answered(**output("error-json", {"code": 404})),
    "result-empty": answered(**output("text", "")),
    "result-denied": answered(**output("execution-denied")),
    "result-denied-why": answered(**output("execution-denied", reason="not there")),
    "result-several": answered(**output("content", [TEXT, part("text", text="more")])),
    "result-picture": answered(**output("content", [TEXT, part("media", data=PNG, mediaType="image/png")])),
    "result-image-data": answered(**output("content", [part("image-data", data=PNG, mediaType="image/png")])),
    "result-image-link": answered(**output("content", [part("image-url", url=LINK)])),
    "result-image-id": answered(**output("content", [part("image-file-id", fileId="file-1")])),
    "result-image-ids": answered(**output("content", [part("image-file-id", fileId={"openai": "file-1"})])),
    "result-image-reference": answered(
        **output("content", [part("image-file-reference", providerReference={"openai": "file-1"})])
    ),
    "result-file-data": answered(**output("content", [part("file-data", data=PDF, mediaType="application/pdf")])),
    "result-file-link": answered(**output("content", [part("file-url", url="https://example.org/a.pdf")])),
    "result-file-id": answered(**output("content", [part("file-id", fileId="file-1")])),
    "result-file-ids": answered(**output("content", [part("file-id", fileId={"openai": "file-1"})])),
    "result-file-reference": answered(
        **output("content", [part("file-reference", providerReference={"openai": "file-1"})])
    ),
    "result-custom": answered(**output("content", [part("custom", **sealed("anthropic", type="tool-reference"))])),
    "result-4-json": answered_4(result={"files": ["a.py"]}),
    "result-4-missing": answered_4(),
    "result-4-failed": answered_4(result="no such file", isError=True),
    "result-4-picture": answered_4(
        result="ok", experimental_content=[TEXT, part("image", data=PNG, mimeType="image/png")]
    ),
    "approval": [
        ASK,
        message("assistant", call(), REQUEST),
        message("tool", RESPONSE, answer(**output("text", "ok"))),
    ],
    "provider-tool": [
        ASK,
        message("assistant", call(providerExecuted=True), answer(**output("json", [])), part("text", text="4")),
    ],
    "provider-tool-unmarked": [ASK, message("assistant", call(), answer(**output("json", [])))],
    "provider-tool-waits": [ASK, message("assistant", call(providerExecuted=True))],
    "source": [ASK, message("assistant", TEXT, part("source", sourceType="url", id="s1", url=LINK))],
    "custom": [ASK, message("assistant", part("custom", kind="openai.compaction", **sealed("openai", itemId="c1")))],
    "unknown-fields": [message("user", TEXT | {"x": 1}, y={"z": [None]})],
}
