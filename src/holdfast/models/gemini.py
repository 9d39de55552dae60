"""Google's Gemini."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ..calls import Finish
from ..messages import Json
from ..tokens import Usage
from .draft import Draft
from .gemini_parts import Parts
from .provider import Call, Pieces, Provider
from .sdk import Sdk

_FINISH: dict[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "MALFORMED_FUNCTION_CALL": "tool_call",
    "UNEXPECTED_TOOL_CALL": "tool_call",
    "TOO_MANY_TOOL_CALLS": "tool_call",
}
"""All other words of Gemini's say that it was not allowed to go on."""


class Gemini(Provider):
    """`Gemini("gemini-…")`."""

    sdk = Sdk("google.genai", "gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GOOGLE_GEMINI_BASE_URL")
    prefix = "gemini"
    format = "gemini"

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        options = {"headers": headers, "retry_options": {"attempts": 1}}
        where = {"base_url": self._base_url} if self._base_url else {}
        own = {"api_key": self._key, "vertexai": False} if self._key else {}
        return sdk.Client(http_options=options | where, **own)

    async def _disconnect(self, client: Any) -> None:
        await client.aio.aclose()
        client.close()

    def _request(self, call: Call) -> Json:
        chosen = {
            "system_instruction": call.system or None,
            "tools": self._tools(call),
            "temperature": self._temperature(call),
            "max_output_tokens": call.max_tokens,
        }
        return {"model": self.model, "contents": self._messages(call), "config": self._accepted(chosen)}

    async def _stream(self, client: Any, request: Json, draft: Draft) -> Pieces:
        parts = Parts()
        async with aclosing(await client.aio.models.generate_content_stream(**request)) as stream:
            async for chunk in _closing_behind_errors(stream):
                draft.model = chunk.model_version or draft.model
                draft.usage = _usage(chunk.usage_metadata) or draft.usage
                if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
                    draft.finish = "refused"
                for candidate in (chunk.candidates or ())[:1]:
                    for part in (candidate.content.parts if candidate.content else None) or ():
                        for delta in parts.take(part):
                            yield delta
                    if candidate.finish_reason:
                        why = _FINISH.get(candidate.finish_reason.value, "refused")
                        draft.finish = "tool_call" if parts.has_call and why == "stop" else why
        draft.messages = parts.whole()


async def _closing_behind_errors(stream: Any) -> AsyncGenerator[Any, None]:
    """An error inside the stream holds the half-read response in a circle that only the collector would open."""
    try:
        async for chunk in stream:
            yield chunk
    except Exception as problem:
        unread = getattr(getattr(problem, "response", None), "segment_iterator", None)
        if unread is not None:
            await unread.aclose()
        raise


def _usage(given: Any) -> Usage | None:
    """Cached tokens are part of Gemini's prompt; its thoughts are paid for like what it says."""
    if given is None or given.prompt_token_count is None:
        return None
    cached = min(given.cached_content_token_count or 0, given.prompt_token_count)
    said = (given.candidates_token_count or 0) + (given.thoughts_token_count or 0)
    return Usage(given.prompt_token_count - cached, said, cached)
