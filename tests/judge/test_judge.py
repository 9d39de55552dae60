"""Each rule of the OpenAI and Gemini judges fires on a history made to break it, and on no good one."""

from typing import Any

import pytest

from judge import judge

Message = dict[str, Any]
USER: Message = {"role": "user", "content": "hi"}
ASSISTANT: Message = {"role": "assistant", "content": "hello"}


def calls(*ids: str, **more: Any) -> Message:
    made = [{"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}} for name in ids]
    return {"role": "assistant", "tool_calls": made, **more}


def tool_message(name: str, content: Any = "done") -> Message:
    return {"role": "tool", "tool_call_id": name, "content": content}


def call_with(**changes: Any) -> Message:
    return {"role": "assistant", "tool_calls": [{**calls("a")["tool_calls"][0], **changes}]}


CHAT_GOOD: dict[str, list[Message]] = {
    "plain": [{"role": "system", "content": "be kind"}, USER, ASSISTANT],
    "parallel, answered in any order": [USER, calls("a", "b"), tool_message("b"), tool_message("a"), ASSISTANT],
    "an id used again in a later turn": [USER, calls("a"), tool_message("a"), calls("a"), tool_message("a")],
    "calls still waiting": [USER, calls("a", "b")],
    "one of two calls waiting": [USER, calls("a", "b"), tool_message("b")],
    "empty strings": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}],
    "refusal without content": [USER, {"role": "assistant", "refusal": "no"}],
    "no user at all": [{"role": "developer", "content": "go"}, ASSISTANT],
    "parts": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a"}}]}],
    "legacy function": [USER, {"role": "function", "name": "read", "content": None}],
}
CHAT_BAD: dict[str, tuple[str, list[Message]]] = {
    "nothing": ("Invalid 'messages': empty array", []),
    "role": ("Invalid value: 'bot'", [{"role": "bot", "content": "x"}]),
    "null content": ("expected a string, got null", [USER, {"role": "assistant", "content": None}]),
    "null user": ("expected a string, got null. (messages[0].content)", [{"role": "user"}]),
    "empty parts": ("'messages[0].content': empty array", [{"role": "user", "content": []}]),
    "part type": ("Invalid value: 'text2'", [{"role": "user", "content": [{"type": "text2"}]}]),
    "part payload": ("'messages[0].content[0].text'", [{"role": "user", "content": [{"type": "text"}]}]),
    "image from a tool": (
        "Image URLs are only allowed for messages with role 'user'",
        [USER, calls("a"), tool_message("a", [{"type": "image_url", "image_url": {"url": "https://x.test"}}])],
    ),
    "no calls in tool_calls": ("'messages[1].tool_calls': empty array", [USER, calls(content="x")]),
    "arguments": (
        "arguments': expected a string",
        [USER, call_with(function={"name": "f", "arguments": {}})],
    ),
    "call name": ("string does not match", [USER, call_with(function={"name": "a b", "arguments": ""})]),
    "call type": ("Invalid value: 'fn'", [USER, call_with(type="fn")]),
    "call id": ("'messages[1].tool_calls[0].id'", [USER, call_with(id=None)]),
    "long id": ("maximum length 40", [USER, calls("a" * 41)]),
    "tool without id": (
        "Missing parameter 'tool_call_id'",
        [USER, calls("a"), {**tool_message("a"), "tool_call_id": None}],
    ),
    "unanswered": (
        "did not have response messages: b (messages.[3].role)",
        [USER, calls("a", "b"), tool_message("a"), USER],
    ),
    "orphan": ("'tool' must be a response to a preceeding message", [USER, tool_message("a")]),
    "late": ("(messages.[3].role)", [USER, calls("a"), USER, tool_message("a")]),
    "other id": ("'x' not found in 'tool_calls'", [USER, calls("a"), tool_message("x"), tool_message("a")]),
    "twice": ("in messages[2] and messages[3]", [USER, calls("a"), tool_message("a"), tool_message("a")]),
    "same id in one turn": ("Duplicate value for 'id' of 'a'", [USER, calls("a", "a"), tool_message("a")]),
    "calls from the user": ("'messages[0].tool_calls'", [{**calls("a"), "role": "user", "content": "x"}]),
}


