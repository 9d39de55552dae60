"""Valid and invalid histories for OpenAI's two formats: name, messages, and broken rules by index."""

from __future__ import annotations

from boundary_wire import Chat, Messages, Responses

Found = list[tuple[int, str]]
Bad = dict[str, tuple[Messages, Found, str]]
"""By name: the messages, the place and rule of every problem, and words that its text must have."""

calls, results = Chat.calls, Chat.results
CHAT_GOOD: dict[str, Messages] = {
    "plain": [Chat.system, Chat.user, Chat.reply],
    "no user at all": [Chat.system, Chat.reply],
    "assistant first": [Chat.reply, Chat.user],
    "system in the middle": [Chat.user, Chat.system, Chat.reply, Chat.system],
    "the same role twice": [Chat.user, Chat.user, Chat.reply, Chat.reply],
    "blank text": [{"role": "user", "content": " \n"}],
    "an empty string by the user": [{"role": "user", "content": ""}, Chat.reply],
    "a refusal instead of content": [Chat.user, {"role": "assistant", "refusal": "no"}],
    "calls with text": [Chat.user, calls("a", content="I look"), results("a"), Chat.reply],
    "parallel calls, answered in any order": [Chat.user, calls("a", "b"), results("b"), results("a"), Chat.reply],
    "an empty result": [Chat.user, calls("a"), results("a", "")],
    "an id used again in a later turn": [Chat.user, calls("a"), results("a"), calls("a"), results("a")],
    "calls that wait": [Chat.user, calls("a", "b")],
    "one of two that waits": [Chat.user, calls("a", "b"), results("b")],
}
CHAT_BAD: Bad = {
    "unanswered, then the user": (
        [Chat.user, calls("a"), Chat.user],
        [(1, "unanswered-call")],
        "call 'a' has no result right after it",
    ),
    "unanswered, then the assistant": ([Chat.user, calls("a"), Chat.reply], [(1, "unanswered-call")], "'a'"),
    "unanswered, then more calls": (
        [Chat.user, calls("a"), calls("b"), results("b")],
        [(1, "unanswered-call")],
        "call 'a'",
    ),
    "unanswered, then a system message": (
        [Chat.user, calls("a"), Chat.system, results("a")],
        [(1, "unanswered-call"), (3, "orphan-result")],
        "'a'",
    ),
    "one of two unanswered": ([Chat.user, calls("a", "b"), results("a"), Chat.user], [(1, "unanswered-call")], "'b'"),
    "a result without a call": (
        [Chat.user, results("ghost")],
        [(1, "orphan-result")],
        "a result for 'ghost' follows no such call",
    ),
    "a result before its call": (
        [Chat.user, results("a"), calls("a"), results("a")],
        [(1, "orphan-result")],
        "a result for 'a'",
    ),
    "a result that comes late": (
        [Chat.user, calls("a"), Chat.user, results("a")],
        [(1, "unanswered-call"), (3, "orphan-result")],
        "'a'",
    ),
    "a result for another id": (
        [Chat.user, calls("a"), results("x"), results("a")],
        [(2, "orphan-result")],
        "a result for 'x'",
    ),
    "a second result": (
        [Chat.user, calls("a"), results("a"), results("a")],
        [(3, "duplicate-result")],
        "call 'a' is answered a second time",
    ),
    "an id twice in one turn": (
        [Chat.user, calls("a", "a"), results("a")],
        [(1, "duplicate-call")],
        "the call id 'a' is used a second time",
    ),
    "no content": ([Chat.user, {"role": "assistant", "content": None}], [(1, "empty")], "has no content"),
    "no content by the user": ([{"role": "user"}], [(0, "empty")], "the user message has no content"),
    "an empty list": ([{"role": "user", "content": []}], [(0, "empty")], "the user message has no content"),
    "an unknown role": ([{"role": "bot", "content": "x"}], [(0, "malformed")], "Message 0 is not a valid openai-chat"),
}

call, output, thought = Responses.call, Responses.results, Responses.thought
CUSTOM = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*"}
RESPONSES_GOOD: dict[str, Messages] = {
    "plain": [Responses.user, Responses.reply],
    "a call and its output": [Responses.user, call("a"), output("a"), Responses.reply],
    "parallel calls, answered in any order": [Responses.user, call("a"), call("b"), output("b"), output("a")],
    "text between parallel calls": [Responses.user, call("a"), Responses.reply, call("b"), output("a"), output("b")],
    "a custom tool": [CUSTOM, {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}],
    "reasoning, call, output": [Responses.user, thought(), call("a", id="fc_1"), output("a")],
    "two thoughts in a row": [Responses.user, thought("rs_1"), thought("rs_2"), call("a"), output("a")],
    "reasoning before words": [Responses.user, thought(), Responses.reply],
    "reasoning before a search": [Responses.user, thought(), {"type": "web_search_call", "id": "ws_1"}],
    "the vendor's summary": [Responses.user, Responses.summary, Responses.user],
    "calls that wait": [Responses.user, call("a"), call("b")],
    "one of two that waits": [Responses.user, call("a"), call("b"), output("a")],
    "no item ids": [Responses.user, thought(None), call("a"), output("a")],
}
RESPONSES_BAD: Bad = {
    "unanswered": ([Responses.user, call("a"), Responses.user], [(1, "unanswered-call")], "call 'a' has no result"),
    "a custom call unanswered": ([CUSTOM, Responses.user], [(0, "unanswered-call")], "call 'c' has no result"),
    "one of two unanswered": (
        [Responses.user, call("a"), call("b"), output("a"), Responses.user],
        [(2, "unanswered-call")],
        "'b'",
    ),
    "an output without a call": ([Responses.user, output("z")], [(1, "orphan-result")], "a result for 'z'"),
    "an output before its call": ([Responses.user, output("a"), call("a")], [(1, "orphan-result")], "'a'"),
    "a second output": ([call("a"), output("a"), output("a")], [(2, "duplicate-result")], "call 'a'"),
    "a call id used again": (
        [call("a"), output("a"), call("a"), output("a")],
        [(2, "duplicate-call")],
        "the call id 'a' is used a second time",
    ),
    "an item id used again": (
        [call("a", id="fc_1"), call("b", id="fc_1"), output("a"), output("b")],
        [(1, "duplicate-item")],
        "the item id 'fc_1' is used a second time",
    ),
    "reasoning last": ([Responses.user, thought()], [(1, "reasoning-alone")], "without its"),
    "reasoning before the user": ([thought(), Responses.user], [(0, "reasoning-alone")], "required following item"),
    "reasoning before an output": ([call("a"), thought(), output("a")], [(1, "reasoning-alone")], "following item"),
    "no content": ([{"role": "user", "content": None}], [(0, "empty")], "the user message has no content"),
    "an unknown role": ([{"role": "tool", "content": "x"}], [(0, "malformed")], "not a valid openai-responses"),
}
