"""What can go wrong in a step, through each provider's real SDK: a value, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from fault_table import each_has_its_kind
from step_story import PILOTS, TIDES, TOOLS, Conversation, asked, take

from holdfast.calls import Delta, Failure, StepCall
from holdfast.models import Anthropic, OpenAIResponses
from providers import Call, Cut, Overflow, ProviderServer, RateLimited, Request, Say, Stall, Status, StreamError

Connect = Callable[..., Any]
Serve = Callable[..., ProviderServer]
HALF = Say("I look.", thinking="Where?", calls=(TIDES, PILOTS))
FAULTS: list[tuple[Any, str]] = [
    (Status(500), "transport"),
    (Status(401), "auth"),
    (Status(400, "Unknown field."), "request"),
    (Status(400, "Invalid content type. image_url is only supported by certain models."), "request"),
    (Status(413, body=""), "request"),
    (Overflow(), "overflow"),
    (Cut(after=2), "transport"),
    (Cut(after=10, text=HALF), "transport"),
    (Cut(after=10, text=HALF, clean=True), "transport"),
    (StreamError(529, "Overloaded"), "transport"),
    (StreamError(400, "prompt is too long: 213462 tokens > 200000 maximum", after=10, text=HALF), "overflow"),
]


async def answered(model: Any) -> Any:
    return (await take(model))[0]


def test_each_fault_has_its_kind(connect: Connect, serve: Serve) -> None:
    server = serve()
    model = connect(server)
    each_has_its_kind(FAULTS, server, lambda: answered(model))


def test_the_wait_that_a_provider_asks_for(connect: Connect, serve: Serve) -> None:
    answer, _ = anyio.run(take, connect(serve(RateLimited(retry_after=7.5))))
    assert (answer.kind, answer.retry_after) == ("transport", 7.5)


def test_a_prompt_over_the_window_overflows_and_teaches_it(connect: Connect, serve: Serve) -> None:
    """G3: the server counts tools and results, too, and says how much it can take, where the provider does."""
    calls = tuple(Call("read_file", {"path": f"{number}.csv"}) for number in range(40))
    server = serve([Say(calls=calls), "never"], window=400)
    *_, answer = anyio.run(Conversation(connect(server)).say, "Read forty files.")
    assert isinstance(answer, Failure) and answer.kind == "overflow"
    assert answer.window == (None if server.requests[0].protocol == "openai-responses" else 400)
    assert server.requests[-1].size > 400 > server.requests[0].size


def test_a_step_that_stalls_in_the_middle_of_a_call_can_be_left(connect: Connect, serve: Serve) -> None:
    server = serve(Stall(after=2, text=Say(calls=(TIDES,), pieces=4)))
    model = connect(server)

    async def give_up() -> bool:
        with anyio.move_on_after(0.15) as scope:
            await take(model)
        return scope.cancelled_caught

    assert anyio.run(give_up)
    if server.requests:
        assert server.requests[0].disconnected.wait(1)


def test_cancelling_at_the_first_piece_hangs_up(connect: Connect, serve: Serve) -> None:
    server = serve(Say("one two three four", pieces=4, delay=0.1))
    model = connect(server)

    async def stop() -> None:
        with anyio.CancelScope() as scope:
            await model.step(asked(model.format), lambda _: scope.cancel())

    anyio.run(stop)
    assert server.requests[0].disconnected.wait(2) and server.requests[0].sent == 1


def test_what_the_listener_raises_is_the_listeners(connect: Connect, serve: Serve) -> None:
    model = connect(serve("some text"))

    def listen(_: Delta) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        anyio.run(model.step, asked(model.format), listen)


def test_messages_that_the_provider_refuses_are_a_failure_of_the_request(connect: Connect, serve: Serve) -> None:
    """Results that answer no call, and what no provider has ever heard of."""
    server = serve()
    model = connect(server)
    wrong = {
        "openai-chat": {"role": "tool", "tool_call_id": "x", "content": "y"},
        "openai-responses": {"type": "function_call_output", "call_id": "x", "output": "y"},
        "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]},
        "gemini": {"role": "user", "parts": [{"functionResponse": {"name": "x", "response": {}}}]},
    }[model.format]
    call = asked(model.format)
    for messages in ([*call.messages, wrong], [{**call.messages[0], "tide": "high"}]):
        answer = anyio.run(model.step, StepCall(messages, "", TOOLS), lambda _: None)
        assert isinstance(answer, Failure) and answer.kind == "request", answer


def test_a_model_without_encrypted_reasoning_is_asked_without(serve: Serve) -> None:
    """Its thoughts cannot be found again, so they stay out, and what followed them goes without its id."""

    def old(request: Request) -> Any:
        if "include" in request.body:
            return Status(400, "Encrypted content is not supported with this model.")
        return Say("I look.", thinking="Where?", calls=(TIDES,)) if "call_output" not in str(request.body) else "Done."

    server = serve(old)
    replies = anyio.run(Conversation(OpenAIResponses("gpt-old", base_url=server.openai_url)).say, "Read it.")
    assert [reply.text for reply in replies] == ["I look.", "Done."]
    assert len(server.requests) == 3
    assert [item.get("type") for item in replies[0].messages] == ["message", "function_call"]
    assert not any("id" in item for item in replies[0].messages)


def test_a_server_that_knows_no_cache_is_asked_without(serve: Serve) -> None:
    def old(request: Request) -> Any:
        known = "cache_control" not in request.body
        return "Done." if known else Status(400, "cache_control: Extra inputs are not permitted")

    server = serve(old)
    model = Anthropic("claude-test", base_url=server.anthropic_url)
    for _ in range(2):
        assert anyio.run(take, model)[0].text == "Done."
    assert len(server.requests) == 3


def test_the_cache_is_asked_for_beside_the_messages_and_only_by_steps(serve: Serve) -> None:
    """H6: a mark inside a message would have to move on with every step. A caller's own marks are left alone."""
    server = serve()
    model = Anthropic("claude-test", base_url=server.anthropic_url)
    call = asked("anthropic")
    marked = [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}]
    for messages in (call.messages, marked):
        anyio.run(model.step, StepCall(messages, "", TOOLS), lambda _: None)
    assert [request.body.get("cache_control") for request in server.requests] == [{"type": "ephemeral"}, None]
    assert server.requests[0].body["messages"] == call.messages
