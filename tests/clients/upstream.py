"""The strict upstream of real clients: it knows every documented field, and refuses whatever the provider would.

`ProviderServer` knows only the fields that this library sends. Here the documented ones are known, replies that are
not streamed and token counts are answered, and everything else stays as strict: pairs, roles, order, signatures,
sizes, and a window.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import zstandard
from tests.providers import ProviderServer, Request, Script
from tests.providers.connection import Connection
from tests.providers.faults import Answer, Overflow, Status
from tests.providers.protocol import Json, ProviderProtocol, unknown
from tests.providers.reply import Say, signature

from judge import bound_reasoning, bound_thinking, judge

_DOCUMENTED = {
    "openai-chat": "model messages stream stream_options temperature max_tokens max_completion_tokens store tools "
    "tool_choice parallel_tool_calls reasoning_effort prompt_cache_key prompt_cache_retention user metadata top_p n "
    "stop response_format seed service_tier verbosity frequency_penalty presence_penalty logprobs safety_identifier",
    "openai-responses": "model input instructions stream temperature max_output_tokens store include tools tool_choice "
    "parallel_tool_calls reasoning text prompt_cache_key prompt_cache_retention user metadata top_p truncation "
    "service_tier previous_response_id conversation background max_tool_calls safety_identifier stream_options "
    "client_metadata",
    "anthropic": "model messages system max_tokens temperature stream metadata stop_sequences tools cache_control "
    "tool_choice thinking top_k top_p service_tier output_config container mcp_servers speed",
    "gemini": "model contents systemInstruction generationConfig safetySettings tools toolConfig cachedContent labels",
}
_BY_BETA = {"context-management": "context_management", "structured-outputs": "output_format"}
"""Fields of Anthropic that a beta flag makes known."""
_PRIVATE = {"internal_chat_message_metadata_passthrough"}
"""Fields in the items of OpenAI's own client, which its provider takes."""
_COUNT_ENDS = ("/count_tokens", "/input_tokens", ":countTokens")


