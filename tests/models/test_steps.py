"""Every provider's model is an agent's model: it takes steps, and takes its own replies back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import anyio
import pytest
from step_story import PILOTS, TIDES, Conversation, sent, take

from holdfast.calls import Delta, StepReply
from holdfast.messages import ToolCall
from holdfast.models import Gemini
from holdfast.tokens import Usage
from judge import judge
from providers import Call, ProviderServer, Say

Connect = Callable[..., Any]
Serve = Callable[..., ProviderServer]
BOTH = Say("I look.", calls=(TIDES, PILOTS))


def words(heard: list[Delta], kind: str) -> list[str]:
    return [delta.text for delta in heard if delta.kind == kind and delta.text]


def test_a_step_in_words_is_streamed_counted_and_named(connect: Connect, serve: Serve) -> None:
    server = serve(Say("four score and seven", pieces=5, input=100, output=7, cached=60))
    model = connect(server)
    reply, heard = anyio.run(take, model)
    assert (reply.text, reply.finish, reply.calls) == ("four score and seven", "stop", ())
    assert (reply.usage, reply.model) == (Usage(40, 7, cache_read=60), model.model)
    assert heard == [Delta("text", text) for text in ("four", " sco", "re a", "nd s", "even")]
    assert len(reply.messages) == 1 and judge([*server_side(server), *reply.messages], model.format) == []


def server_side(server: ProviderServer) -> list[Any]:
    """What the newest request said, without the system prompt that some send as a message."""
    return [message for message in sent(server)[-1] if message.get("role") != "system"]


def test_system_tools_and_limit_go_out_and_nothing_else_does(connect: Connect, serve: Serve) -> None:
    server = serve()
    anyio.run(take, connect(server))
    (request,) = server.requests
    assert (request.prompt, request.system) == ("Read both files.", "You keep the harbour's files.")
    told = str(request.body)
    assert all(word in told for word in ("read_file", "list_files", "Reads a file.", "500"))
    assert "tool_choice" not in told and "temperature" not in told and "toolConfig" not in told


def test_two_calls_at_once(connect: Connect, serve: Serve) -> None:
    reply, heard = anyio.run(take, connect(serve(BOTH)))
    assert [(call.name, call.arguments) for call in reply.calls] == [(c.name, c.arguments) for c in (TIDES, PILOTS)]
    assert len({call.id for call in reply.calls}) == 2 and all(call.id for call in reply.calls)
    assert (reply.text, reply.finish) == ("I look.", "tool_call")
    assert "".join(words(heard, "text")) == "I look."
    assert words(heard, "call") == ["read_file", "read_file"]


def test_a_call_without_arguments_has_an_empty_object(connect: Connect, serve: Serve) -> None:
    reply, _ = anyio.run(take, connect(serve(Say(calls=(Call("list_files"),)))))
    assert [call.arguments for call in reply.calls] == [{}]


def test_a_conversation_goes_round_and_every_request_extends_the_last(connect: Connect, serve: Serve) -> None:
    """H6: the server is strict, and takes back what it said: thoughts, signatures, calls and their results."""
    thought = Say("I look.", thinking="Where are they?", redacted=True, calls=(TIDES, PILOTS))
    server = serve([thought, Say("Both are there.", thinking="Good.", redacted=True), BOTH, "Again."])
    replies = anyio.run(Conversation(connect(server)).say, "Read both files.", "And again.")
    assert [reply.text for reply in replies] == ["I look.", "Both are there.", "I look.", "Again."]
    requests = sent(server)
    assert len(requests) == 4
    for before, after in pairwise(requests):
        assert after[: len(before)] == before and len(after) > len(before)
    assert "tides.csv" in str(requests[-1]) and "Where are they?" in str(requests[-1])


def test_thoughts_are_heard_but_are_no_text(connect: Connect, serve: Serve) -> None:
    reply, heard = anyio.run(take, connect(serve(Say("Well.", thinking="Is it well?"))))
    assert reply.text == "Well." == "".join(words(heard, "text"))
    assert "".join(words(heard, "reasoning")) == "Is it well?"


def test_gemini_3_wants_its_signatures_and_ids_back(serve: Serve) -> None:
    server = serve([BOTH, "Done."])
    replies = anyio.run(Conversation(Gemini("gemini-3-test", base_url=server.gemini_url)).say, "Read both files.")
    assert [reply.text for reply in replies] == ["I look.", "Done."]
    assert "thoughtSignature" in str(sent(server)[1]) and "'id': 'fc0" in str(sent(server)[1])


@pytest.mark.parametrize("text", ["Half a w", ""])
def test_a_call_that_was_cut_off_keeps_its_text(connect: Connect, serve: Serve, text: str) -> None:
    """G3: Anthropic has no room for half an input, so its message is without it; Gemini never shows half a call."""
    server = serve(Say(text, thinking="Hm.", calls=(TIDES, PILOTS), finish="length", cut=True))
    model = connect(server)
    reply, _ = anyio.run(take, model)
    assert isinstance(reply, StepReply) and (reply.finish, reply.text) == ("length", text)
    whole, *cut = reply.calls
    assert whole.arguments == TIDES.arguments
    if model.format != "gemini":
        assert [(call.name, call.arguments) for call in cut] == [("read_file", '{"path": "pilots/\\')]
    shown = {"openai-chat": 2, "openai-responses": 2, "anthropic": 1, "gemini": 1}[model.format]
    assert str(reply.messages).count("read_file") == shown


@pytest.mark.parametrize("thinking", ["", "So much to think about, and then no room"])
def test_a_reply_that_says_nothing_has_nothing_to_append(connect: Connect, serve: Serve, thinking: str) -> None:
    reply, _ = anyio.run(take, connect(serve(Say(thinking=thinking, finish="length"))))
    assert (reply.messages, reply.text, reply.calls, reply.finish) == ((), "", (), "length")


@pytest.mark.parametrize("text", ["I cannot help with that.", ""])
def test_a_refusal(connect: Connect, serve: Serve, text: str) -> None:
    server = serve(Say(text, finish="refused"))
    model = connect(server)
    reply, _ = anyio.run(take, model)
    assert (reply.finish, reply.text) == ("refused", text)
    assert judge([*server_side(server), *reply.messages], model.format) == []


def test_calls_are_the_librarys_own(connect: Connect, serve: Serve) -> None:
    reply, _ = anyio.run(take, connect(serve(Say(calls=(TIDES,)))))
    assert all(type(call) is ToolCall for call in reply.calls)
