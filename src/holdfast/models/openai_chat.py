"""OpenAI's Chat Completions, and every server that speaks them."""

from __future__ import annotations

from typing import Any

from ..calls import Finish
from ..messages import Json
from .draft import Draft
from .openai_chat_message import ChatMessage
from .openai_sdk import OpenAIProvider, usage_of
from .provider import Call, Pieces
from .sdk import beside
from .secrets import public_url

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
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

    def _request(self, call: Call) -> Json:
        system = [{"role": "system", "content": call.system}] if call.system else []
        chosen = {
            "tools": self._tools(call),
            "temperature": self._temperature(call),
            "stream_options": {"include_usage": True},
            self._limit(): call.max_tokens,
        }
        return {"model": self.model, "messages": system + self._messages(call)} | self._accepted(chosen)

    def _limit(self) -> str:
        """OpenAI's models take the new name, most other servers the old one: whichever was not refused."""
        names = ("max_tokens", "max_completion_tokens") if self._base_url else ("max_completion_tokens", "max_tokens")
        return names[0] if names[0] not in self._refused else names[1]

    async def _stream(self, client: Any, request: Json, draft: Draft) -> Pieces:
        message = ChatMessage()
        extra = beside(request, ("messages", "tools"))
        async with await client.chat.completions.create(
            messages=[], **request, stream=True, extra_body=extra
        ) as stream:
            async for chunk in stream:
                draft.model = chunk.model or draft.model
                draft.usage = usage_of(chunk.usage) or draft.usage
                for choice in (chunk.choices or ())[:1]:
                    for delta in message.take(choice.delta):
                        yield delta
                    if choice.finish_reason:
                        draft.finish = "refused" if message.is_refusal else _finish(choice.finish_reason)
        draft.messages = message.whole()


def _finish(reason: str) -> Finish:
    """Google's server says `function_call_filter: …` of a call that it could not read itself."""
    return _FINISH.get(reason, "tool_call" if reason.startswith("function_call") else "stop")
