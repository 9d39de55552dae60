"""OpenAI's Chat Completions, and every server that speaks them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from ..calls import Finish, ModelCall
from ..messages import Json
from .openai_sdk import OpenAIProvider, usage_of
from .provider import Draft
from .secrets import public_url

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "content_filter": "refused",
}


class OpenAIChat(OpenAIProvider):
    """`OpenAIChat("gpt-…")`, or `OpenAIChat("qwen3", base_url="http://localhost:8080/v1")`.

    Without a model, the first one that the server lists is asked.
    """

    prefix = "openai"
    format = "openai-chat"
    optional = frozenset(("temperature", "max_tokens", "max_completion_tokens", "stream_options"))

    @property
    def name(self) -> str:
        if not self._base_url:
            return super().name
        return public_url(self._base_url) + (f"#{self.model}" if self.model else "")

    def _request(self, call: ModelCall) -> Json:
        system = [{"role": "system", "content": call.system}] if call.system else []
        chosen = {
            "temperature": call.temperature,
            "stream_options": {"include_usage": True},
            self._limit(): call.max_tokens,
        }
        return {"model": self.model, "messages": system + self._messages(call)} | self._accepted(chosen)

    def _limit(self) -> str:
        """OpenAI's models take the new name, most other servers the old one: whichever was not refused."""
        names = ("max_tokens", "max_completion_tokens") if self._base_url else ("max_completion_tokens", "max_tokens")
        return names[0] if names[0] not in self._refused else names[1]

    async def _stream(self, client: Any, request: Json, draft: Draft) -> AsyncGenerator[str, None]:
        refused = False
        async with await client.chat.completions.create(**request, stream=True) as stream:
            async for chunk in stream:
                draft.model = chunk.model or draft.model
                draft.usage = usage_of(chunk.usage) or draft.usage
                for choice in (chunk.choices or ())[:1]:
                    refused = refused or bool(getattr(choice.delta, "refusal", None))
                    if choice.finish_reason:
                        draft.finish = "refused" if refused else _FINISH.get(choice.finish_reason, "stop")
                    if choice.delta and choice.delta.content:
                        yield choice.delta.content
