"""Content that a format does not support is replaced by a description for the model."""

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
    compact_json_length,
    decode_all,
    encode_all,
)
from judge import judge

PICTURE = Media("image", "image/png", PNG)
RESULT = ToolResult("c1", (Text("ok"),), False)


def called(*parts: Part, answer: ToolResult | None = RESULT) -> list[Message]:
    """A user message, a call, its result."""
    asked = [Message("user", (Text("go"),)), Message("assistant", (*parts, ToolCall("c1", "read", {"a": 1})))]
    return [*asked, Message("tool", (answer,))] if answer else asked


# -- media and their placeholders ---------------------------------------------------------------------


def test_openai_chat_result_with_text_drops_image() -> None:
    answer = ToolResult("c1", (Text("saved"), PICTURE))
    out = encode_all(called(answer=answer), "openai-chat")
    assert out[-1] == {"role": "tool", "tool_call_id": "c1", "content": "saved"}
    assert judge(out, "openai-chat") == []


def test_openai_chat_result_without_text_describes_image() -> None:
    answer = ToolResult("c1", (Media("image", None, None, LINK),))
    out = encode_all(called(answer=answer), "openai-chat")
    assert out[-1]["content"] == f"[image: {LINK}]"


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic"])
def test_assistant_image_is_described_in_formats_that_reject_it(format: str) -> None:
    drawn = Message("assistant", (Text("here"), Media("image", "image/png", PNG, name="cat.png")))
    out = encode_all([Message("user", (Text("draw"),)), drawn], format)
    assert "[image: cat.png]" in str(out[1]["content"])
    assert judge(out, format) == []


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic"])
def test_video_is_described_in_formats_without_video(format: str) -> None:
    out = encode_all([Message("user", (Media("video", "video/mp4", "AAAA"),))], format)
    assert out == [{"role": "user", "content": "[video: video/mp4]"}]


def test_anthropic_failed_result_holds_only_text() -> None:
    out = encode_all(called(answer=ToolResult("c1", (Text("no"), PICTURE), True)), "anthropic")
    assert out[-1]["content"] == [{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]
    assert judge(out, "anthropic") == []


def test_anthropic_failed_result_without_content_gets_text() -> None:
    out = encode_all(called(answer=ToolResult("c1", (), True)), "anthropic")
    assert out[-1]["content"][0]["content"] == "[tool error]"
    assert judge(out, "anthropic") == []
    assert read(out, "anthropic")[-1].results == (ToolResult("c1", (), True),)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "compaction", "content": "So far."}, "So far."),
        ({"type": "document", "source": {"type": "text", "data": "hello"}}, "hello"),
        ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}]}}, "a"),
        ({"type": "search_result", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
    ],
    ids=["compaction", "text-document", "document-of-blocks", "search-result"],
)
def test_text_of_anthropic_blocks_is_kept_in_other_formats(block: dict[str, Any], text: str) -> None:
    messages = read([{"role": "user", "content": [block]}], "anthropic")
    assert encode_all(messages, "openai-chat") == [{"role": "user", "content": text}]


# -- ids and names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "longest"), [("openai-chat", 40), ("openai-responses", 64), ("anthropic", 64)], ids=str
)
def test_long_call_ids_are_shortened_and_stay_unique(format: str, longest: int) -> None:
    ids = ["x" * 100 + "a", "x" * 100 + "b"]
    calls = Message("assistant", tuple(ToolCall(name, "read", {}) for name in ids))
    results = Message("tool", tuple(ToolResult(name, (Text("ok"),)) for name in ids))
    out = encode_all([Message("user", (Text("go"),)), calls, results], format)
    assert judge(out, format) == []
    again = [call.id for message in read(out, format) for call in message.calls]
    assert len(set(again)) == 2
    assert max(map(len, again)) == longest
    assert again == [result.call_id for message in read(out, format) for result in message.results]


def test_anthropic_illegal_call_ids_are_replaced_and_stay_unique() -> None:
    ids = ["a.1", "a:1", "a_1", ""]
    messages = [Message("assistant", (ToolCall(name, "read", {}),)) for name in ids]
    again = [payload["content"][0]["id"] for payload in encode_all(messages, "anthropic")]
    assert len(set(again)) == 4
    assert again[2] == "a_1"
    assert judge([ASK, *encode_all(messages, "anthropic")], "anthropic") == []


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic"])
def test_call_id_of_same_format_is_kept_whatever_its_length(format: str) -> None:
    """Some servers encode a signature in the id. A changed or interrupted result must still match its call."""
    long = "call_" + "x" * 100
    parts: tuple[Part, ...] = (ToolResult(long, (Text("cleared"),)),)
    call = Message("assistant", (ToolCall(long, "a", {}),), format)
    for answer in (Message("tool", parts, format), Message("tool", parts)):
        out = read(encode_all([Message("user", (Text("go"),)), call, answer], format), format)
        assert out[1].calls[0].id == out[2].results[0].call_id == long


