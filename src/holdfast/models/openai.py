"""OpenAI's Chat Completions and Responses APIs, and compatible servers."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from secrets import token_hex
from types import MappingProxyType
from typing import Any, get_args

from ..errors import InvalidInput
from ..io.secrets import public_url
from ..messages import Json, copy_json
from ..tokens import Usage
from .calls import Finish, ReplyDelta, ReplyDeltaKind, StepCall
from .provider import (
    DeltaStream,
    Provider,
    ProviderCall,
    ReplyAccumulator,
    Sdk,
    StreamedError,
    pop_extra_body,
    to_plain_data,
)

_REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields in which compatible servers return reasoning; it is sent back in the same field."""


class ChatMessageBuilder:
    """Builds a message from the chunks of a stream."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._calls: list[Json] = []
        self._arguments: list[list[str]] = []
        """Received pieces of each call's arguments."""
        self._call_by_index: dict[int, int] = {}
        """Maps the server's index to the current call."""

    @property
    def is_refusal(self) -> bool:
        return bool(self._refusal)

    def add(self, delta: Any) -> Iterator[ReplyDelta]:
        """Adds a delta of the stream and yields what is new in it."""
        if delta is None:
            return
        for field in [field for field in _REASONING_FIELDS if getattr(delta, field, None)][:1]:
            reasoning = str(getattr(delta, field))
            self._reasoning.setdefault(field, []).append(reasoning)
            yield ReplyDelta("reasoning", reasoning)
        if delta.content:
            self._text.append(delta.content)
            yield ReplyDelta("text", delta.content)
        if refusal := getattr(delta, "refusal", None):
            self._refusal.append(refusal)
            yield ReplyDelta("text", refusal)
        for call in delta.tool_calls or ():
            yield ReplyDelta("call", self._add_call(call))

    def _add_call(self, piece: Any) -> str:
        """Adds a piece of a call; returns its name if the call begins here."""
        at = self._call_index(piece)
        call, body = self._calls[at]["function"], piece.function
        begins = not call["name"] and body is not None and bool(body.name)
        if begins:
            call["name"] = body.name
        self._arguments[at].append((body and body.arguments) or "")
        self._calls[at] |= copy_json(piece.model_extra or {})  # Google's server signs its calls here
        return str(call["name"]) if begins else ""

    def _call_index(self, piece: Any) -> int:
        """Returns the call that a piece belongs to; another id is another call, since some servers repeat the index."""
        at = self._call_by_index.get(piece.index or 0)
        if at is None or (piece.id and piece.id != self._calls[at]["id"]):
            at = self._call_by_index[piece.index or 0] = len(self._calls)
            function = {"name": "", "arguments": ""}
            self._calls.append({"id": piece.id or f"call_{token_hex(8)}", "type": "function", "function": function})
            self._arguments.append([])
        return at

    def build(self) -> list[Json]:
        """Returns the message to send back; none for reasoning alone, which the API refuses."""
        for call, pieces in zip(self._calls, self._arguments, strict=True):
            call["function"]["arguments"] = "".join(pieces)
        text, refusal = "".join(self._text), "".join(self._refusal)
        if not (text or refusal or self._calls):
            return []
        more = {"refusal": refusal} if refusal else {}
        more |= {field: "".join(pieces) for field, pieces in self._reasoning.items()}
        calls = {"tool_calls": self._calls} if self._calls else {}
        return [{"role": "assistant", "content": text or None} | more | calls]


class OpenAIProvider(Provider):
    """Client and model list, shared by both APIs."""

    sdk = Sdk("openai", "openai", ("OPENAI_API_KEY",), "OPENAI_BASE_URL")

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        return sdk.AsyncOpenAI(api_key=self._key, base_url=self._base_url, max_retries=0, default_headers=headers)

    async def _client(self) -> Any:
        client = await super()._client()
        return client if self._custom_client is None else client.with_options(max_retries=0)

    async def _first_model(self, client: Any) -> str:
        listed = (await client.models.list()).data
        if not listed:
            raise InvalidInput(f"{public_url(self._base_url or '')} lists no model: add #MODEL to its address.")
        return str(listed[0].id)


def openai_usage(usage: Any) -> Usage | None:
    """Returns usage with cached tokens apart; OpenAI includes them in the input."""
    if usage is None:
        return None
    input_tokens = _count(usage, "prompt_tokens", "input_tokens")
    details = getattr(usage, "prompt_tokens_details", None) or getattr(usage, "input_tokens_details", None)
    cached = min(_count(details, "cached_tokens"), input_tokens)
    return Usage(input_tokens - cached, _count(usage, "completion_tokens", "output_tokens"), cached)


def _count(usage: Any, *names: str) -> int:
    counts = (getattr(usage, name, None) for name in names)
    return next((count for count in counts if isinstance(count, int)), 0)


_STRUCTURED_OUTPUT = r"response_format|json_schema|(?i:structured output)"
"""How servers name structured output when they refuse it."""


def _named(schema: Json) -> Json:
    return {"name": "answer", "strict": True, "schema": schema}


_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "content_filter": "refused",
}


