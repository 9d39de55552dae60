"""What only Chat Completions and the servers that copy it do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from holdfast.calls import Failure, ModelCall
from holdfast.models import OpenAIChat, model_for
from providers import ProviderServer, Request, Status

Serve = Callable[..., ProviderServer]
CALL = ModelCall("Summarize this.", max_tokens=50, temperature=0.0)


def test_the_servers_first_model_is_asked_where_none_is_named(serve: Serve) -> None:
    server = serve("hello", models=["qwen3", "llama"])
    model: Any = model_for(server.openai_url)
    assert model.name == server.openai_url
    assert [anyio.run(model, CALL, lambda _: None).model for _ in range(2)] == ["qwen3", "qwen3"]
    assert model.name == f"{server.openai_url}#qwen3"
    assert [request.protocol for request in server.requests] == ["models", "openai-chat", "openai-chat"]


def test_a_server_without_models_is_a_failure(serve: Serve) -> None:
    answer = anyio.run(model_for(serve(models=[]).openai_url), CALL, lambda _: None)
    assert isinstance(answer, Failure) and "lists no model" in answer.why


def test_whichever_name_of_the_limit_the_model_takes(serve: Serve) -> None:
    refused, taken = "max_tokens", "max_completion_tokens"

    def reasoning_model(request: Request) -> Any:
        if refused in request.body:
            return Status(400, f"Unsupported parameter: '{refused}' is not supported with this model. Use '{taken}'.")
        if "temperature" in request.body:
            return Status(400, "Unsupported value: 'temperature' does not support 0.0. Only the default is supported.")
        return "done"

    server = serve(reasoning_model)
    model = OpenAIChat("o-test", base_url=server.openai_url)
    assert anyio.run(model, CALL, lambda _: None).text == "done"
    assert server.requests[-1].body[taken] == 50
    assert len(server.requests) == 3


def test_openai_itself_is_asked_with_the_new_name() -> None:
    model = OpenAIChat("gpt-x", api_key="k")
    assert model._request(CALL)["max_completion_tokens"] == 50
    assert model.name == "openai:gpt-x"


def test_a_server_that_knows_no_usage_is_asked_without(serve: Serve) -> None:
    def old(request: Request) -> Any:
        return Status(400, "Unrecognized request argument: stream_options") if "stream_options" in request.body else "x"

    reply = anyio.run(OpenAIChat("old", base_url=serve(old).openai_url), CALL, lambda _: None)
    assert (reply.text, reply.usage) == ("x", None)


def test_a_limit_that_is_too_large_is_not_dropped(serve: Serve) -> None:
    server = serve(Status(400, "max_tokens is too large: 50. This model supports at most 40 completion tokens."))
    answer = anyio.run(OpenAIChat("o", base_url=server.openai_url), CALL, lambda _: None)
    assert (answer.kind, len(server.requests)) == ("request", 1)


def test_it_does_not_ask_for_ever(serve: Serve) -> None:
    server = serve(Status(400, "'temperature' and 'max_tokens' are not supported, nor is anything else."))
    answer = anyio.run(OpenAIChat("o", base_url=server.openai_url), CALL, lambda _: None)
    assert answer.kind == "request"
    assert len(server.requests) == 2
