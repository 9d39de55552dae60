"""Messages of the AI SDK: neutral parts, both versions, and the size that the layer document gives them."""

from __future__ import annotations

import json
from math import ceil
from typing import Any

import pytest
from codec_facts import bare, read
from codec_kinds import ASK, LINK, PNG
from codec_kinds_ai_sdk import (
    AI_SDK,
    REQUEST,
    RESPONSE,
    TEXT,
    answer,
    answered,
    answered_4,
    call,
    message,
    output,
    part,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import check, compact, repair
from holdfast.messages import (
    Links,
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    decode_all,
    encode_all,
)
from holdfast.messages.links import interrupted_result
from holdfast.tokens import CharsPerPiece, Tokenizer

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("payload", "parts"),
    [
        (message("assistant", call()), [ToolCall("c1", "read", {"a": 1})]),
        (message("assistant", call(args={"a": 1})), [ToolCall("c1", "read", {"a": 1}, "args")]),
        (message("assistant", call(input=[1, 2])), [ToolCall("c1", "read", {"__arguments__": "[1,2]"})]),
        (message("tool", answer(**output("text", "ok"))), [ToolResult("c1", (Text("ok"),), name="read")]),
        (message("tool", answer(**output("json", {"a": 1}))), [ToolResult("c1", (Text('{"a":1}'),), name="read")]),
        (message("tool", answer(**output("json", "a"))), [ToolResult("c1", (Text('"a"'),), name="read")]),
        (message("tool", answer(**output("error-text", "no"))), [ToolResult("c1", (Text("no"),), True, "read")]),
        (
            message("tool", answer(**output("execution-denied"))),
            [ToolResult("c1", (Text("Tool execution denied."),), True, "read")],
        ),
        (message("tool", answer(result={"a": 1})), [ToolResult("c1", (Text('{"a":1}'),), False, "read", "args")]),
        (message("tool", answer(result="no", isError=True)), [ToolResult("c1", (Text("no"),), True, "read", "args")]),
        (
            message("tool", answer(result="ok", experimental_content=[part("image", data=PNG, mimeType="image/png")])),
            [ToolResult("c1", (Media("image", "image/png", PNG),), False, "read", "args")],
        ),
        (message("user", part("image", image=LINK)), [Media("image", url=LINK)]),
        (message("user", part("file", data="SUQz", mediaType="audio/mpeg")), [Media("audio", "audio/mpeg", "SUQz")]),
        (
            message("assistant", part("reasoning", text="hm", providerOptions={"openai": {"itemId": "rs_1"}})),
            [Reasoning("hm", None, '{"openai":{"itemId":"rs_1"}}', "rs_1", "ai-sdk")],
        ),
        (message("tool", RESPONSE), [Opaque("tool-approval-response", RESPONSE, "ai-sdk")]),
    ],
)
def test_part_is_read_as_its_neutral_part(payload: Json, parts: list[Any]) -> None:
    assert list(read([payload], "ai-sdk")[0].parts) == parts


@pytest.mark.parametrize(
    ("payloads", "result"),
    [
        (answered(**output("text", "ok"))[:2], output("error-text", "(no result: the call was interrupted)")),
        (answered_4(result="ok")[:2], {"result": "(no result: the call was interrupted)", "isError": True}),
    ],
    ids=["version 5", "version 4"],
)
def test_interrupted_call_is_answered_in_its_own_version(payloads: list[Json], result: Json) -> None:
    assert repair([*payloads, ASK], "ai-sdk") == [*payloads, message("tool", answer(**result)), ASK]


@pytest.mark.parametrize("payloads", [answered(**output("text", "ok")), answered_4(result="ok")], ids=["5", "4"])
def test_result_without_a_version_takes_that_of_its_call(payloads: list[Json]) -> None:
    """As the answer of a tool that Holdfast runs."""
    messages = read(payloads, "ai-sdk")
    plain = Message("tool", (ToolResult("c1", (Text("ok"),)),))
    assert encode_all([*messages[:2], plain], "ai-sdk") == payloads


def test_calls_and_interrupted_results_of_version_4_are_calls_everywhere() -> None:
    messages = bare(read(answered_4(result="ok"), "ai-sdk")[:2])
    closed = [*messages, Message("tool", (interrupted_result(messages[1].calls[0]),))]
    for format in ("openai-chat", "openai-responses", "anthropic", "gemini"):
        assert check(encode_all(closed, format), format, ready=True) == []


def test_system_texts_are_messages_of_their_own() -> None:
    given = Message("system", (Text("be brief"), Text("be kind")))
    shown = encode_all([given], "ai-sdk")
    assert shown == [{"role": "system", "content": "be brief"}, {"role": "system", "content": "be kind"}]


