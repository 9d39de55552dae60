"""OpenAI's Responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from importlib import import_module
from typing import Any, get_args

from ..calls import Finish, ModelCall
from ..messages import Json
from .openai_sdk import OpenAIProvider, usage_of
from .provider import Draft
from .sdk import StreamedError, plain

_CALLS = ("function_call", "custom_tool_call")


class OpenAIResponses(OpenAIProvider):
    """`OpenAIResponses("gpt-…")`. Nothing of it is stored at the provider."""

    prefix = "openai-responses"
    format = "openai-responses"
    optional = frozenset(("temperature", "max_output_tokens", "store"))

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        """With the types of all events, made in a thread: in the event loop they would hold it up for a second."""
        for union in get_args(import_module(f"{sdk.__name__}.types.responses").ResponseStreamEvent):
            for event in get_args(union):
                event.model_rebuild()
        return super()._make_client(sdk, headers)

    def _request(self, call: ModelCall) -> Json:
        chosen = {
            "instructions": call.system or None,
            "temperature": call.temperature,
            "max_output_tokens": call.max_tokens,
            "store": False,
        }
        return {"model": self.model, "input": self._messages(call)} | self._accepted(chosen)

    async def _stream(self, client: Any, request: Json, draft: Draft) -> AsyncGenerator[str, None]:
        async with await client.responses.create(**request, stream=True) as stream:
            async for event in stream:
                match event.type:
                    case "response.output_text.delta":
                        yield event.delta
                    case "response.completed" | "response.incomplete":
                        draft.finish = _finish(event.response)
                        draft.usage = usage_of(event.response.usage)
                        draft.model = event.response.model
                    case "response.failed":
                        raise StreamedError(plain(event.response.error))
                    case "error":
                        raise StreamedError(plain(event))


def _finish(response: Any) -> Finish:
    if (details := response.incomplete_details) is not None:
        return "refused" if details.reason == "content_filter" else "length"
    if any(item.type in _CALLS for item in response.output):
        return "tool_call"
    parts = [part for item in response.output for part in getattr(item, "content", None) or ()]
    return "refused" if any(part.type == "refusal" for part in parts) else "stop"
