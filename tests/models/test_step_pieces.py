"""What servers do that are not quite the provider they speak like, and what providers do now and then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anthropic.types import RawContentBlockDeltaEvent, RawContentBlockStartEvent
from google.genai import types as gemini
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from step_story import take

from holdfast.calls import Delta
from holdfast.messages import Json
from holdfast.models import OpenAIChat
from holdfast.models.anthropic_blocks import Blocks
from holdfast.models.draft import Draft
from holdfast.models.gemini_parts import Parts
from holdfast.models.openai_chat_message import ChatMessage
from holdfast.models.openai_responses import _sendable
from providers import Garbage, ProviderServer
from providers.dialect import sse

Serve = Callable[..., ProviderServer]


def chat(*deltas: Json) -> tuple[list[Json], list[Delta]]:
    message = ChatMessage()
    heard = [piece for delta in deltas for piece in message.take(ChoiceDelta.model_validate(delta))]
    return message.whole(), heard


def called(name: str = "", arguments: str = "", **more: Any) -> Json:
    return {"tool_calls": [{"index": 0, "function": {"name": name or None, "arguments": arguments}} | more]}


def test_calls_that_all_have_the_first_index_are_told_apart_by_their_ids() -> None:
    (message,), heard = chat(called("a", "{}", id="1"), called("b", '{"x"', id="2"), called("", ": 1}", id="2"))
    functions = [(call["id"], call["function"]) for call in message["tool_calls"]]
    assert functions == [("1", {"name": "a", "arguments": "{}"}), ("2", {"name": "b", "arguments": '{"x": 1}'})]
    assert [delta.text for delta in heard] == ["a", "b", ""]


def test_a_call_without_an_id_gets_one() -> None:
    (message,), _ = chat(called("a", "{}"), called("", ""))
    (call,) = message["tool_calls"]
    assert call["id"].startswith("call_") and len(call["id"]) <= 40


def test_what_a_server_adds_to_a_call_goes_back_to_it() -> None:
    """Google signs the calls of its OpenAI-compatible server there, and refuses them without."""
    signed = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    (message,), _ = chat(called("a", "{}", id="1", **signed))
    assert message["tool_calls"][0]["extra_content"] == signed["extra_content"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_go_back_under_the_name_they_came_with(field: str) -> None:
    (message,), heard = chat({field: "Hm, "}, {field: "well."}, {"content": "Yes."})
    assert message == {"role": "assistant", "content": "Yes.", field: "Hm, well."}
    assert heard == [Delta("reasoning", "Hm, "), Delta("reasoning", "well."), Delta("text", "Yes.")]


def test_a_call_that_google_could_not_read_itself_may_pass(serve: Serve) -> None:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": {"role": "assistant"}, "finish_reason": "function_call_filter: MALFORMED"}
    server = serve(Garbage(sse(base | {"choices": [choice]}) + sse("[DONE]")))
    answer, _ = anyio.run(take, OpenAIChat("m", base_url=server.openai_url))
    assert (answer.kind, answer.may_pass) == ("transport", True) and "could not be read" in answer.why


def test_calls_count_although_a_server_says_that_it_just_stopped() -> None:
    draft = Draft()
    draft.finish, (draft.messages, _) = "stop", chat(called("a", "{}", id="1"))
    reply: Any = draft.step("openai-chat")
    assert (reply.finish, len(reply.calls)) == ("tool_call", 1)


def blocks(*events: Json, cut: bool = False) -> tuple[list[Json], list[Any]]:
    made = Blocks()
    for event in events:
        if "content_block" in event:
            start = RawContentBlockStartEvent.model_validate(event | {"type": "content_block_start"})
            list(made.begin(start.index, start.content_block))
        else:
            more = RawContentBlockDeltaEvent.model_validate(event | {"type": "content_block_delta"})
            list(made.take(more.index, more.delta))
    return made.whole(cut=cut)


def test_blocks_that_anthropic_would_not_take_back_are_left_out() -> None:
    """A blank text, a thought without a signature, a thought that led to nothing."""
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    unsigned = {"type": "thinking", "thinking": "Oh.", "signature": ""}
    tool = {"type": "tool_use", "id": "t", "name": "look", "input": {"whole": True}}
    given = [signed, unsigned, {"type": "text", "text": "\n\n"}, tool, signed]
    (message,), broken = blocks(*({"index": place, "content_block": block} for place, block in enumerate(given)))
    assert (message["content"], broken) == ([signed, tool], [])


def test_a_call_that_was_cut_off_before_its_first_letter() -> None:
    tool = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    assert blocks({"index": 0, "content_block": tool})[0][0]["content"] == [tool]
    messages, (call,) = blocks({"index": 0, "content_block": tool}, cut=True)
    assert (messages, call.arguments) == ([], "")


def test_citations_stay_with_their_text() -> None:
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
    made = Parts()
    for part in given:
        list(made.take(gemini.Part.model_validate(part)))
    return made.whole()


def test_geminis_signatures_stay_in_their_own_parts() -> None:
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


def test_a_call_that_gemini_could_not_read_itself_may_pass() -> None:
    draft = Draft()
    draft.finish = "tool_call"
    answer: Any = draft.step("gemini")
    assert (answer.kind, answer.may_pass) == ("transport", True)


def test_reasoning_that_led_to_nothing_stays_out() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    open_thought = {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"text": "hm"}]}
    assert _sendable([thought, said]) == [thought, said]
    assert _sendable([open_thought, said]) == [open_thought, said]
    assert _sendable([thought, said, thought])[-1]["type"] == "message"
    assert _sendable([thought]) == []
