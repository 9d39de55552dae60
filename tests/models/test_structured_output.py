"""Calls with a JSON schema: each provider's own parameter, and the plain prompt where it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from holdfast.models.calls import ModelCall
from providers import ProviderServer, Request, Status

Connect = Callable[..., Any]
Serve = Callable[..., ProviderServer]
SCHEMA = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
    "additionalProperties": False,
}
CALL = ModelCall("Summarize this.", max_tokens=200, schema=SCHEMA)
REFUSALS = (
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    "Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model.",
    "output_config.format: this model does not support structured outputs.",
    "JSON mode is not enabled for models/gemini-test",
)


def format_in(request: Request) -> Any:
    """The part of a request that asks for structured output, wherever the protocol has it."""
    body = request.body
    if request.protocol == "openai-chat":
        return body.get("response_format")
    if request.protocol == "openai-responses":
        return body.get("text")
    if request.protocol == "anthropic":
        return body.get("output_config")
    return body.get("generationConfig", {}).get("responseJsonSchema")


EXPECTED = {
    "openai-chat": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}},
    "openai-responses": {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA}},
    "anthropic": {"format": {"type": "json_schema", "schema": SCHEMA}},
    "gemini": SCHEMA,
}


def ask(model: Any, call: ModelCall = CALL) -> Any:
    return anyio.run(model, call, lambda _: None)


def test_schema_is_sent_in_the_providers_own_parameter(connect: Connect, serve: Serve) -> None:
    server = serve('{"summary": "fine"}')
    assert ask(connect(server)).text == '{"summary": "fine"}'
    (request,) = server.requests
    assert format_in(request) == EXPECTED[request.protocol]
    if request.protocol == "gemini":
        assert request.body["generationConfig"]["responseMimeType"] == "application/json"


def test_call_without_schema_has_no_such_parameter(connect: Connect, serve: Serve) -> None:
    server = serve("fine")
    ask(connect(server), ModelCall("Summarize this.", max_tokens=200))
    assert format_in(server.requests[0]) is None


@pytest.mark.parametrize("refusal", REFUSALS)
def test_refused_schema_is_dropped_for_good(connect: Connect, serve: Serve, refusal: str) -> None:
    place = REFUSALS.index(refusal)

    def script(request: Request) -> Any:
        own = list(EXPECTED).index(request.protocol) == place
        return Status(400, refusal) if own and format_in(request) is not None else "fine"

    server = serve(script)
    model = connect(server)
    assert ask(model).text == "fine"
    first = len(server.requests)
    assert ask(model).text == "fine"
    own = list(EXPECTED).index(server.requests[0].protocol) == place
    assert (first, len(server.requests) - first) == (1 + own, 1)
