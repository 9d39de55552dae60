"""Anthropic's Messages."""

from __future__ import annotations

from typing import Any

from ..calls import Finish, StepCall
from ..catalog import CATALOG
from ..messages import Json
from ..tokens import read_usage
from .anthropic_blocks import Blocks
from .draft import Draft
from .provider import Call, Pieces, Provider
from .sdk import Sdk, beside, plain

_LONGEST_REPLY = 8_192
"""Where the call sets no limit, because this API wants one."""
_LONGEST_STEP = 32_000
"""A step may write a whole file."""
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
    optional = frozenset(("temperature", "cache_control"))

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        return sdk.AsyncAnthropic(api_key=self._key, base_url=self._base_url, max_retries=0, default_headers=headers)

    async def _client(self) -> Any:
        client = await super()._client()
        return client if self._given is None else client.with_options(max_retries=0)

    def _request(self, call: Call) -> Json:
        needed = {"model": self.model, "max_tokens": call.max_tokens or self._longest_reply(call)}
        chosen = {
            "system": call.system or None,
            "tools": self._tools(call),
            "temperature": self._temperature(call),
            "cache_control": {"type": "ephemeral"} if isinstance(call, StepCall) and not _is_marked(call) else None,
        }
        return needed | {"messages": self._messages(call)} | self._accepted(chosen)

    def _longest_reply(self, call: Call) -> int:
        entry = CATALOG.find(self.model or "")
        if entry is None:
            return _LONGEST_REPLY
        return min(entry.output, _LONGEST_STEP if isinstance(call, StepCall) else _LONGEST_REPLY)

    async def _stream(self, client: Any, request: Json, draft: Draft) -> Pieces:
        counts: Json = {}
        blocks = Blocks()
        why = None
        extra = beside(request, ("messages", "tools", *self.optional))
        async with await client.messages.create(messages=[], **request, stream=True, extra_body=extra) as stream:
            async for event in stream:
                match event.type:
                    case "message_start":
                        draft.model = event.message.model
                        counts |= _said(event.message.usage)
                    case "content_block_start":
                        for delta in blocks.begin(event.index, event.content_block):
                            yield delta
                    case "content_block_delta":
                        for delta in blocks.take(event.index, event.delta):
                            yield delta
                    case "message_delta":
                        why = event.delta.stop_reason or why
                        counts |= _said(event.usage)
                    case "message_stop":
                        draft.finish = _FINISH.get(why or "", "stop")
                        draft.usage = read_usage(counts) if counts else None
        draft.messages, draft.cut_off = blocks.whole(cut=draft.finish == "length")


def _is_marked(call: StepCall) -> bool:
    """Does a message say itself what to cache? Else the API is asked to keep all that this step sends."""
    blocks = (block for message in call.messages for block in message.get("content") or () if isinstance(block, dict))
    return any("cache_control" in block for block in blocks)


def _said(usage: Any) -> Json:
    """Counts that come later replace earlier ones, but null says nothing."""
    return {name: count for name, count in (plain(usage) or {}).items() if count is not None}
