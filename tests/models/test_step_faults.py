"""Faults of a provider in a step, through its real SDK."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest
from failure_kinds import assert_failure_kinds
from step_conversation import PILOTS, TIDES, TOOLS, Conversation, cancel_while_stalled, step_call, take_step

from holdfast.models import Anthropic, OpenAIResponses
from holdfast.models.calls import Failure, ReplyDelta, StepCall
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


async def step_answer(model: Any) -> Any:
    return (await take_step(model))[0]


def test_step_fault_kinds(connect: Connect, serve: Serve) -> None:
    server = serve()
    model = connect(server)
    assert_failure_kinds(FAULTS, server, lambda: step_answer(model))


def test_step_retry_after(connect: Connect, serve: Serve) -> None:
    answer, _ = anyio.run(take_step, connect(serve(RateLimited(retry_after=7.5))))
    assert (answer.kind, answer.retry_after) == ("transport", 7.5)


def test_g3_step_overflow_reports_the_window(connect: Connect, serve: Serve) -> None:
    """G3: the server counts tools and results, too; the window is reported where the provider does."""
    calls = tuple(Call("read_file", {"path": f"{number}.csv"}) for number in range(40))
    server = serve([Say(calls=calls), "never"], window=400)
    *_, answer = anyio.run(Conversation(connect(server)).say, "Read forty files.")
    assert isinstance(answer, Failure) and answer.kind == "overflow"
    assert answer.window == (None if server.requests[0].protocol == "openai-responses" else 400)
    assert server.requests[-1].size > 400 > server.requests[0].size


def test_step_stalled_in_a_call_can_be_cancelled(connect: Connect, serve: Serve) -> None:
    server = serve(Stall(after=2, text=Say(calls=(TIDES,), pieces=4)))
    model = connect(server)

    assert anyio.run(cancel_while_stalled, server, partial(take_step, model))
    assert server.requests[0].disconnected.wait(30)


def test_step_cancelled_at_the_first_delta_disconnects(connect: Connect, serve: Serve) -> None:
    server = serve(Say("one two three four", pieces=4, delay=20))
    model = connect(server)

    async def stop() -> None:
        with anyio.CancelScope() as scope:
            await model.step(step_call(model.format), lambda _: scope.cancel())

    anyio.run(stop)
    assert server.requests[0].disconnected.wait(30) and server.requests[0].sent == 1


def test_step_exception_of_on_delta_is_raised(connect: Connect, serve: Serve) -> None:
    model = connect(serve("some text"))

    def listen(_: ReplyDelta) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        anyio.run(model.step, step_call(model.format), listen)


def test_step_invalid_messages_are_a_request_failure(connect: Connect, serve: Serve) -> None:
    """Results without a call, and unknown fields."""
    server = serve()
    model = connect(server)
    wrong = {
        "openai-chat": {"role": "tool", "tool_call_id": "x", "content": "y"},
        "openai-responses": {"type": "function_call_output", "call_id": "x", "output": "y"},
        "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]},
        "gemini": {"role": "user", "parts": [{"functionResponse": {"name": "x", "response": {}}}]},
    }[model.format]
    call = step_call(model.format)
    for messages in ([*call.messages, wrong], [{**call.messages[0], "tide": "high"}]):
        answer = anyio.run(model.step, StepCall(messages, "", TOOLS), lambda _: None)
        assert isinstance(answer, Failure) and answer.kind == "request", answer


def test_step_refused_encrypted_reasoning_is_dropped(serve: Serve) -> None:
    """Reasoning that cannot be sent back is omitted, and the other items lose their ids."""

    def old_server(request: Request) -> Any:
        if "include" in request.body:
            return Status(400, "Encrypted content is not supported with this model.")
        return Say("I look.", thinking="Where?", calls=(TIDES,)) if "call_output" not in str(request.body) else "Done."

    server = serve(old_server)
    replies = anyio.run(Conversation(OpenAIResponses("gpt-old", base_url=server.openai_url)).say, "Read it.")
    assert [reply.text for reply in replies] == ["I look.", "Done."]
    assert len(server.requests) == 3
    assert [item.get("type") for item in replies[0].messages] == ["message", "function_call"]
    assert not any("id" in item for item in replies[0].messages)


def test_step_refused_cache_control_is_dropped(serve: Serve) -> None:
    def old_server(request: Request) -> Any:
        known = "cache_control" not in request.body
        return "Done." if known else Status(400, "cache_control: Extra inputs are not permitted")

    server = serve(old_server)
    model = Anthropic("claude-test", base_url=server.anthropic_url)
    for _ in range(2):
        assert anyio.run(take_step, model)[0].text == "Done."
    assert len(server.requests) == 3


def test_h6_step_sets_cache_control_outside_the_messages(serve: Serve) -> None:
    """H6: a marker inside a message would move with every step. The caller's own markers are kept."""
    server = serve()
    model = Anthropic("claude-test", base_url=server.anthropic_url)
    call = step_call("anthropic")
    marked = [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}]
    for messages in (call.messages, marked):
        anyio.run(model.step, StepCall(messages, "", TOOLS), lambda _: None)
    assert [request.body.get("cache_control") for request in server.requests] == [{"type": "ephemeral"}, None]
    assert server.requests[0].body["messages"] == call.messages