class ClientUpstream(ProviderServer):
    """A provider without compaction protocols, with a window."""

    def __init__(self, script: Script, *, window: int) -> None:
        super().__init__(script, window=window)
        self._prefixes: dict[str, list[Json]] = {}
        """Messages before each thinking block of Anthropic, by signature: it is bound to them."""
        self._replies: list[Json] = []
        """Reasoning of Responses, each with the item after it: they belong together."""

    async def _answer(
        self, connection: Connection, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> None:
        plain, _, query = path.partition("?")
        if method == "HEAD" or (method == "GET" and plain == "/"):
            await connection.answer(200, "")
        elif headers.get("upgrade"):
            await connection.answer(426, {"error": {"message": "WebSocket is not supported."}})
        elif plain.endswith(_COUNT_ENDS):
            size = Request("count", path, headers, json.loads(_decoded(body, headers))).size
            await connection.answer(200, {"input_tokens": size, "totalTokens": size, "object": "response.input_tokens"})
        else:
            whole = plain.replace(":generateContent", ":streamGenerateContent") + (f"?{query}" if query else "")
            await super()._answer(connection, method, whole, headers, _decoded(body, headers))

    def _refusal(self, protocol: ProviderProtocol, request: Request, body: bytes) -> Status | None:
        refusal = self._refuse(protocol, request, body)
        self._judge_unread(protocol, request)
        if refusal is not None:
            self.refused.append(f"{request.path.partition('?')[0]}: {refusal.message}")
        elif self.window is not None and request.size > self.window:
            self.overflowed += 1
            return protocol.overflow(Overflow(self.window, request.size))
        return refusal

    def _refuse(self, protocol: ProviderProtocol, request: Request, body: bytes) -> Status | None:
        if (unreadable := self._read(protocol, request, body)) is not None:
            return unreadable
        flags = request.headers.get("anthropic-beta", "")
        documented = [_DOCUMENTED[protocol.name], *(field for flag, field in _BY_BETA.items() if flag in flags)]
        if more := unknown(request.body, " ".join(documented)):
            return Status(400, f"Unknown parameter: '{more[0]}'.", "unknown_parameter")
        messages = next(request.body[f] for f in ("messages", "input", "contents") if f in request.body)
        if isinstance(messages, str):
            return None
        messages = [{key: value for key, value in item.items() if key not in _PRIVATE} for item in messages]
        complaints = judge(messages, protocol.name, pending_ok=False, extras_ok=False)
        complaints += self._reasoning_complaints(messages, protocol.name)
        return Status(400, complaints[0]) if complaints else None

    def _reasoning_complaints(self, messages: list[Json], name: str) -> list[str]:
        """Returns complaints about reasoning that was changed, moved or torn from what it belongs to."""
        match name:
            case "openai-responses":
                kinds = [str(item.get("type")) for item in messages]
                found = [f"Invalid value: '{kind}'." for kind in kinds if kind in ("compaction_trigger", "compaction")]
                thoughts = [item for item in messages if item.get("type") == "reasoning"]
                wrong = [t for t in thoughts if t["encrypted_content"] != f"gAAAA{signature(t['summary'][0]['text'])}"]
                found += ["The encrypted content could not be verified."] if wrong else []
                return found + bound_reasoning(self._replies, messages)
            case "anthropic":
                return [text for place in _thinking_places(messages) for text in self._bound(messages, *place)]
        return []

    def _bound(self, messages: list[Json], at: int, number: int) -> list[str]:
        message = messages[at]
        block = message["content"][number]
        if block["signature"] != signature(block["thinking"]) or block["signature"] not in self._prefixes:
            return ["messages: Invalid `signature` in `thinking` block"]
        before = [*self._prefixes[block["signature"]], message | {"content": [block]}]
        return bound_thinking(before, [*messages[:at], message | {"content": message["content"][: number + 1]}])

    def _remember(self, protocol: ProviderProtocol, request: Request, reply: Say) -> None:
        if reply.thinking and protocol.name == "anthropic":
            self._prefixes[signature(reply.thinking)] = request.body["messages"]
        elif reply.thinking and protocol.name == "openai-responses":
            following = f"{'msg' if reply.text else 'fc'}_{request.number}_1"
            self._replies += [{"type": "reasoning", "id": f"rs_{request.number}_0"}, {"type": "item", "id": following}]

    async def _perform(
        self, connection: Connection, protocol: ProviderProtocol, request: Request, answer: Answer
    ) -> None:
        if isinstance(answer, Say):
            self._remember(protocol, request, answer)
        streams = request.body.get("stream") is True or "alt=sse" in request.path
        if isinstance(answer, str | Say) and not streams:
            await connection.answer(
                200, _whole(protocol.name, request, Say(answer) if isinstance(answer, str) else answer)
            )
        else:
            await super()._perform(connection, protocol, request, answer)


def _decoded(body: bytes, headers: dict[str, str]) -> bytes:
    match headers.get("content-encoding", ""):
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(body)
        case "gzip":
            return zlib.decompress(body, zlib.MAX_WBITS | 16)
    return body


def _thinking_places(messages: list[Json]) -> list[tuple[int, int]]:
    return [
        (at, number)
        for at, message in enumerate(messages)
        if isinstance(message["content"], list)
        for number, block in enumerate(message["content"])
        if block["type"] == "thinking"
    ]


def _whole(name: str, request: Request, reply: Say) -> Json:
    """Returns a reply that is not streamed."""
    taken, given = request.tokens(reply)
    number, calls = request.number, list(enumerate(reply.called))
    match name:
        case "openai-chat":
            message: Json = {"role": "assistant", "content": reply.text or None}
            if calls:
                message["tool_calls"] = [
                    {
                        "id": f"call_{number}_{at}",
                        "type": "function",
                        "function": {"name": one.name, "arguments": reply.written(one)},
                    }
                    for at, one in calls
                ]
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
            usage = {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}
            head = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": request.model}
            return head | {"choices": [choice], "usage": usage}
        case "openai-responses":
            return _response(request, reply, {"input_tokens": taken, "output_tokens": given})
        case "anthropic":
            content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
            content += [
                {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": one.name, "input": one.arguments}
                for at, one in calls
            ]
            head = {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "model": request.model,
                "content": content,
            }
            ending = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
            return head | ending | {"usage": {"input_tokens": taken, "output_tokens": given}}
    parts: list[Json] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"name": one.name, "args": one.arguments}} for _, one in calls]
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": "STOP"}
    usage = {"promptTokenCount": taken, "candidatesTokenCount": given, "totalTokenCount": taken + given}
    return {"candidates": [candidate], "modelVersion": request.model, "usageMetadata": usage}


def _response(request: Request, reply: Say, usage: dict[str, Any]) -> Json:
    output: list[Json] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        output.append(
            {
                "id": f"msg_{request.number}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [part],
            }
        )
    output += [
        {
            "id": f"fc_{request.number}_{at}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{request.number}_{at}",
            "name": one.name,
            "arguments": reply.written(one),
        }
        for at, one in enumerate(reply.called)
    ]
    counts = usage | {
        "total_tokens": sum(usage.values()),
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    fixed = {"error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "tools": []}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "temperature": 1.0, "top_p": 1.0}
    head = {
        "id": f"resp_{request.number}",
        "object": "response",
        "created_at": 1,
        "model": request.model,
        "status": "completed",
    }
    return head | fixed | more | {"output": output, "usage": counts}