class OpenAIChat(OpenAIProvider):
    """`OpenAIChat("gpt-…")`, or `OpenAIChat("qwen3", base_url="http://localhost:8080/v1")`.

    Without a model, uses the first that the server lists.
    """

    prefix = "openai"
    format = "openai-chat"
    optional = frozenset(("temperature", "max_tokens", "max_completion_tokens", "stream_options", "response_format"))
    refusal_patterns = MappingProxyType({"response_format": _STRUCTURED_OUTPUT})

    @property
    def name(self) -> str:
        if not self._base_url:
            return super().name
        return public_url(self._base_url) + (f"#{self.model}" if self.model else "")

    def _request(self, call: ProviderCall) -> Json:
        system = [{"role": "system", "content": call.system}] if call.system else []
        schema = self._schema(call)
        chosen = {
            "tools": self._tools(call),
            "temperature": self._temperature(call),
            "response_format": schema and {"type": "json_schema", "json_schema": _named(schema)},
            "stream_options": {"include_usage": True},
            self._limit_parameter(): call.max_tokens,
        }
        return {"model": self.model, "messages": system + self._messages(call)} | self._without_refused(chosen)

    def _limit_parameter(self) -> str:
        """Returns the name of the limit parameter: OpenAI takes the new one, most other servers the old one."""
        names = ("max_tokens", "max_completion_tokens") if self._base_url else ("max_completion_tokens", "max_tokens")
        return names[0] if names[0] not in self._refused else names[1]

    async def _stream(self, client: Any, request: Json, accumulator: ReplyAccumulator) -> DeltaStream:
        message = ChatMessageBuilder()
        extra = pop_extra_body(request, ("messages", "tools"))
        async with await client.chat.completions.create(
            messages=[], **request, stream=True, extra_body=extra
        ) as stream:
            async for chunk in stream:
                accumulator.model = chunk.model or accumulator.model
                accumulator.usage = openai_usage(chunk.usage) or accumulator.usage
                for choice in (chunk.choices or ())[:1]:
                    for delta in message.add(choice.delta):
                        yield delta
                    if choice.finish_reason:
                        accumulator.finish = "refused" if message.is_refusal else _chat_finish(choice.finish_reason)
        accumulator.messages = message.build()


def _chat_finish(reason: str) -> Finish:
    """Maps the finish reason; Google's server sends `function_call_filter: …` for a call that it cannot parse."""
    return _FINISH.get(reason, "tool_call" if reason.startswith("function_call") else "stop")


_CALL_TYPES = ("function_call", "custom_tool_call")
_DELTA_KINDS: dict[str, ReplyDeltaKind] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}


class OpenAIResponses(OpenAIProvider):
    """`OpenAIResponses("gpt-…")`. The provider stores nothing of it."""

    prefix = "openai-responses"
    format = "openai-responses"
    optional = frozenset(("temperature", "max_output_tokens", "store", "include", "text"))
    refusal_patterns = MappingProxyType(
        {"include": r"\binclude\b|[Ee]ncrypted content", "text": rf"\btext\.format\b|{_STRUCTURED_OUTPUT}"}
    )

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        """Builds the SDK's event types here, in a thread, since it would block the event loop for a second."""
        for union in get_args(import_module(f"{sdk.__name__}.types.responses").ResponseStreamEvent):
            for event in get_args(union):
                event.model_rebuild()
        return super()._make_client(sdk, headers)

    def _request(self, call: ProviderCall) -> Json:
        schema = self._schema(call)
        chosen = {
            "text": schema and {"format": {"type": "json_schema"} | _named(schema)},
            "instructions": call.system or None,
            "tools": self._tools(call),
            "temperature": self._temperature(call),
            "max_output_tokens": call.max_tokens,
            "store": False,
            "include": ["reasoning.encrypted_content"] if isinstance(call, StepCall) else None,
        }
        return {"model": self.model, "input": self._messages(call)} | self._without_refused(chosen)

    async def _stream(self, client: Any, request: Json, accumulator: ReplyAccumulator) -> DeltaStream:
        items: dict[int, Json] = {}
        extra = pop_extra_body(request, ("input", "tools"))
        async with await client.responses.create(**request, stream=True, extra_body=extra) as stream:
            async for event in stream:
                match event.type:
                    case "response.output_item.added" if event.item.type in _CALL_TYPES:
                        yield ReplyDelta("call", event.item.name)
                    case "response.function_call_arguments.delta":
                        yield ReplyDelta("call", "")
                    case "response.output_item.done":
                        items[event.output_index] = copy_json(event.item)
                    case "response.completed" | "response.incomplete":
                        accumulator.finish = _responses_finish(event.response)
                        accumulator.usage = openai_usage(event.response.usage)
                        accumulator.model = event.response.model
                        items = dict(enumerate(map(copy_json, event.response.output))) or items
                    case "response.failed":
                        raise StreamedError(to_plain_data(event.response.error))
                    case "error":
                        raise StreamedError(to_plain_data(event))
                    case kind if kind in _DELTA_KINDS and event.delta:
                        yield ReplyDelta(_DELTA_KINDS[kind], event.delta)
        accumulator.messages = _resendable_items([item for _, item in sorted(items.items())])


def _responses_finish(response: Any) -> Finish:
    if (details := response.incomplete_details) is not None:
        return "refused" if details.reason == "content_filter" else "length"
    if any(item.type in _CALL_TYPES for item in response.output):
        return "tool_call"
    parts = [part for item in response.output for part in getattr(item, "content", None) or ()]
    return "refused" if any(part.type == "refusal" for part in parts) else "stop"


def _resendable_items(items: list[Json]) -> list[Json]:
    """Returns the items to send back, without incomplete or trailing reasoning, which the API refuses.

    If reasoning is dropped, the other items lose their ids, by which the API would look for it.
    """
    kept = [
        item for item in items if item["type"] != "reasoning" or item.get("encrypted_content") or item.get("content")
    ]
    while kept and kept[-1]["type"] == "reasoning":
        kept.pop()
    if len(kept) < len(items):
        kept = [{key: value for key, value in item.items() if key != "id"} for item in kept]
    return kept
