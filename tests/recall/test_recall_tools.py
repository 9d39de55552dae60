"""H1: recall as agent tools: definitions in every provider's schema, answers of bounded size."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from anthropic.types import ToolParam, ToolUseBlock
from google.genai import types as gemini
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.chat.chat_completion_message_function_tool_call import ChatCompletionMessageFunctionToolCall
from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall
from pydantic import TypeAdapter
from recall_story import STORY, append_story, call

from holdfast import Recall, SessionService, check
from holdfast.errors import InvalidInput, UnknownFormat
from holdfast.recall import recall_messages, tool_definitions
from holdfast.recall.tools import MIN_ANSWER_TOKENS
from holdfast.tokens import Tokenizer

pytestmark = pytest.mark.anyio
count = Tokenizer().measure_text


def test_tool_definitions_are_accepted_by_each_sdk() -> None:
    for format, kind in (
        ("openai-chat", ChatCompletionFunctionToolParam),
        ("openai-responses", FunctionToolParam),
        ("anthropic", ToolParam),
    ):
        definitions = tool_definitions(format)
        assert len(definitions) == 3
        for definition in definitions:
            TypeAdapter(kind).validate_python(definition)
            assert json.loads(json.dumps(definition)) == definition
    [tool] = tool_definitions("gemini")
    declared = gemini.Tool.model_validate(tool).function_declarations or []
    assert [declaration.name for declaration in declared] == ["recall_search", "recall_read", "recall_restore"]
    assert all(declaration.parameters and declaration.parameters.properties for declaration in declared)


def test_tool_definitions_are_fresh_copies() -> None:
    tool_definitions("anthropic")[0]["input_schema"]["properties"].clear()
    assert tool_definitions("anthropic")[0]["input_schema"]["properties"]


def test_tool_definitions_unknown_format_is_refused() -> None:
    with pytest.raises(UnknownFormat):
        tool_definitions("xml")


async def test_tools_search_then_read(recall: Recall) -> None:
    found = await recall.run("recall_search", {"query": "quarkling"})
    assert not found.is_error
    assert found.text.startswith("#4 assistant, ") and "archived: The tide table of Osterhaven" in found.text
    for arguments in ('{"ref": "#4"}', {"ref": 4}, {"ref": "4"}):
        read = await recall.run("recall_read", arguments)
        assert read.text.endswith("so the quarkling check fails.")


async def test_tool_arguments_as_json_or_object(recall: Recall) -> None:
    loose = {"query": "table", "limit": "2", "archived": "true", "role": None, "offset": 0}
    found = await recall.run("recall_search", loose)
    assert not found.is_error and found.text.count("\n") == 2
    assert found.text.endswith("There is more: search again with offset 2.")
    assert (await recall.run("recall_search", {"query": "table", "tool": "run"})).text.startswith("#10 assistant run")


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("recall_search", {}, "missing required field `query`"),
        ("recall_search", {"query": " "}, "The query has no words"),
        ("recall_search", {"query": "x", "queries": 2}, "unknown field `queries`"),
        ("recall_search", {"query": "x", "since": "then"}, "since takes a date"),
        ("recall_search", {"query": "x", "since": "0001-01-01T00:00:00+05:00"}, "since takes a date"),
        ("recall_search", {"query": "x", "offset": 10**20}, "offset must be between 0 and 1,000,000,000"),
        ("recall_search", {"query": "x", "limit": float("nan")}, "Expected `int | null`"),
        ("recall_search", {"query": ["x"]}, "Expected `str`"),
        ("recall_search", {"query": "x", "a\nb\0c": 1}, "unknown field `a b c`"),
        ("recall_search", "not json", "are invalid"),
        ("recall_search", "[1]", "are invalid"),
        ("recall_read", {"ref": "#99"}, "it has #1 to #15"),
        ("recall_read", {"ref": "#a b"}, "is not a reference"),
        ("recall_read", {"ref": "#3@" + "9" * 5_000}, "is not a reference"),
        ("recall_read", {"ref": 10**5_000}, "are invalid"),
        ("recall_read", {"ref": -4}, "are invalid"),
        ("recall_read", {"ref": "\ud800"}, "no event id starts with it"),
        ("recall_read", "[" * 100_000, "are invalid"),
        ("recall_read", None, "missing required field `ref`"),
        ("recall_write", {"ref": "#1"}, "no tool 'recall_write': use recall_search, recall_read or recall_restore"),
    ],
)
async def test_tool_errors_are_readable_answers(recall: Recall, name: str, arguments: Any, words: str) -> None:
    answer = await recall.run(name, arguments)
    assert answer.is_error
    assert answer.text.startswith("Error: ") and words in answer.text and "\n" not in answer.text


WORDS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.builds(lambda: 10**5_000)
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["ref", "query", "role", "tool", "since", "until", "archived", "limit", "offset", "kind", "lane"]),
    WORDS | st.lists(WORDS, max_size=2) | st.sampled_from(["table", "#4", "[1,204]", "3d", "user", "9" * 5_000]),
)


@given(st.sampled_from(["recall_search", "recall_read"]), ARGUMENTS | WORDS)
async def test_tools_any_arguments_get_an_answer(name: str, arguments: Any) -> None:
    recall = await recall_messages(STORY)
    answer = await recall.run(name, arguments)
    assert answer.text and count(answer.text) <= 2_000
    assert not answer.is_error or "\n" not in answer.text
    answer.text.encode()


async def test_tool_search_without_hits_is_no_error(recall: Recall) -> None:
    answer = await recall.run("recall_search", {"query": "unheard-of"})
    assert not answer.is_error and "Try fewer words" in answer.text
    answer = await recall.run("recall_search", {"query": "table", "offset": 100})
    assert not answer.is_error
    assert answer.text == "No more events contain all of 'table': search again with an offset below 100."
    answer = await recall.run("recall_search", {"query": "table", "role": "system", "lane": ""})
    assert answer.text.startswith("No event contains all of 'table' with these filters (role, lane). Leave some out")
    answer = await recall.run("recall_search", {"query": "table", "role": "user", "offset": 9})
    assert answer.text.startswith("No more events contain all of 'table' with these filters (role): search again")


@pytest.mark.parametrize("limit", [MIN_ANSWER_TOKENS, 150, 400, 2_000])
async def test_tool_answers_are_bounded(recall: Recall, service: SessionService, limit: int) -> None:
    await service.append("s", {"role": "user", "content": "zebra " + "𝕴🦓" * 300})
    for name, arguments in (
        ("recall_search", {"query": "e", "limit": 50}),
        ("recall_search", {"query": "zebra"}),
        ("recall_read", {"ref": "#3"}),
        ("recall_read", {"ref": "#1-#15"}),
    ):
        answer = await recall.run(name, arguments, max_tokens=limit)
        assert not answer.is_error and count(answer.text) <= limit


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "text", ["x" * 100_000, "z " * 50_000, "片" * 100_000, "🦓'\\" * 30_000, "\0" + "\n" * 9_000 + "x"]
)
async def test_tool_quoted_input_is_bounded(recall: Recall, text: str) -> None:
    for name, arguments, words in (
        ("recall_search", {"query": text}, "Try fewer words"),
        ("recall_search", {"query": "e", "role": text}, "use one of system, user, assistant, tool."),
        ("recall_search", {"query": "e", "since": text}, "since takes a date like"),
        ("recall_search", {"query": "e", text: 1}, "see the tool's parameters."),
        ("recall_read", {"ref": text}, "a number as in #1|to start at a character of it"),
        (text, {}, "use recall_search, recall_read or recall_restore."),
    ):
        answer = await recall.run(name, arguments, max_tokens=MIN_ANSWER_TOKENS)
        assert count(answer.text) <= MIN_ANSWER_TOKENS and re.search(words, answer.text), answer.text


async def test_tool_too_small_max_tokens_is_refused(recall: Recall) -> None:
    for name, arguments in (("recall_search", {"query": "e"}), ("recall_read", {"ref": "#1"})):
        answer = await recall.run(name, arguments, max_tokens=MIN_ANSWER_TOKENS - 1)
        assert answer.is_error and f"max_tokens must be at least {MIN_ANSWER_TOKENS}" in answer.text


async def test_tool_truncated_answer_names_the_continuation(recall: Recall) -> None:
    cut = await recall.run("recall_read", {"ref": "#3"}, max_tokens=150)
    assert "There is more: read #3@" in cut.text


async def test_tool_search_excludes_recall_calls(recall: Recall, service: SessionService) -> None:
    asked = call("r1", "recall_search", '{"query": "quarkling"}')
    await service.append("s", asked)
    answer = await recall.answer(asked["tool_calls"][0])
    await service.append("s", answer)
    again = await recall.run("recall_search", {"query": "quarkling"})
    assert again.text.count("#") == 1 and again.text.startswith("#4 ")


CALLS: dict[str, list[Any]] = {
    "openai-chat": [
        {"id": "c1", "type": "function", "function": {"name": "recall_read", "arguments": '{"ref": "#4"}'}},
        ChatCompletionMessageFunctionToolCall.model_validate(
            {"id": "c1", "type": "function", "function": {"name": "recall_read", "arguments": '{"ref": "#4"}'}}
        ),
    ],
    "openai-responses": [
        {"type": "function_call", "call_id": "c1", "name": "recall_read", "arguments": '{"ref": "#4"}'},
        ResponseFunctionToolCall(
            type="function_call", id="fc_1", call_id="c1", name="recall_read", arguments='{"ref": "#4"}'
        ),
    ],
    "anthropic": [
        {"type": "tool_use", "id": "c1", "name": "recall_read", "input": {"ref": "#4"}},
        ToolUseBlock(type="tool_use", id="c1", name="recall_read", input={"ref": "#4"}),
    ],
    "gemini": [
        {"functionCall": {"name": "recall_read", "args": {"ref": "#4"}}},
        gemini.FunctionCall(name="recall_read", args={"ref": "#4"}),
    ],
    "ai-sdk": [
        {"type": "tool-call", "toolCallId": "c1", "toolName": "recall_read", "input": {"ref": "#4"}},
        {"type": "tool-call", "toolCallId": "c1", "toolName": "recall_read", "args": {"ref": "#4"}},
    ],
}


@pytest.mark.parametrize("format", CALLS)
async def test_tool_call_is_answered_in_its_format(recall: Recall, format: str) -> None:
    user = {"role": "user", "parts": [{"text": "go"}]} if format == "gemini" else {"role": "user", "content": "go"}
    plain = CALLS[format][0]
    assistant_message = {
        "openai-chat": {"role": "assistant", "content": None, "tool_calls": [plain]},
        "openai-responses": plain,
        "anthropic": {"role": "assistant", "content": [plain]},
        "gemini": {"role": "model", "parts": [plain]},
        "ai-sdk": {"role": "assistant", "content": [plain]},
    }[format]
    for asked in CALLS[format]:
        answer = await recall.answer(asked)
        assert "quarkling" in str(answer)
        assert check([user, assistant_message, answer], format, ready=True) == []


async def test_tool_call_that_fails_is_answered(recall: Recall) -> None:
    given = {"type": "tool_use", "id": "c1", "name": "recall_read", "input": {"ref": "#99"}}
    [block] = (await recall.answer(given))["content"]
    assert block["is_error"] is True and "it has #1 to #15" in str(block["content"])


@pytest.mark.parametrize("given", [{}, {"name": "x"}, "recall_read", None, STORY[0]], ids=repr)
async def test_tool_answer_refuses_other_values(recall: Recall, given: Any) -> None:
    with pytest.raises(InvalidInput, match="not a tool call of a known format"):
        await recall.answer(given)


async def test_h1_restore_tool_puts_the_message_back_whole(recall: Recall, service: SessionService) -> None:
    answer = await recall.run("recall_restore", {"ref": "#4"})
    assert (answer.text, answer.is_error) == ("#4 is restored: its copy is #16, at the end of the context.", False)
    assert "the quarkling check fails" in (await service.context("s")).messages[-1]["content"]


async def test_h1_restore_tool_waits_for_the_result_of_its_own_call(recall: Recall, service: SessionService) -> None:
    asked = call("c9", "recall_restore", '{"ref": "[4]"}')
    await service.append("s", asked)
    result = await recall.answer(asked["tool_calls"][0])
    assert result["content"] == "#4 is restored: its copy follows the results of the open tool calls."
    await service.append("s", result)
    context = list(await service.context("s"))
    assert context[-2] == result and check(context, "openai-chat") == []
    assert "[Restored from earlier: #4, assistant" in context[-1]["content"]
    await service.append("s", {"role": "assistant", "content": "Thanks."})
    assert sum("quarkling" in str(message["content"]) for message in await service.context("s")) == 1


async def test_restore_tool_refuses_a_message_over_its_limit(
    recall: Recall, service: SessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.recall.tools.MAX_RESTORED_TOKENS", 500)
    version = (await service.get("s")).version
    answer = await recall.run("recall_restore", {"ref": "#3"})
    assert answer.is_error
    assert answer.text.startswith("Error: Event #3 takes 1,")
    assert answer.text.endswith("more than the 500 that may be restored at once: read it in parts instead.")
    assert (await service.get("s")).version == version


async def test_restore_tool_refuses_what_the_window_has_no_room_for(service: SessionService) -> None:
    await append_story(service)
    service.window = 1_000
    answer = await Recall(service, "s").run("recall_restore", {"ref": "#3"})
    assert answer.is_error and "tokens, and the context has room for" in answer.text
    assert "of 1,000: compact first, or read it in parts." in answer.text


async def test_restore_tool_refusals_are_readable(recall: Recall) -> None:
    for ref, words in (
        ("#14", "is in the context already: there is nothing to restore."),
        ("#15", "is a compaction: only messages can be restored."),
        ("#1-#3", "is not exactly one event: name a single one, such as #1."),
        ("#99", "it has #1 to #15"),
    ):
        answer = await recall.run("recall_restore", {"ref": ref})
        assert answer.is_error and words in answer.text, answer.text


async def test_restore_tool_is_not_offered_for_a_list_of_messages() -> None:
    recall = await recall_messages(STORY)
    assert [tool["function"]["name"] for tool in recall.tools()] == ["recall_search", "recall_read"]
    answer = await recall.run("recall_restore", {"ref": "#1"})
    assert answer.is_error and answer.text.endswith("use recall_search or recall_read.")
