"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from ..messages import Json, ToolCall, copy_json
from ..tokens import read_usage
from ..tokens.catalog import CATALOG, LONG_SUFFIX, wants_long_window
from .calls import Finish, ReplyDelta, StepCall
from .provider import (
    DeltaStream,
    Provider,
    ProviderCall,
    ReplyAccumulator,
    Sdk,
    parse_arguments,
    pop_extra_body,
    to_plain_data,
)

_REASONING_TYPES = ("thinking", "redacted_thinking")


class AnthropicMessageBuilder:
    """Builds a message from the events of a stream."""

    def __init__(self) -> None:
        self._blocks: dict[int, Json] = {}
        self._pieces: dict[int, list[str]] = {}
        """Received pieces of each block's text, reasoning or input."""

    def start_block(self, index: int, block: Any) -> Iterator[ReplyDelta]:
        started: Json = copy_json(block)
        self._blocks[index], self._pieces[index] = started, []
        if started["type"] == "tool_use":
            yield ReplyDelta("call", started["name"])
        elif text := started.get("text") or started.get("thinking"):
            yield self._text_delta(index, text)

    def add(self, index: int, delta: Any) -> Iterator[ReplyDelta]:
        match delta.type:
            case "text_delta" if delta.text:
                yield self._text_delta(index, delta.text)
            case "thinking_delta" if delta.thinking:
                yield self._text_delta(index, delta.thinking)
            case "signature_delta":
                self._blocks[index]["signature"] = delta.signature
            case "input_json_delta":
                self._pieces[index].append(delta.partial_json)
                yield ReplyDelta("call", "")
            case "citations_delta":
                self._blocks[index].setdefault("citations", []).append(copy_json(delta.citation))

    def _text_delta(self, index: int, text: str) -> ReplyDelta:
        self._pieces[index].append(text)
        return ReplyDelta("text" if self._blocks[index]["type"] == "text" else "reasoning", text)

    def build(self, *, cut_off: bool) -> tuple[list[Json], list[ToolCall]]:
        """Returns the message to send back, if any, and the calls whose input is no JSON object."""
        blocks: list[Json] = []
        broken: list[ToolCall] = []
        last = max(self._blocks, default=0)
        for index, block in sorted(self._blocks.items()):
            text = "".join(self._pieces[index])
            if block["type"] != "tool_use":
                blocks += [filled] if (filled := _complete_block(block, text)) else []
            elif block["input"] and not text:
                blocks.append(block)
            elif isinstance(arguments := parse_arguments(text, cut_off and index == last), dict):
                blocks.append(block | {"input": arguments})
            else:
                broken.append(ToolCall(block["id"], block["name"], arguments))
        while blocks and blocks[-1]["type"] in _REASONING_TYPES:
            blocks.pop()
        return [{"role": "assistant", "content": blocks}] if blocks else [], broken


def _complete_block(block: Json, text: str) -> Json | None:
    """Returns the block with its text; None if the API would refuse it: a blank text, unsigned reasoning."""
    match block["type"]:
        case "text":
            return block | {"text": text} if text.strip() else None
        case "thinking":
            return block | {"thinking": text} if block.get("signature") else None
    return block


_DEFAULT_MAX_TOKENS = 8_192
"""Used where the call has no limit, since this API requires one."""
_MAX_STEP_TOKENS = 32_000
"""Larger, since a step may write a whole file."""
_BETA_HEADER, _LONG_WINDOW_BETA = "anthropic-beta", "context-1m-2025-08-07"
_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_call",
    "refusal": "refused",
}


class Anthropic(Provider):
    """`Anthropic("claude-…")`; an id that ends in `[1m]` requests the window of a million tokens."""

    sdk = Sdk("anthropic", "anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "ANTHROPIC_BASE_URL")
    prefix = "anthropic"
    format = "anthropic"
    optional = frozenset(("temperature", "cache_control", "output_config"))
    refusal_patterns = MappingProxyType({"output_config": r"output_config|output_format|(?i:structured output)"})

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        return sdk.AsyncAnthropic(api_key=self._key, base_url=self._base_url, max_retries=0, default_headers=headers)

    async def _client(self) -> Any:
        client = await super()._client()
        if self._custom_client is not None:
            client = client.with_options(max_retries=0)
        if not wants_long_window(self.model):
            return client
        betas = filter(None, (client.default_headers.get(_BETA_HEADER), _LONG_WINDOW_BETA))
        return client.with_options(default_headers={_BETA_HEADER: ",".join(betas)})

    def _request(self, call: ProviderCall) -> Json:
        model = self.model[: -len(LONG_SUFFIX)] if self.model and wants_long_window(self.model) else self.model
        needed = {"model": model, "max_tokens": call.max_tokens or self._default_max_tokens(call)}
        schema = self._schema(call)
        chosen = {
            "output_config": schema and {"format": {"type": "json_schema", "schema": schema}},
            "system": call.system or None,
            "tools": self._tools(call),
            "temperature": self._temperature(call),
            "cache_control": {"type": "ephemeral"}
            if isinstance(call, StepCall) and not _has_cache_control(call)
            else None,
        }
        return needed | {"messages": self._messages(call)} | self._without_refused(chosen)

    def _default_max_tokens(self, call: ProviderCall) -> int:
        entry = CATALOG.find(self.model or "")
        if entry is None:
            return _DEFAULT_MAX_TOKENS
        return min(entry.output, _MAX_STEP_TOKENS if isinstance(call, StepCall) else _DEFAULT_MAX_TOKENS)

    async def _stream(self, client: Any, request: Json, accumulator: ReplyAccumulator) -> DeltaStream:
        counts: Json = {}
        blocks = AnthropicMessageBuilder()
        stop_reason = None
        extra = pop_extra_body(request, ("messages", "tools", *self.optional))
        async with await client.messages.create(messages=[], **request, stream=True, extra_body=extra) as stream:
            async for event in stream:
                match event.type:
                    case "message_start":
                        accumulator.model = event.message.model
                        counts |= _non_null_counts(event.message.usage)
                    case "content_block_start":
                        for delta in blocks.start_block(event.index, event.content_block):
                            yield delta
                    case "content_block_delta":
                        for delta in blocks.add(event.index, event.delta):
                            yield delta
                    case "message_delta":
                        stop_reason = event.delta.stop_reason or stop_reason
                        counts |= _non_null_counts(event.usage)
                    case "message_stop":
                        accumulator.finish = _FINISH.get(stop_reason or "", "stop")
                        accumulator.usage = read_usage(counts) if counts else None
        accumulator.messages, accumulator.broken_calls = blocks.build(cut_off=accumulator.finish == "length")


def _has_cache_control(call: StepCall) -> bool:
    """Returns whether a message has cache markers; otherwise the API caches all that the step sends."""
    contents = (message.get("content") for message in call.messages)
    blocks = (block for content in contents if isinstance(content, list) for block in content)
    return any("cache_control" in block for block in blocks if isinstance(block, dict))


def _non_null_counts(usage: Any) -> Json:
    """Returns the counts without nulls, so that they can update earlier ones."""
    return {name: count for name, count in (to_plain_data(usage) or {}).items() if count is not None}
