"""OpenAI's Responses."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Any, get_args

from ..calls import Delta, DeltaKind, Finish, StepCall
from ..messages import Json, copy_json
from .draft import Draft
from .openai_sdk import OpenAIProvider, usage_of
from .provider import Call, Pieces
from .sdk import StreamedError, beside, plain

_CALLS = ("function_call", "custom_tool_call")
_KINDS: dict[str, DeltaKind] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}


class OpenAIResponses(OpenAIProvider):
    """`OpenAIResponses("gpt-…")`. Nothing of it is stored at the provider."""

    prefix = "openai-responses"
    format = "openai-responses"
    optional = frozenset(("temperature", "max_output_tokens", "store", "include"))
    by_other_words = MappingProxyType({"include": r"\binclude\b|[Ee]ncrypted content"})

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        """With the types of all events, made in a thread: in the event loop they would hold it up for a second."""
        for union in get_args(import_module(f"{sdk.__name__}.types.responses").ResponseStreamEvent):
            for event in get_args(union):
                event.model_rebuild()
        return super()._make_client(sdk, headers)

    def _request(self, call: Call) -> Json:
        chosen = {
            "instructions": call.system or None,
            "tools": self._tools(call),
            "temperature": self._temperature(call),
            "max_output_tokens": call.max_tokens,
            "store": False,
            "include": ["reasoning.encrypted_content"] if isinstance(call, StepCall) else None,
        }
        return {"model": self.model, "input": self._messages(call)} | self._accepted(chosen)

    async def _stream(self, client: Any, request: Json, draft: Draft) -> Pieces:
        items: dict[int, Json] = {}
        extra = beside(request, ("input", "tools"))
        async with await client.responses.create(**request, stream=True, extra_body=extra) as stream:
            async for event in stream:
                match event.type:
                    case "response.output_item.added" if event.item.type in _CALLS:
                        yield Delta("call", event.item.name)
                    case "response.function_call_arguments.delta":
                        yield Delta("call", "")
                    case "response.output_item.done":
                        items[event.output_index] = copy_json(event.item)
                    case "response.completed" | "response.incomplete":
                        draft.finish = _finish(event.response)
                        draft.usage = usage_of(event.response.usage)
                        draft.model = event.response.model
                        items = dict(enumerate(map(copy_json, event.response.output))) or items
                    case "response.failed":
                        raise StreamedError(plain(event.response.error))
                    case "error":
                        raise StreamedError(plain(event))
                    case kind if kind in _KINDS and event.delta:
                        yield Delta(_KINDS[kind], event.delta)
        draft.messages = _sendable([item for _, item in sorted(items.items())])


def _finish(response: Any) -> Finish:
    if (details := response.incomplete_details) is not None:
        return "refused" if details.reason == "content_filter" else "length"
    if any(item.type in _CALLS for item in response.output):
        return "tool_call"
    parts = [part for item in response.output for part in getattr(item, "content", None) or ()]
    return "refused" if any(part.type == "refusal" for part in parts) else "stop"


def _sendable(items: list[Json]) -> list[Json]:
    """The items to send back. Nothing of them is stored, so reasoning that is not all there cannot be found again.

    What followed it then goes without its id, because by that the API would miss the reasoning. Reasoning that led
    to nothing is not taken back either.
    """
    kept = [
        item for item in items if item["type"] != "reasoning" or item.get("encrypted_content") or item.get("content")
    ]
    while kept and kept[-1]["type"] == "reasoning":
        kept.pop()
    if len(kept) < len(items):
        kept = [{key: value for key, value in item.items() if key != "id"} for item in kept]
    return kept