def call(name: str = "a", **more: Any) -> Message:
    return {"type": "function_call", "call_id": name, "name": "read", "arguments": "{}", **more}


def output(name: str = "a", **more: Any) -> Message:
    return {"type": "function_call_output", "call_id": name, "output": "done", **more}


def thought(name: str | None = "rs_1") -> Message:
    return {"type": "reasoning", "summary": [], "encrypted_content": "gA", **({"id": name} if name else {})}


CUSTOM: Message = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*"}
RESPONSES_GOOD: dict[str, list[Message]] = {
    "plain": [USER, ASSISTANT],
    "parallel": [USER, call("a"), call("b"), output("b"), output("a"), ASSISTANT],
    "output later than a message": [USER, call("a"), USER, output("a")],
    "custom": [
        CUSTOM,
        {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": ""}]},
    ],
    "reasoning chain": [USER, thought("rs_1"), thought("rs_2"), call(), output()],
    "reasoning before a search": [USER, thought(), {"type": "web_search_call", "id": "ws_1"}],
    "reasoning without id is bound to nothing": [USER, thought(None), USER],
    "waiting": [USER, call("a"), call("b"), output("a")],
    "shell answered as a function": [{"type": "local_shell_call", "call_id": "a"}, output("a")],
    "references may hold the call": [{"type": "item_reference", "id": "fc_9"}, output("z")],
    "compacted": [
        USER,
        {"type": "compaction", "encrypted_content": "gA"},
        USER,
        {"type": "compaction_trigger"},
    ],
}
RESPONSES_BAD: dict[str, tuple[str, list[Message]]] = {
    "nothing": ("must be provided", []),
    "item type": ("Invalid value: 'thing'", [{"type": "thing"}]),
    "role": ("Invalid value: 'tool'", [{"role": "tool", "content": "x"}]),
    "content": ("'input[0].content'", [{"role": "user", "content": None}]),
    "input text from the assistant": (
        "Invalid value: 'input_text'",
        [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}],
    ),
    "unanswered": ("No tool output found for function call a", [USER, call(), USER]),
    "custom unanswered": ("No tool output found for custom tool call c", [CUSTOM, USER]),
    "orphan": ("No tool call found for function call output with call_id a", [USER, output()]),
    "before its call": ("No tool call found", [USER, output(), call()]),
    "wrong kind": ("No tool call found for function call output", [CUSTOM, output("c"), USER]),
    "two outputs": ("Duplicate function_call_output for call_id a", [USER, call(), output(), output()]),
    "two calls": ("Duplicate 'call_id': a", [USER, call(), output(), call()]),
    "two items": ("Duplicate item found with id fc_1", [call(id="fc_1"), call("b", id="fc_1")]),
    "arguments": ("'input[0].arguments'", [call(arguments={})]),
    "id prefix": ("begins with 'fc'", [call(id="call_1")]),
    "long call id": ("maximum length of 64", [call("a" * 65)]),
    "call without id": ("'input[0].call_id'", [call("")]),
    "output": ("'input[1].output'", [call(), output(output=None)]),
    "reasoning last": ("'rs_1' of type 'reasoning' was provided without", [USER, thought()]),
    "reasoning before the user": ("without its required following item", [USER, thought(), USER]),
    "reasoning before an output": ("without its required following item", [call(), thought(), output()]),
    "reasoning without summary": ("'input[0].summary'", [{"type": "reasoning"}]),
    "trigger not last": ("must be the final input item", [{"type": "compaction_trigger"}, USER]),
}


def turn(role: str, *parts: Message) -> Message:
    return {"role": role, "parts": list(parts)}


def ask(name: str = "read", **more: Any) -> Message:
    return {"functionCall": {"name": name, "args": {}, **more}}


def answer(name: str = "read", **more: Any) -> Message:
    return {"functionResponse": {"name": name, "response": {}, **more}}


