"""Agent steps with every provider: replies can be sent back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import anyio
import pytest
from step_conversation import PILOTS, TIDES, TOOLS, Conversation, sent_messages, take_step

from holdfast.messages import ToolCall
from holdfast.models import Gemini
from holdfast.models.calls import ReplyDelta, StepCall, StepReply
from holdfast.tokens import Usage
from judge import judge
from providers import Call, ProviderServer, Say

Connect = Callable[..., Any]
Serve = Callable[..., ProviderServer]
BOTH = Say("I look.", calls=(TIDES, PILOTS))


def words(deltas: list[ReplyDelta], kind: str) -> list[str]:
    return [delta.text for delta in deltas if delta.kind == kind and delta.text]


def test_step_text_reply_is_streamed_with_usage_and_model(connect: Connect, serve: Serve) -> None:
    server = serve(Say("four score and seven", pieces=5, input=100, output=7, cached=60))
    model = connect(server)
    reply, deltas = anyio.run(take_step, model)
    assert (reply.text, reply.finish, reply.calls) == ("four score and seven", "stop", ())
    assert (reply.usage, reply.model) == (Usage(40, 7, cache_read=60), model.model)
    assert deltas == [ReplyDelta("text", text) for text in ("four", " sco", "re a", "nd s", "even")]
    assert len(reply.messages) == 1 and judge([*server_side(server), *reply.messages], model.format) == []


def server_side(server: ProviderServer) -> list[Any]:
    """The messages of the newest request, without a system message."""
    return [message for message in sent_messages(server)[-1] if message.get("role") != "system"]


def test_step_sends_system_tools_and_limit_only(connect: Connect, serve: Serve) -> None:
    server = serve()
    anyio.run(take_step, connect(server))
    (request,) = server.requests
    assert (request.prompt, request.system) == ("Read both files.", "You keep the harbour's files.")
    sent = str(request.body)
    assert all(word in sent for word in ("read_file", "list_files", "Reads a file.", "500"))
    assert "tool_choice" not in sent and "temperature" not in sent and "toolConfig" not in sent


def test_step_two_parallel_calls(connect: Connect, serve: Serve) -> None:
    reply, deltas = anyio.run(take_step, connect(serve(BOTH)))
    assert [(call.name, call.arguments) for call in reply.calls] == [(c.name, c.arguments) for c in (TIDES, PILOTS)]
    assert len({call.id for call in reply.calls}) == 2 and all(call.id for call in reply.calls)
    assert (reply.text, reply.finish) == ("I look.", "tool_call")
    assert "".join(words(deltas, "text")) == "I look."
    assert words(deltas, "call") == ["read_file", "read_file"]


def test_step_call_without_arguments_has_an_empty_object(connect: Connect, serve: Serve) -> None:
    reply, _ = anyio.run(take_step, connect(serve(Say(calls=(Call("list_files"),)))))
    assert [call.arguments for call in reply.calls] == [{}]


def test_h6_every_request_extends_the_previous_one(connect: Connect, serve: Serve) -> None:
    """H6: the strict server accepts its own reasoning, signatures, calls and their results."""
    thought = Say("I look.", thinking="Where are they?", redacted=True, calls=(TIDES, PILOTS))
    server = serve([thought, Say("Both are there.", thinking="Good.", redacted=True), BOTH, "Again."])
    replies = anyio.run(Conversation(connect(server)).say, "Read both files.", "And again.")
    assert [reply.text for reply in replies] == ["I look.", "Both are there.", "I look.", "Again."]
    requests = sent_messages(server)
    assert len(requests) == 4
    for before, after in pairwise(requests):
        assert after[: len(before)] == before and len(after) > len(before)
    assert "tides.csv" in str(requests[-1]) and "Where are they?" in str(requests[-1])


def test_step_reasoning_is_streamed_but_not_text(connect: Connect, serve: Serve) -> None:
    reply, deltas = anyio.run(take_step, connect(serve(Say("Well.", thinking="Is it well?"))))
    assert reply.text == "Well." == "".join(words(deltas, "text"))
    assert "".join(words(deltas, "reasoning")) == "Is it well?"


def test_step_gemini_3_gets_signatures_and_ids_back(serve: Serve) -> None:
    server = serve([BOTH, "Done."])
    replies = anyio.run(Conversation(Gemini("gemini-3-test", base_url=server.gemini_url)).say, "Read both files.")
    assert [reply.text for reply in replies] == ["I look.", "Done."]
    assert "thoughtSignature" in str(sent_messages(server)[1]) and "'id': 'fc0" in str(sent_messages(server)[1])


def test_step_gemini_gets_contents_as_they_are_and_bytes_as_base64(serve: Serve) -> None:
    server = serve("A harbour.")
    image: dict[str, Any] = {"inlineData": {"mimeType": "image/png", "data": b"hello"}}
    content = {"role": "user", "parts": [{"text": "What is it?", "videoMetadata": {"fps": 1, "new": True}}, image]}
    call = StepCall([content], tools=TOOLS)
    reply = anyio.run(Gemini("gemini-test", base_url=server.gemini_url).step, call, lambda _: None)
    assert reply.text == "A harbour."
    image["inlineData"]["data"] = "aGVsbG8="
    assert server.requests[0].body["contents"] == [content]


@pytest.mark.parametrize("text", ["Half a w", ""])
def test_g3_step_call_cut_off_keeps_its_text(connect: Connect, serve: Serve, text: str) -> None:
    """G3: Anthropic's format has no incomplete input, so the message omits it; Gemini never sends half a call."""
    server = serve(Say(text, thinking="Hm.", calls=(TIDES, PILOTS), finish="length", cut=True))
    model = connect(server)
    reply, _ = anyio.run(take_step, model)
    assert isinstance(reply, StepReply) and (reply.finish, reply.text) == ("length", text)
    whole, *cut = reply.calls
    assert whole.arguments == TIDES.arguments
    if model.format != "gemini":
        assert [(call.name, call.arguments) for call in cut] == [("read_file", '{"path": "pilots/\\')]
    shown = {"openai-chat": 2, "openai-responses": 2, "anthropic": 1, "gemini": 1}[model.format]
    assert str(reply.messages).count("read_file") == shown


@pytest.mark.parametrize("thinking", ["", "So much to think about, and then no room"])
def test_step_empty_reply_has_no_messages(connect: Connect, serve: Serve, thinking: str) -> None:
    reply, _ = anyio.run(take_step, connect(serve(Say(thinking=thinking, finish="length"))))
    assert (reply.messages, reply.text, reply.calls, reply.finish) == ((), "", (), "length")


@pytest.mark.parametrize("text", ["I cannot help with that.", ""])
def test_step_refusal(connect: Connect, serve: Serve, text: str) -> None:
    server = serve(Say(text, finish="refused"))
    model = connect(server)
    reply, _ = anyio.run(take_step, model)
    assert (reply.finish, reply.text) == ("refused", text)
    assert judge([*server_side(server), *reply.messages], model.format) == []


def test_step_calls_are_tool_calls(connect: Connect, serve: Serve) -> None:
    reply, _ = anyio.run(take_step, connect(serve(Say(calls=(TIDES,)))))
    assert all(type(call) is ToolCall for call in reply.calls)