def test_approval_that_is_rebuilt_stays_in_a_tool_message() -> None:
    messages = read(AI_SDK["approval"], "ai-sdk")
    rebuilt = Message("user", messages[2].parts[:1])
    assert encode_all([rebuilt], "ai-sdk") == [message("tool", RESPONSE)]


def test_call_that_is_named_twice_is_one_call() -> None:
    (decoded,) = read([message("assistant", TEXT, call(), toolCalls=[call(), call("c2")])], "ai-sdk")
    assert [made.id for made in decoded.calls] == ["c1", "c2"]


def test_waiting_approval_is_no_problem_and_is_kept() -> None:
    messages = [ASK, message("assistant", call(), REQUEST), message("tool", RESPONSE)]
    assert check(messages, "ai-sdk") == []
    assert compact(messages, budget=100_000).messages == messages


@pytest.mark.parametrize(
    ("messages", "units"),
    [
        pytest.param([ASK, message("assistant", call()), message("tool", RESPONSE), message("tool", answer())], [0, 1]),
        pytest.param([ASK, *AI_SDK["approval"][1:], ASK], [0, 1, 3]),
        pytest.param(
            [
                ASK,
                message("assistant", call(providerExecuted=True)),
                message("assistant", TEXT),
                message("assistant", answer(**output("json", []))),
                message("assistant", TEXT),
            ],
            [0, 1, 4],
        ),
        pytest.param(
            [
                ASK,
                message("assistant", call(providerExecuted=True), REQUEST),
                message("tool", RESPONSE),
                message("assistant", answer(**output("json", []))),
                ASK,
            ],
            [0, 1, 4],
        ),
    ],
    ids=["an approval", "an approval with its result", "a provider's late result", "a provider's tool approved"],
)
def test_what_belongs_together_is_one_unit(messages: list[Json], units: list[int]) -> None:
    assert Links(read(messages, "ai-sdk")).starts == units


# -- size ----------------------------------------------------------------------------------------------


def size_by_document(messages: list[Json]) -> int:
    """The layer document's `estimateMessagesTokens`; a result that is text counts as text."""

    def tokens(value: Any) -> int:
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return ceil(len(text) / 4)

    total = 2 * len(messages)
    for each in messages:
        content = [{"type": "text", "text": each["content"]}] if isinstance(each["content"], str) else each["content"]
        for piece in content:
            match piece["type"]:
                case "text":
                    total += tokens(piece["text"])
                case "tool-call":
                    total += tokens(piece["toolName"]) + tokens(piece["args"])
                case "tool-result":
                    total += tokens(piece["result"])
        for made in each.get("toolCalls", ()):
            total += tokens(made["toolName"]) + tokens(made["args"])
    return total


def as_one_list(names: list[str], results: list[Any], words: str) -> list[Json]:
    ids = [f"c{n}" for n in range(len(names))]
    made = [{"toolCallId": id, "toolName": name, "args": {"path": words}} for id, name in zip(ids, names, strict=True)]
    parts = [{"type": "tool-call", **one} for one in made[::2]]
    return [
        {"role": "user", "content": words},
        {"role": "assistant", "content": [{"type": "text", "text": words}, *parts], "toolCalls": made[1::2]},
        message("tool", *(answer(id, result=result) for id, result in zip(ids, results, strict=True))),
    ]


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]))


@given(data=st.data(), text=words.filter(bool))
@settings(max_examples=100)
def test_l1_size_is_that_of_the_layer_document(data: st.DataObject, text: str) -> None:
    results = data.draw(st.lists(st.one_of(words, st.dictionaries(words, words), st.lists(words)), max_size=4))
    messages = as_one_list(["read_file"] * len(results), results, text)
    assert sum(map(CharsPerPiece().measure, read(messages, "ai-sdk"))) == size_by_document(messages)


@pytest.mark.parametrize("version", [4, 5])
def test_twenty_long_results_have_their_size(version: int) -> None:
    long = "value = 1  # line\n" * 1_111
    result: Json = {"result": long} if version == 4 else output("text", long)
    made = [call(f"c{n}", **({"args": {}} if version == 4 else {"input": {}})) for n in range(20)]
    messages = [ASK, message("assistant", *made), message("tool", *(answer(f"c{n}", **result) for n in range(20)))]
    decoded, format = decode_all(messages)
    assert format == "ai-sdk"
    assert sum(map(CharsPerPiece().measure, decoded)) == pytest.approx(20 * len(long) / 4, rel=0.01)
    assert sum(map(Tokenizer().measure, decoded)) > 20 * len(long) / 6
