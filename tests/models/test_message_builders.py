"""Message builders: streams of providers and of compatible servers, with their deviations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anthropic.types import RawContentBlockDeltaEvent, RawContentBlockStartEvent
from google.genai import types as gemini
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from step_conversation import take_step

from holdfast.messages import Json
from holdfast.models import OpenAIChat
from holdfast.models.anthropic import AnthropicMessageBuilder
from holdfast.models.calls import ReplyDelta
from holdfast.models.gemini import GeminiContentBuilder
from holdfast.models.openai import ChatMessageBuilder, _resendable_items
from holdfast.models.provider import ReplyAccumulator
from providers import Garbage, ProviderServer
from providers.protocol import sse

Serve = Callable[..., ProviderServer]


def chat(*chunks: Json) -> tuple[list[Json], list[ReplyDelta]]:
    message = ChatMessageBuilder()
    deltas = [delta for delta in chunks for delta in message.add(ChoiceDelta.model_validate(delta))]
    return message.build(), deltas


def call_delta(name: str = "", arguments: str = "", **more: Any) -> Json:
    return {"tool_calls": [{"index": 0, "function": {"name": name or None, "arguments": arguments}} | more]}


def test_chat_builder_calls_with_equal_index_are_separated_by_id() -> None:
    (message,), deltas = chat(
        call_delta("a", "{}", id="1"), call_delta("b", '{"x"', id="2"), call_delta("", ": 1}", id="2")
    )
    functions = [(call["id"], call["function"]) for call in message["tool_calls"]]
    assert functions == [("1", {"name": "a", "arguments": "{}"}), ("2", {"name": "b", "arguments": '{"x": 1}'})]
    assert [delta.text for delta in deltas] == ["a", "b", ""]


def test_chat_builder_call_without_id_gets_one() -> None:
    (message,), _ = chat(call_delta("a", "{}"), call_delta("", ""))
    (call,) = message["tool_calls"]
    assert call["id"].startswith("call_") and len(call["id"]) <= 40


def test_chat_builder_keeps_extra_fields_of_a_call() -> None:
    """Google's compatible server signs calls there, and refuses them without the signature."""
    signed = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    (message,), _ = chat(call_delta("a", "{}", id="1", **signed))
    assert message["tool_calls"][0]["extra_content"] == signed["extra_content"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_chat_builder_keeps_the_reasoning_field(field: str) -> None:
    (message,), deltas = chat({field: "Hm, "}, {field: "well."}, {"content": "Yes."})
    assert message == {"role": "assistant", "content": "Yes.", field: "Hm, well."}
    assert deltas == [ReplyDelta("reasoning", "Hm, "), ReplyDelta("reasoning", "well."), ReplyDelta("text", "Yes.")]


def test_chat_unreadable_call_is_retryable(serve: Serve) -> None:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": {"role": "assistant"}, "finish_reason": "function_call_filter: MALFORMED"}
    server = serve(Garbage(sse(base | {"choices": [choice]}) + sse("[DONE]")))
    answer, _ = anyio.run(take_step, OpenAIChat("m", base_url=server.openai_url))
    assert (answer.kind, answer.is_retryable) == ("transport", True) and "could not be read" in answer.why


def test_accumulator_calls_override_finish_stop() -> None:
    accumulator = ReplyAccumulator()
    accumulator.finish, (accumulator.messages, _) = "stop", chat(call_delta("a", "{}", id="1"))
    reply: Any = accumulator.step_reply("openai-chat")
    assert (reply.finish, len(reply.calls)) == ("tool_call", 1)


def blocks(*events: Json, cut_off: bool = False) -> tuple[list[Json], list[Any]]:
    builder = AnthropicMessageBuilder()
    for event in events:
        if "content_block" in event:
            start = RawContentBlockStartEvent.model_validate(event | {"type": "content_block_start"})
            list(builder.start_block(start.index, start.content_block))
        else:
            more = RawContentBlockDeltaEvent.model_validate(event | {"type": "content_block_delta"})
            list(builder.add(more.index, more.delta))
    return builder.build(cut_off=cut_off)


def test_anthropic_builder_omits_blocks_that_would_be_refused() -> None:
    """Blank text, unsigned reasoning, trailing reasoning."""
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    unsigned = {"type": "thinking", "thinking": "Oh.", "signature": ""}
    tool = {"type": "tool_use", "id": "t", "name": "look", "input": {"whole": True}}
    given = [signed, unsigned, {"type": "text", "text": "\n\n"}, tool, signed]
    (message,), broken = blocks(*({"index": place, "content_block": block} for place, block in enumerate(given)))
    assert (message["content"], broken) == ([signed, tool], [])


def test_anthropic_builder_call_cut_off_before_its_input() -> None:
    tool = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    assert blocks({"index": 0, "content_block": tool})[0][0]["content"] == [tool]
    messages, (call,) = blocks({"index": 0, "content_block": tool}, cut_off=True)
    assert (messages, call.arguments) == ([], "")


def test_anthropic_builder_keeps_citations() -> None:
    citation = {
        "type": "char_location",
        "cited_text": "low at six",
        "document_index": 0,
        "document_title": "tides",
        "start_char_index": 0,
        "end_char_index": 10,
    }
    (message,), _ = blocks(
        {"index": 0, "content_block": {"type": "text", "text": "", "citations": None}},
        {"index": 0, "delta": {"type": "text_delta", "text": "At six."}},
        {"index": 0, "delta": {"type": "citations_delta", "citation": citation}},
    )
    assert message["content"] == [{"type": "text", "text": "At six.", "citations": [citation]}]


def parts(*given: Json) -> list[Json]:
    builder = GeminiContentBuilder()
    for part in given:
        list(builder.add(gemini.Part.model_validate(part)))
    return builder.build()


def test_gemini_builder_keeps_signatures_in_their_parts() -> None:
    signed = {"text": "", "thoughtSignature": "a+/b"}
    texts = [{"text": "one "}, {"text": "two"}, {"text": "hm", "thought": True}, {"text": " three"}, {"text": ""}]
    assert parts(*texts, {"thoughtSignature": "a+/b"}, {"text": "four"}) == [
        {
            "role": "model",
            "parts": [
                {"text": "one two"},
                {"text": "hm", "thought": True},
                {"text": " three"},
                signed,
                {"text": "four"},
            ],
        }
    ]
    assert parts(signed) == [] == parts({"text": "hm", "thought": True}, {"thoughtSignature": "a+/b"})


def test_gemini_unreadable_call_is_retryable() -> None:
    accumulator = ReplyAccumulator()
    accumulator.finish = "tool_call"
    answer: Any = accumulator.step_reply("gemini")
    assert (answer.kind, answer.is_retryable) == ("transport", True)


def test_responses_trailing_reasoning_is_omitted() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    open_reasoning = {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"text": "hm"}]}
    assert _resendable_items([reasoning, message]) == [reasoning, message]
    assert _resendable_items([open_reasoning, message]) == [open_reasoning, message]
    assert _resendable_items([reasoning, message, reasoning])[-1]["type"] == "message"
    assert _resendable_items([reasoning]) == []
