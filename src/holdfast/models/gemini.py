"""Google's Gemini API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from types import MappingProxyType
from typing import Any

import msgspec

from ..messages import Json, copy_json
from ..tokens import Usage
from .calls import Finish, ReplyDelta
from .provider import DeltaStream, Provider, ProviderCall, ReplyAccumulator, Sdk, pop_extra_body

_STANDARD_BASE64 = str.maketrans("-_", "+/")
_SIGNATURE = "thoughtSignature"
_REPLACED_CONTENTS = "-"
"""The SDK refuses a request without any contents of its own."""


class GeminiContentBuilder:
    """Builds a content from the chunks of a stream."""

    def __init__(self) -> None:
        self._parts: list[Json] = []
        self._texts: list[list[str]] = []
        """Received pieces of each part's text."""

    @property
    def has_call(self) -> bool:
        return any("functionCall" in part for part in self._parts)

    def add(self, given: Any) -> Iterator[ReplyDelta]:
        """Adds a part of a chunk and yields what is new in it. Parts with a signature are never merged."""
        part: Json = copy_json(given)
        if _SIGNATURE in part:
            part[_SIGNATURE] = part[_SIGNATURE].translate(_STANDARD_BASE64)  # the SDK uses the URL-safe alphabet
        if part.keys() == {_SIGNATURE}:
            part["text"] = ""  # a signature alone needs a part
        text = part.get("text")
        if text is not None and self._continues(part):
            self._texts[-1].append(text)
        elif text or part.keys() - {"text", "thought"}:
            self._parts.append(part)
            self._texts.append([text] if text is not None else [])
        if text:
            yield ReplyDelta("reasoning" if part.get("thought") else "text", text)
        if "functionCall" in part:
            yield ReplyDelta("call", part["functionCall"].get("name", ""))

    def _continues(self, part: Json) -> bool:
        last = self._parts[-1] if self._parts else {}
        return "text" in last and last | {"text": ""} == part | {"text": ""}

    def build(self) -> list[Json]:
        """Returns the content to send back; none if it is empty."""
        joined = zip(self._parts, self._texts, strict=True)
        parts = [part | {"text": "".join(text)} if "text" in part else part for part, text in joined]
        non_empty = [part for part in parts if part.get("text") or part.keys() - {"text", _SIGNATURE}]
        return [{"role": "model", "parts": parts}] if any(not part.get("thought") for part in non_empty) else []


_FINISH: dict[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "MALFORMED_FUNCTION_CALL": "tool_call",
    "UNEXPECTED_TOOL_CALL": "tool_call",
    "TOO_MANY_TOOL_CALLS": "tool_call",
}
"""All other finish reasons mean that the reply was refused."""


class Gemini(Provider):
    """`Gemini("gemini-…")`."""

    sdk = Sdk("google.genai", "gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GOOGLE_GEMINI_BASE_URL")
    prefix = "gemini"
    format = "gemini"
    optional = frozenset(("response_json_schema",))
    refusal_patterns = MappingProxyType({"response_json_schema": r"(?i)json[ _]?(?:mode|schema)|response_?mime_?type"})

    def _make_client(self, sdk: Any, headers: dict[str, str]) -> Any:
        options = {"headers": headers, "retry_options": {"attempts": 1}}
        base_url = {"base_url": self._base_url} if self._base_url else {}
        credentials = {"api_key": self._key, "vertexai": False} if self._key else {}
        return sdk.Client(http_options=options | base_url, **credentials)

    async def _disconnect(self, client: Any) -> None:
        await client.aio.aclose()
        client.close()

    def _request(self, call: ProviderCall) -> Json:
        chosen = {
            "system_instruction": call.system or None,
            "tools": self._tools(call),
            "temperature": self._temperature(call),
            "max_output_tokens": call.max_tokens,
            "response_json_schema": self._schema(call),
        }
        config = self._without_refused(chosen)
        if "response_json_schema" in config:
            config["response_mime_type"] = "application/json"
        return {"model": self.model, "contents": self._messages(call), "config": config}

    def _parameters(self, request: Json) -> Json:
        config: Json = request["config"]
        return config

    async def _stream(self, client: Any, request: Json, accumulator: ReplyAccumulator) -> DeltaStream:
        parts = GeminiContentBuilder()
        extra = pop_extra_body(request, ("contents",)) | pop_extra_body(request["config"], ("tools",))
        request["config"]["http_options"] = {"extra_body": msgspec.to_builtins(extra)}  # media may be bytes
        async with aclosing(
            await client.aio.models.generate_content_stream(contents=_REPLACED_CONTENTS, **request)
        ) as stream:
            async for chunk in _close_response_on_error(stream):
                accumulator.model = chunk.model_version or accumulator.model
                accumulator.usage = _usage(chunk.usage_metadata) or accumulator.usage
                if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
                    accumulator.finish = "refused"
                for candidate in (chunk.candidates or ())[:1]:
                    for part in (candidate.content.parts if candidate.content else None) or ():
                        for delta in parts.add(part):
                            yield delta
                    if candidate.finish_reason:
                        why = _FINISH.get(candidate.finish_reason.value, "refused")
                        accumulator.finish = "tool_call" if parts.has_call and why == "stop" else why
        accumulator.messages = parts.build()


async def _close_response_on_error(stream: Any) -> AsyncGenerator[Any, None]:
    """Closes the response after an error in the stream; a reference cycle would keep it open."""
    try:
        async for chunk in stream:
            yield chunk
    except Exception as error:
        unread = getattr(getattr(error, "response", None), "segment_iterator", None)
        if unread is not None:
            await unread.aclose()
        raise


def _usage(given: Any) -> Usage | None:
    """Returns usage with cached tokens apart from the prompt, and reasoning counted as output."""
    if given is None or given.prompt_token_count is None:
        return None
    cached = min(given.cached_content_token_count or 0, given.prompt_token_count)
    output = (given.candidates_token_count or 0) + (given.thoughts_token_count or 0)
    return Usage(given.prompt_token_count - cached, output, cached)
