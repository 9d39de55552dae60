"""Chat Completions and compatible servers: model list, limit parameters, refused parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from holdfast.models import OpenAIChat, resolve_model
from holdfast.models.calls import Failure, ModelCall
from providers import ProviderServer, Request, Status

Serve = Callable[..., ProviderServer]
CALL = ModelCall("Summarize this.", max_tokens=50, temperature=0.0)


def test_openai_chat_without_model_uses_the_first_listed(serve: Serve) -> None:
    server = serve("hello", models=["qwen3", "llama"])
    model: Any = resolve_model(server.openai_url)
    assert model.name == server.openai_url
    assert [anyio.run(model, CALL, lambda _: None).model for _ in range(2)] == ["qwen3", "qwen3"]
    assert model.name == f"{server.openai_url}#qwen3"
    assert [request.protocol for request in server.requests] == ["models", "openai-chat", "openai-chat"]


def test_openai_chat_server_without_models_fails(serve: Serve) -> None:
    answer = anyio.run(resolve_model(serve(models=[]).openai_url), CALL, lambda _: None)
    assert isinstance(answer, Failure) and "lists no model" in answer.why


def test_openai_chat_refused_limit_parameter_is_replaced(serve: Serve) -> None:
    refused, accepted = "max_tokens", "max_completion_tokens"

    def reasoning_model(request: Request) -> Any:
        if refused in request.body:
            return Status(
                400, f"Unsupported parameter: '{refused}' is not supported with this model. Use '{accepted}'."
            )
        if "temperature" in request.body:
            return Status(400, "Unsupported value: 'temperature' does not support 0.0. Only the default is supported.")
        return "done"

    server = serve(reasoning_model)
    model = OpenAIChat("o-test", base_url=server.openai_url)
    assert anyio.run(model, CALL, lambda _: None).text == "done"
    assert server.requests[-1].body[accepted] == 50
    assert len(server.requests) == 3


def test_openai_chat_uses_max_completion_tokens_for_openai() -> None:
    model = OpenAIChat("gpt-x", api_key="k")
    assert model._request(CALL)["max_completion_tokens"] == 50
    assert model.name == "openai:gpt-x"


def test_openai_chat_refused_stream_options_are_dropped(serve: Serve) -> None:
    def old_server(request: Request) -> Any:
        return Status(400, "Unrecognized request argument: stream_options") if "stream_options" in request.body else "x"

    reply = anyio.run(OpenAIChat("old", base_url=serve(old_server).openai_url), CALL, lambda _: None)
    assert (reply.text, reply.usage) == ("x", None)


def test_openai_chat_limit_too_large_is_not_dropped(serve: Serve) -> None:
    server = serve(Status(400, "max_tokens is too large: 50. This model supports at most 40 completion tokens."))
    answer = anyio.run(OpenAIChat("o", base_url=server.openai_url), CALL, lambda _: None)
    assert (answer.kind, len(server.requests)) == ("request", 1)


def test_openai_chat_refused_parameters_are_bounded(serve: Serve) -> None:
    server = serve(Status(400, "'temperature' and 'max_tokens' are not supported, nor is anything else."))
    answer = anyio.run(OpenAIChat("o", base_url=server.openai_url), CALL, lambda _: None)
    assert answer.kind == "request"
    assert len(server.requests) == 2