def test_gemini_result_takes_name_from_unchanged_call() -> None:
    messages = [*read([GO, CALL], "gemini"), Message("tool", (ToolResult("f1", (Text("ok"),)),))]
    out = encode_all(messages, "gemini")
    assert out[-1]["parts"][0]["functionResponse"] == {"id": "f1", "name": "read", "response": {"output": "ok"}}


def test_responses_result_takes_kind_from_its_call() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    chat: Wire = [
        ASK,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "k"},
    ]
    out = encode_all(read(chat, "openai-chat"), "openai-responses")
    assert [item.get("type") for item in out] == [None, "custom_tool_call", "custom_tool_call_output"]
    assert judge(out, "openai-responses") == []


def test_result_without_id_answers_newest_call_not_abandoned_one() -> None:
    call = content("model", {"functionCall": {"name": "read", "args": {}}})
    answer = content("user", {"functionResponse": {"name": "read", "response": {"output": "ok"}}})
    messages = read([GO, call, GO, call, answer], "gemini")
    assert messages[4].results[0].call_id == messages[3].calls[0].id != messages[1].calls[0].id


def test_calls_without_ids_in_separate_messages_are_answered_in_order() -> None:
    calls = [content("model", {"functionCall": {"name": "read", "args": {"n": n}}}) for n in range(2)]
    answer = {"functionResponse": {"name": "read", "response": {"output": "ok"}}}
    messages = read([GO, *calls, content("user", answer, answer)], "gemini")
    assert [result.call_id for result in messages[3].results] == [messages[1].calls[0].id, messages[2].calls[0].id]


def test_legacy_function_calls_are_answered_by_name() -> None:
    call: dict[str, Any] = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
    answer = {"role": "function", "name": "read", "content": "ok"}
    messages = read([ASK, call, ASK, call, answer], "openai-chat")
    assert messages[4].results[0].call_id == messages[3].calls[0].id != messages[1].calls[0].id
    assert judge(encode_all(bare(messages[2:]), "anthropic"), "anthropic") == []


# -- results of one batch ------------------------------------------------------------------------------


def batch(format: str) -> list[Message]:
    """Two calls, and a message with the result of each."""
    calls = Message("assistant", (ToolCall("c1", "a", {}), ToolCall("c2", "b", {})))
    answers = [Message("tool", (ToolResult(f"c{n}", (Text("ok"),), name=name),)) for n, name in ((1, "a"), (2, "b"))]
    payloads = [encode_all([answer], format)[0] for answer in answers]
    return [Message("user", (Text("go"),)), calls, *read(payloads, format)]


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
@pytest.mark.parametrize("foreign", [[2], [3], [2, 3]], ids=str)
def test_foreign_result_joins_its_batch(format: str, foreign: list[int]) -> None:
    """For example the result of an interrupted call."""
    messages = batch(format)
    for place in foreign:
        messages[place] = Message("tool", messages[place].parts)
    out = encode_all(messages, format)
    assert len(out) == 3
    assert [result.call_id for result in read(out, format)[2].results] == ["c1", "c2"]
    assert judge(out, format) == []


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
@pytest.mark.parametrize("changed", [[], [2], [3], [2, 3]], ids=str)
def test_results_in_separate_messages_stay_separate(format: str, changed: list[int]) -> None:
    """A cleared result stays where it was: two input messages stay two, so that counts do not change."""
    messages = batch(format)
    for place in changed:
        messages[place] = messages[place].with_parts(messages[place].parts)
    assert encode_all(messages, format) == encode_all(batch(format), format)
    assert len(encode_all(messages, format)) == 4


def test_joined_results_come_first_in_message() -> None:
    first = Message("tool", (ToolResult("c1", (Text("1"),)), Text("and then?")))
    second = Message("tool", (ToolResult("c2", (Text("2"),)),))
    out = encode_all([first, second], "anthropic")
    assert [block["type"] for block in out[0]["content"]] == ["tool_result", "tool_result", "text"]


def test_results_do_not_join_across_empty_message() -> None:
    """H6: messages before the model's turn may not change, even if nothing of that turn can be shown."""
    silent = decode_all([{"type": "reasoning", "summary": [], "encrypted_content": "x"}])[0]
    results = [Message("tool", (ToolResult(f"c{n}", (Text("ok"),)),)) for n in (1, 2)]
    assert len(encode_all([results[0], *silent, results[1]], "gemini")) == 2


@pytest.mark.parametrize("inside", ["1", '"\\ud83d"', '"\ud83d"'])
@pytest.mark.parametrize("depth", [201, 900, 5_000, 100_000])
def test_arguments_nested_too_deeply_stay_text(depth: int, inside: str) -> None:
    """On every version of Python, whatever its own recursion limit."""
    deep = '{"a": ' * depth + inside + "}" * depth
    call = ToolCall("c1", "read", deep)
    assert call.arguments_json == deep
    assert call.arguments_dict == {"__arguments__": deep}
    assert compact_json_length(deep) == len(deep)


def test_arguments_wide_but_shallow_are_parsed() -> None:
    wide = ToolCall("c1", "read", '{"a": [' + ", ".join(["{}"] * 1_000) + "]}")
    assert wide.arguments_dict == {"a": [{}] * 1_000}
    assert compact_json_length(wide.arguments_text) == len(wide.arguments_json)
