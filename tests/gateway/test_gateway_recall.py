"""Recall inside the gateway: the model looks up archived messages, and the client sees only the answer."""

from __future__ import annotations

import json

import pytest
from gateway_harness import FORMATS, ClientConversation, run_gateway

from providers import Answer, Call, ProviderServer, Request, Say

pytestmark = pytest.mark.anyio
WINDOW = 6_000
CODES = [f"{number * 7919 % 9973:04}" for number in range(400)]
LIST = "Noted: " + " ".join(f"lock L{number:03} opens with {code};" for number, code in enumerate(CODES))
QUESTION = "Which code opens lock L217?"


class LookingModel:
    """Answers the question by a search, if it is offered one; with `forever`, searches again and again."""

    def __init__(self, together: bool = False, forever: bool = False) -> None:
        self.together, self.forever = together, forever
        self.offered = 0

    def __call__(self, request: Request) -> Answer:
        text = json.dumps(request.body)
        offers = "recall_search" in json.dumps(request.body.get("tools"))
        self.offered += offers
        if QUESTION not in text or not offers:
            return "Aye. " + "The tide is noted. " * 60
        if f"L217 opens with {CODES[217]}" in text and not self.forever:
            return f"It is {CODES[217]}."
        calls = [Call("recall_search", {"query": "L217"})]
        if self.together:
            calls.append(Call("read_file", {"path": "locks.txt"}))
        return Say("Looking.", calls=tuple(calls))


async def talk(client: ClientConversation) -> None:
    client.say("We begin.")
    await client.step()
    client.messages[-1] = json.loads(json.dumps(client.messages[-1]).replace("Aye. ", f"{LIST} ", 1))
    for number in range(16):
        client.say(f"Note the tide of day {number}. " + f"It was {number} feet high at the pier. " * 40)
        await client.step()


@pytest.mark.parametrize(("format", "together"), [*((format, False) for format in FORMATS), ("anthropic", True)])
async def test_lookup_is_answered_by_the_gateway(format: str, together: bool) -> None:
    model = LookingModel(together)
    with ProviderServer(model, window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW, recall=True) as running:
            client = ClientConversation(running.model(format))
            await talk(client)
            client.say(QUESTION)
            before = len(server.requests)
            reply = await client.step()
            asked = [json.dumps(request.body) for request in server.requests[before:]]
            assert server.refused == [] and model.offered
            assert reply.text == f"It is {CODES[217]}." and not reply.calls
            assert "L217 opens" not in asked[0] and len(asked) == 2 and running.gateway.metrics.lookups == 1
            [session] = await running.sessions.list()
            events = await running.sessions.events(session.id, text="recall_search")
            assert events == []


async def test_endless_lookups_end_with_a_request_without_the_tools() -> None:
    with ProviderServer(LookingModel(forever=True), window=WINDOW) as server:
        async with run_gateway(server.anthropic_url, window=WINDOW, recall=True) as running:
            client = ClientConversation(running.model("openai-chat"))
            await talk(client)
            client.say(QUESTION)
            reply = await client.step()
            assert reply.text.startswith("Aye.") and running.gateway.metrics.lookups == 5
