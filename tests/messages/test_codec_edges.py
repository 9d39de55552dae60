"""What a format cannot hold, and what it leaves out: the model still learns what was there."""

from __future__ import annotations

from typing import Any

import pytest
from codec_facts import Wire, bare, read
from codec_kinds import ASK, LINK, PNG
from codec_kinds_blocks import CALL, GO, content

from holdfast.messages import (
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    decode_all,
    encode_all,
    length_compacted,
)
from judge import judge

PICTURE = Media("image", "image/png", PNG)
RESULT = ToolResult("c1", (Text("ok"),), False)


def called(*parts: Part, answer: ToolResult | None = RESULT) -> list[Message]:
    """A question, a call, its answer."""
    asked = [Message("user", (Text("go"),)), Message("assistant", (*parts, ToolCall("c1", "read", {"a": 1})))]
    return [*asked, Message("tool", (answer,))] if answer else asked


# -- media and text that stands in for it ---------------------------------------------------------------


def test_openai_chat_drops_a_picture_from_a_result_that_has_words() -> None:
    answer = ToolResult("c1", (Text("saved"), PICTURE))
    out = encode_all(called(answer=answer), "openai-chat")
    assert out[-1] == {"role": "tool", "tool_call_id": "c1", "content": "saved"}
    assert judge(out, "openai-chat") == []


def test_openai_chat_says_that_there_was_a_picture_where_a_result_has_no_words() -> None:
    answer = ToolResult("c1", (Media("image", None, None, LINK),))
    out = encode_all(called(answer=answer), "openai-chat")
    assert out[-1]["content"] == f"[image: {LINK}]"


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic"])
def test_a_picture_that_the_model_made_is_named_where_only_users_send_pictures(format: str) -> None:
    said = Message("assistant", (Text("here"), Media("image", "image/png", PNG, name="cat.png")))
    out = encode_all([Message("user", (Text("draw"),)), said], format)
    assert "[image: cat.png]" in str(out[1]["content"])
    assert judge(out, format) == []


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic"])
def test_a_film_is_named_where_a_format_has_none(format: str) -> None:
    out = encode_all([Message("user", (Media("video", "video/mp4", "AAAA"),))], format)
    assert out == [{"role": "user", "content": "[video: video/mp4]"}]


def test_anthropic_takes_only_text_in_a_failed_result() -> None:
    out = encode_all(called(answer=ToolResult("c1", (Text("no"), PICTURE), True)), "anthropic")
    assert out[-1]["content"] == [{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]
    assert judge(out, "anthropic") == []


def test_anthropic_gets_a_word_for_a_failure_without_one() -> None:
    out = encode_all(called(answer=ToolResult("c1", (), True)), "anthropic")
    assert out[-1]["content"][0]["content"] == "[tool error]"
    assert judge(out, "anthropic") == []
    assert read(out, "anthropic")[-1].results == (ToolResult("c1", (), True),)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"type": "compaction", "content": "So far."}, "So far."),
        ({"type": "document", "source": {"type": "text", "data": "hello"}}, "hello"),
        ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}]}}, "a"),
        ({"type": "search_result", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
    ],
    ids=["compaction", "text-document", "document-of-blocks", "search-result"],
)
def test_text_inside_what_only_anthropic_has_is_said_elsewhere(block: dict[str, Any], said: str) -> None:
    messages = read([{"role": "user", "content": [block]}], "anthropic")
    assert encode_all(messages, "openai-chat") == [{"role": "user", "content": said}]


# -- ids and names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "longest"), [("openai-chat", 40), ("openai-responses", 64), ("anthropic", 64)], ids=str
)
def test_ids_that_are_too_long_are_shortened_and_stay_apart(format: str, longest: int) -> None:
    ids = ["x" * 100 + "a", "x" * 100 + "b"]
    calls = Message("assistant", tuple(ToolCall(name, "read", {}) for name in ids))
    results = Message("tool", tuple(ToolResult(name, (Text("ok"),)) for name in ids))
    out = encode_all([Message("user", (Text("go"),)), calls, results], format)
    assert judge(out, format) == []
    again = [call.id for message in read(out, format) for call in message.calls]
    assert len(set(again)) == 2
    assert max(map(len, again)) == longest
    assert again == [result.call_id for message in read(out, format) for result in message.results]


def test_ids_that_anthropic_refuses_are_spelled_otherwise_and_stay_apart() -> None:
    ids = ["a.1", "a:1", "a_1", ""]
    messages = [Message("assistant", (ToolCall(name, "read", {}),)) for name in ids]
    again = [payload["content"][0]["id"] for payload in encode_all(messages, "anthropic")]
    assert len(set(again)) == 4
    assert again[2] == "a_1"
    assert judge([ASK, *encode_all(messages, "anthropic")], "anthropic") == []


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic"])
def test_an_id_that_came_in_a_format_goes_back_out_in_it_however_long(format: str) -> None:
    """Some servers write a signature into it. A changed or an interrupted result must still find its call."""
    long = "call_" + "x" * 100
    parts: tuple[Part, ...] = (ToolResult(long, (Text("cleared"),)),)
    call = Message("assistant", (ToolCall(long, "a", {}),), format)
    for answer in (Message("tool", parts, format), Message("tool", parts)):
        out = read(encode_all([Message("user", (Text("go"),)), call, answer], format), format)
        assert out[1].calls[0].id == out[2].results[0].call_id == long