HI, YES = turn("user", {"text": "hi"}), turn("model", {"text": "yes"})
GEMINI_GOOD: dict[str, list[Message]] = {
    "plain": [HI, YES, HI],
    "no role in a single turn": [{"parts": [{"text": "hi"}]}],
    "same role in a row": [HI, HI, YES, YES],
    "chain": [
        HI,
        turn("model", ask()),
        turn("user", answer()),
        turn("model", ask()),
        turn("function", answer()),
    ],
    "ids in any order": [
        HI,
        turn("model", ask(id="1"), ask("ls", id="2")),
        turn("user", answer("ls", id="2"), answer(id="1"), {"text": "and go on"}),
    ],
    "snake case": [HI, turn("model", {"function_call": {"name": "f"}}), turn("user", answer("f"))],
    "waiting": [HI, turn("model", {"text": "let me see"}, ask())],
    "one of two waiting": [HI, turn("model", ask(), ask("ls")), turn("user", answer("ls"))],
}
GEMINI_BAD: dict[str, tuple[str, list[Message]]] = {
    "nothing": ("contents is not specified", []),
    "role": ("Please use a valid role", [HI, turn("assistant", {"text": "x"})]),
    "no parts": ("contents[1].parts: contents.parts must not be empty", [HI, turn("model")]),
    "empty part": ("must have one initialized field", [turn("user", {})]),
    "two kinds in a part": ("already set", [turn("user", {"text": "x", "inlineData": {}})]),
    "model first": ("begin with a user turn", [YES]),
    "call first": ("function call turn comes immediately after", [turn("model", ask())]),
    "call after model": ("function call turn comes immediately after", [HI, YES, turn("model", ask())]),
    "unanswered": ("number of function response parts", [HI, turn("model", ask()), HI]),
    "half answered": ("2 calls, 1 responses", [HI, turn("model", ask(), ask()), turn("user", answer()), YES]),
    "split answers": (
        "number of function response parts",
        [HI, turn("model", ask(), ask()), turn("user", answer()), turn("user", answer())],
    ),
    "too many": ("1 calls, 2 responses", [HI, turn("model", ask()), turn("user", answer(), answer())]),
    "orphan": ("function response turn comes immediately after", [HI, turn("user", answer())]),
    "other name": ("match the function call parts", [HI, turn("model", ask()), turn("user", answer("ls"))]),
    "order without ids": (
        "match the function call parts",
        [HI, turn("model", ask(), ask("ls")), turn("user", answer("ls"), answer())],
    ),
    "other id": (
        "match the function call parts",
        [HI, turn("model", ask(id="1")), turn("user", answer(id="2"))],
    ),
    "call by the user": ("have the role model", [HI, turn("user", ask()), turn("user", answer())]),
    "no name": ("Name cannot be empty", [HI, turn("model", ask(""))]),
    "args": ("function_call.args", [HI, turn("model", ask(args="{}"))]),
    "response": (
        "function_response.response",
        [HI, turn("model", ask()), turn("user", answer(response="ok"))],
    ),
}

GOOD = {"openai-chat": CHAT_GOOD, "openai-responses": RESPONSES_GOOD, "gemini": GEMINI_GOOD}
BAD = {"openai-chat": CHAT_BAD, "openai-responses": RESPONSES_BAD, "gemini": GEMINI_BAD}


@pytest.mark.parametrize(
    ("profile", "messages"),
    [pytest.param(p, case, id=f"{p}: {name}") for p, cases in GOOD.items() for name, case in cases.items()],
)
def test_judge_valid_history_is_accepted(profile: str, messages: list[Message]) -> None:
    assert judge(messages, profile) == []


@pytest.mark.parametrize(
    ("profile", "error", "messages"),
    [pytest.param(p, *case, id=f"{p}: {name}") for p, cases in BAD.items() for name, case in cases.items()],
)
def test_judge_invalid_history_is_rejected(profile: str, error: str, messages: list[Message]) -> None:
    assert [text for text in judge(messages, profile) if error in text]
