"""Models behind the gateway whose chat template refuses two messages of one role in a row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from gateway_harness import ClientConversation, RunningGateway, run_gateway
from test_gateway_compaction import STEPS, WINDOW, result, task

from chat_templates import Messages, gemma, mistral
from providers import ProviderServer, Request, Status

pytestmark = pytest.mark.anyio
TWO = [{"role": "user", "content": "remember the tide"}, {"role": "user", "content": "when is it high?"}]


def strict(
    template: Callable[[Messages], str], answer: Any = "At noon.", status: int = 400
) -> Callable[[Request], Any]:
    """A model with this template: it refuses as its server does."""

    def reply(request: Request) -> Any:
        if error := template(request.body["messages"]):
            return Status(status, error)
        return answer(request) if callable(answer) else answer

    return reply


async def ask(gateway: RunningGateway, messages: Messages, model: str = "harbor") -> str:
    given: Any = messages
    stream = await gateway.openai().chat.completions.create(model=model, messages=given, stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


@pytest.mark.parametrize(("template", "status"), [(mistral, 400), (gemma, 500)], ids=["Mistral", "Gemma"])
async def test_refusal_is_learned_and_not_shown_to_the_client(template: Callable[..., str], status: int) -> None:
    with ProviderServer(strict(template, status=status)) as provider:
        async with run_gateway(provider.openai_url) as gateway:
            assert [await ask(gateway, TWO) for _ in range(3)] == ["At noon."] * 3
            assert await ask(gateway, TWO[:1], "other") == "At noon."
    sent = [template(request.body["messages"]) for request in provider.requests]
    assert [bool(error) for error in sent] == [True, False, False, False, False]


async def test_setting_spares_the_refusal() -> None:
    with ProviderServer(strict(mistral)) as provider:
        async with run_gateway(provider.openai_url, alternating=True) as gateway:
            await ask(gateway, TWO)
    (request,) = provider.requests
    assert [one["role"] for one in request.body["messages"]] == ["user", "assistant", "user"]


async def test_list_whose_roles_alternate_passes_byte_for_byte() -> None:
    with ProviderServer("At noon.") as provider:
        async with run_gateway(provider.openai_url, alternating=True) as gateway:
            await ask(gateway, TWO[:1])
        async with run_gateway(provider.openai_url) as gateway:
            await ask(gateway, TWO[:1])
    first, second = provider.requests
    assert first.raw == second.raw


async def test_another_refusal_is_the_clients() -> None:
    with ProviderServer(Status(400, "messages: the roles are wrong")) as provider:
        async with run_gateway(provider.openai_url) as gateway:
            with pytest.raises(Exception, match="the roles are wrong"):
                await ask(gateway, TWO)
    assert len(provider.requests) == 1


async def test_compacted_conversation_alternates_and_each_request_extends_the_last() -> None:
    with ProviderServer(strict(mistral, task)) as provider:
        async with run_gateway(provider.openai_url, window=WINDOW) as gateway:
            client = ClientConversation(gateway.model("openai-chat"))
            client.say("Read all berths.")
            for step in range(1, STEPS + 1):
                await client.step([result(step)])
                if step % 4 == 3:
                    client.say("Go on.")
                    client.say("And be quick.")
            compactions = sum(gateway.gateway.metrics.compactions.values())
    accepted = [one.body["messages"] for one in provider.requests if not mistral(one.body["messages"])]
    moved = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(accepted))
    assert len(provider.requests) - len(accepted) == 1
    assert 0 < moved <= compactions  # the last one may have come after the last request