def test_gemini_learns_a_results_name_from_a_call_that_goes_out_as_it_came() -> None:
    messages = [*read([GO, CALL], "gemini"), Message("tool", (ToolResult("f1", (Text("ok"),)),))]
    out = encode_all(messages, "gemini")
    assert out[-1]["parts"][0]["functionResponse"] == {"id": "f1", "name": "read", "response": {"output": "ok"}}


def test_responses_learns_a_results_kind_from_its_call() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    chat: Wire = [
        ASK,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "k"},
    ]
    out = encode_all(read(chat, "openai-chat"), "openai-responses")
    assert [item.get("type") for item in out] == [None, "custom_tool_call", "custom_tool_call_output"]
    assert judge(out, "openai-responses") == []


def test_a_nameless_answer_belongs_to_the_call_just_made_not_to_one_left_behind() -> None:
    call = content("model", {"functionCall": {"name": "read", "args": {}}})
    answer = content("user", {"functionResponse": {"name": "read", "response": {"output": "ok"}}})
    messages = read([GO, call, GO, call, answer], "gemini")
    assert messages[4].results[0].call_id == messages[3].calls[0].id != messages[1].calls[0].id


def test_nameless_calls_in_contents_of_their_own_are_answered_in_order() -> None:
    calls = [content("model", {"functionCall": {"name": "read", "args": {"n": n}}}) for n in range(2)]
    answer = {"functionResponse": {"name": "read", "response": {"output": "ok"}}}
    messages = read([GO, *calls, content("user", answer, answer)], "gemini")
    assert [result.call_id for result in messages[3].results] == [messages[1].calls[0].id, messages[2].calls[0].id]


def test_the_first_function_calls_are_answered_by_name() -> None:
    call: dict[str, Any] = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
    answer = {"role": "function", "name": "read", "content": "ok"}
    messages = read([ASK, call, ASK, call, answer], "openai-chat")
    assert messages[4].results[0].call_id == messages[3].calls[0].id != messages[1].calls[0].id
    assert judge(encode_all(bare(messages[2:]), "anthropic"), "anthropic") == []


# -- results of one batch ------------------------------------------------------------------------------


def batch(format: str) -> list[Message]:
    """Two calls, and a message with the answer to each."""
    calls = Message("assistant", (ToolCall("c1", "a", {}), ToolCall("c2", "b", {})))
    answers = [Message("tool", (ToolResult(f"c{n}", (Text("ok"),), name=name),)) for n, name in ((1, "a"), (2, "b"))]
    payloads = [encode_all([answer], format)[0] for answer in answers]
    return [Message("user", (Text("go"),)), calls, *read(payloads, format)]


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
@pytest.mark.parametrize("foreign", [[2], [3], [2, 3]], ids=str)
def test_a_result_from_elsewhere_joins_the_others_of_its_batch(format: str, foreign: list[int]) -> None:
    """Such as the answer to a call that was interrupted."""
    messages = batch(format)
    for place in foreign:
        messages[place] = Message("tool", messages[place].parts)
    out = encode_all(messages, format)
    assert len(out) == 3
    assert [result.call_id for result in read(out, format)[2].results] == ["c1", "c2"]
    assert judge(out, format) == []


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
@pytest.mark.parametrize("changed", [[], [2], [3], [2, 3]], ids=str)
def test_results_that_came_apart_go_out_apart_changed_or_not(format: str, changed: list[int]) -> None:
    """A cleared result stays where it was: what came in as two messages is two for those who count them."""
    messages = batch(format)
    for place in changed:
        messages[place] = messages[place].with_parts(messages[place].parts)
    assert encode_all(messages, format) == encode_all(batch(format), format)
    assert len(encode_all(messages, format)) == 4


def test_results_lead_the_message_they_join() -> None:
    first = Message("tool", (ToolResult("c1", (Text("1"),)), Text("and then?")))
    second = Message("tool", (ToolResult("c2", (Text("2"),)),))
    out = encode_all([first, second], "anthropic")
    assert [block["type"] for block in out[0]["content"]] == ["tool_result", "tool_result", "text"]


def test_results_do_not_join_across_a_message_that_shows_nothing() -> None:
    """H6: what stood before the model's turn may not change, even if nothing of that turn can be shown."""
    silent = decode_all([{"type": "reasoning", "summary": [], "encrypted_content": "x"}])[0]
    results = [Message("tool", (ToolResult(f"c{n}", (Text("ok"),)),)) for n in (1, 2)]
    assert len(encode_all([results[0], *silent, results[1]], "gemini")) == 2


@pytest.mark.parametrize("inside", ["1", '"\\ud83d"', '"\ud83d"'])
@pytest.mark.parametrize("depth", [201, 900, 5_000, 100_000])
def test_arguments_that_are_nested_too_deeply_are_text(depth: int, inside: str) -> None:
    """On every version of Python, though not every one can read as deep."""
    deep = '{"a": ' * depth + inside + "}" * depth
    call = ToolCall("c1", "read", deep)
    assert call.json == deep
    assert call.object == {"__arguments__": deep}
    assert length_compacted(deep) == len(deep)


def test_wide_arguments_are_not_deep() -> None:
    wide = ToolCall("c1", "read", '{"a": [' + ", ".join(["{}"] * 1_000) + "]}")
    assert wide.object == {"a": [{}] * 1_000}
    assert length_compacted(wide.written) == len(wide.json)
