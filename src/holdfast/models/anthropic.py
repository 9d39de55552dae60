"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from ..calls import Finish, ModelCall
from ..catalog import CATALOG
from ..messages import Json
from ..tokens import read_usage
from .provider import Draft, Provider
from .sdk import Sdk, plain

_LONGEST_REPLY = 8_192
"""Where the call sets no limit, because this API wants one."""
_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_call",
    "refusal": "refused",
}


class Anthropic(Provider):
    """`Anthropic("claude-…")`."""

    sdk = Sdk("anthropic", "anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "ANTHROPIC_BASE_URL")
    prefix = "anthropic"
    format = "anthropic"
    optional = frozenset(("temperature",))

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        return sdk.AsyncAnthropic(api_key=self._key, base_url=self._base_url, max_retries=0, default_headers=headers)

    async def _client(self) -> Any:
        client = await super()._client()
        return client if self._given is None else client.with_options(max_retries=0)

    def _request(self, call: ModelCall) -> Json:
        needed = {"model": self.model, "max_tokens": call.max_tokens or self._longest_reply()}
        chosen = {"system": call.system or None, "temperature": call.temperature}
        return needed | {"messages": self._messages(call)} | self._accepted(chosen)

    def _longest_reply(self) -> int:
        entry = CATALOG.find(self.model or "")
        return min(entry.output, _LONGEST_REPLY) if entry is not None else _LONGEST_REPLY

    async def _stream(self, client: Any, request: Json, draft: Draft) -> AsyncGenerator[str, None]:
        """The newest SDKs do not know every parameter that models of a year ago take; they go beside."""
        counts: Json = {}
        why = None
        beside = {name: request.pop(name) for name in self.optional & request.keys()}
        async with await client.messages.create(**request, stream=True, extra_body=beside) as stream:
            async for event in stream:
                match event.type:
                    case "message_start":
                        draft.model = event.message.model
                        counts |= _said(event.message.usage)
                    case "content_block_delta" if event.delta.type == "text_delta":
                        yield event.delta.text
                    case "message_delta":
                        why = event.delta.stop_reason or why
                        counts |= _said(event.usage)
                    case "message_stop":
                        draft.finish = _FINISH.get(why or "", "stop")
                        draft.usage = read_usage(counts) if counts else None


def _said(usage: Any) -> Json:
    """Counts that come later replace earlier ones, but null says nothing."""
    return {name: count for name, count in (plain(usage) or {}).items() if count is not None}
