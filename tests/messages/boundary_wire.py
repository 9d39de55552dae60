"""Short builders of messages in each wire format, as dicts."""

from __future__ import annotations

from typing import Any, ClassVar

Json = dict[str, Any]
Messages = list[Json]
PROFILES = ("openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk")


class Chat:
    """OpenAI Chat Completions."""

    user: ClassVar[Json] = {"role": "user", "content": "hi"}
    reply: ClassVar[Json] = {"role": "assistant", "content": "hello"}
    system: ClassVar[Json] = {"role": "system", "content": "be brief"}

    @staticmethod
    def calls(*ids: str, content: Any = None) -> Json:
        made = [{"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}} for name in ids]
        return {"role": "assistant", "content": content, "tool_calls": made}

    @staticmethod
    def results(name: str, content: Any = "done") -> Json:
        return {"role": "tool", "tool_call_id": name, "content": content}


class Responses:
    """OpenAI Responses: one item per call, output and reasoning."""

    user: ClassVar[Json] = {"role": "user", "content": "hi"}
    reply: ClassVar[Json] = {"role": "assistant", "content": "hello"}
    summary: ClassVar[Json] = {"type": "compaction", "encrypted_content": "gA"}

    @staticmethod
    def call(name: str, **more: Any) -> Json:
        return {"type": "function_call", "call_id": name, "name": "read", "arguments": "{}", **more}

    @staticmethod
    def results(name: str, output: Any = "done", **more: Any) -> Json:
        return {"type": "function_call_output", "call_id": name, "output": output, **more}

    @staticmethod
    def thought(name: str | None = "rs_1") -> Json:
        return {"type": "reasoning", "summary": [], "encrypted_content": "gA", **({"id": name} if name else {})}


class Claude:
    """Anthropic Messages: blocks inside the user's and the assistant's messages."""

    user: ClassVar[Json] = {"role": "user", "content": "hi"}
    reply: ClassVar[Json] = {"role": "assistant", "content": "hello"}
    system: ClassVar[Json] = {"role": "system", "content": "be brief"}
    text: ClassVar[Json] = {"type": "text", "text": "and?"}
    summary: ClassVar[Json] = {"type": "compaction", "content": "so far", "signature": "Eu"}

    @staticmethod
    def by_user(*blocks: Json) -> Json:
        return {"role": "user", "content": list(blocks)}

    @staticmethod
    def by_model(*blocks: Json) -> Json:
        return {"role": "assistant", "content": list(blocks)}

    @staticmethod
    def use(name: str) -> Json:
        return {"type": "tool_use", "id": name, "name": "read", "input": {}}

    @staticmethod
    def result(name: str, content: Any = "done", **more: Any) -> Json:
        return {"type": "tool_result", "tool_use_id": name, "content": content, **more}

    @staticmethod
    def thought(signature: str | None = "sig") -> Json:
        block = {"type": "thinking", "thinking": "hm"}
        return block if signature is None else {**block, "signature": signature}

    @classmethod
    def calls(cls, *ids: str) -> Json:
        return cls.by_model(*map(cls.use, ids))

    @classmethod
    def results(cls, *ids: str) -> Json:
        return cls.by_user(*map(cls.result, ids))


class Gemini:
    """Gemini contents: the user's and the model's turns, made of parts."""

    text: ClassVar[Json] = {"text": "and?"}

    @staticmethod
    def by_user(*parts: Json) -> Json:
        return {"role": "user", "parts": list(parts)}

    @staticmethod
    def by_model(*parts: Json) -> Json:
        return {"role": "model", "parts": list(parts)}

    @staticmethod
    def ask(name: str = "read", id: str | None = None) -> Json:
        return {"functionCall": {"name": name, "args": {}, **({"id": id} if id else {})}}

    @staticmethod
    def answer(name: str = "read", id: str | None = None) -> Json:
        return {"functionResponse": {"name": name, "response": {"output": "ok"}, **({"id": id} if id else {})}}

    @classmethod
    def calls(cls, *ids: str) -> Json:
        return cls.by_model(*(cls.ask(id=name) for name in ids))

    @classmethod
    def results(cls, *ids: str) -> Json:
        return cls.by_user(*(cls.answer(id=name) for name in ids))


class AiSdk:
    """The AI SDK: parts inside the user's, the assistant's and the tools' messages."""

    user: ClassVar[Json] = {"role": "user", "content": "hi"}
    reply: ClassVar[Json] = {"role": "assistant", "content": "hello"}
    system: ClassVar[Json] = {"role": "system", "content": "be brief"}
    request: ClassVar[Json] = {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "a"}
    response: ClassVar[Json] = {"type": "tool-approval-response", "approvalId": "p", "approved": True}

    @staticmethod
    def by_model(*parts: Json) -> Json:
        return {"role": "assistant", "content": list(parts)}

    @staticmethod
    def by_tools(*parts: Json) -> Json:
        return {"role": "tool", "content": list(parts)}

    @staticmethod
    def call(name: str, **more: Any) -> Json:
        return {"type": "tool-call", "toolCallId": name, "toolName": "read", "input": {}, **more}

    @staticmethod
    def result(name: str) -> Json:
        output = {"type": "text", "value": "done"}
        return {"type": "tool-result", "toolCallId": name, "toolName": "read", "output": output}

    @classmethod
    def calls(cls, *ids: str) -> Json:
        return cls.by_model(*map(cls.call, ids))

    @classmethod
    def results(cls, *ids: str) -> Json:
        return cls.by_tools(*map(cls.result, ids))


HI: Json = Gemini.by_user({"text": "hi"})
YES: Json = Gemini.by_model({"text": "yes"})

SMALL: dict[str, Messages] = {
    "openai-chat": [
        Chat.user,
        Chat.reply,
        Chat.system,
        Chat.calls("a"),
        Chat.calls("a", "b"),
        Chat.results("a"),
        Chat.results("b"),
    ],
    "openai-responses": [
        Responses.user,
        Responses.reply,
        Responses.call("a"),
        Responses.call("b"),
        Responses.results("a"),
        Responses.results("b"),
        Responses.thought(),
        Responses.summary,
    ],
    "anthropic": [
        Claude.user,
        Claude.reply,
        Claude.system,
        Claude.calls("a"),
        Claude.calls("a", "b"),
        Claude.results("a"),
        Claude.results("b"),
        Claude.by_user(Claude.result("a"), Claude.text),
        Claude.by_model(Claude.thought()),
        Claude.by_model(Claude.summary),
    ],
    "gemini": [
        HI,
        YES,
        Gemini.calls("a"),
        Gemini.calls("a", "b"),
        Gemini.results("a"),
        Gemini.results("b"),
        Gemini.results("a", "b"),
        Gemini.by_user(Gemini.answer(id="a"), Gemini.text),
        Gemini.by_model(Gemini.ask(id="a"), Gemini.text),
    ],
    "ai-sdk": [
        AiSdk.user,
        AiSdk.reply,
        AiSdk.system,
        AiSdk.calls("a"),
        AiSdk.calls("a", "b"),
        AiSdk.results("a"),
        AiSdk.results("b"),
        AiSdk.results("b", "a"),
        AiSdk.by_model(AiSdk.call("a", providerExecuted=True), AiSdk.result("a")),
        AiSdk.by_model(AiSdk.call("a"), AiSdk.request),
        AiSdk.by_tools(AiSdk.response),
        AiSdk.by_model(AiSdk.result("a")),
    ],
}
"""A handful of messages in each format: enough to break every rule about pairs and places."""
