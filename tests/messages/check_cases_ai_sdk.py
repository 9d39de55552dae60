"""Valid and invalid histories of the AI SDK: name, messages, and broken rules by index."""

from __future__ import annotations

from boundary_wire import AiSdk, Messages
from check_cases_openai import Bad

user, reply, system = AiSdk.user, AiSdk.reply, AiSdk.system
call, calls, result, results = AiSdk.call, AiSdk.calls, AiSdk.result, AiSdk.results
by_model, by_tools = AiSdk.by_model, AiSdk.by_tools
AI_SDK_GOOD: dict[str, Messages] = {
    "plain": [system, user, reply],
    "assistant first": [reply, user],
    "the same role twice": [user, user, reply, reply],
    "system in the middle": [user, system, reply, system],
    "parallel calls in one message": [user, calls("a", "b"), results("b", "a"), reply],
    "parallel calls in two messages": [user, calls("a", "b"), results("b"), results("a"), reply],
    "an id used again in a later turn": [user, calls("a"), results("a"), calls("a"), results("a")],
    "calls that wait": [user, calls("a", "b"), results("b")],
    "a provider's call with its result": [user, by_model(call("a", providerExecuted=True), result("a")), user],
    "a provider's call that waits": [user, by_model(call("a", providerExecuted=True)), user],
    "a provider's call answered later": [user, by_model(call("a", providerExecuted=True)), by_model(result("a"))],
    "an approval and the result after it": [
        user,
        by_model(call("a"), AiSdk.request),
        by_tools(AiSdk.response),
        results("a"),
        reply,
    ],
    "an approval with the result": [user, by_model(call("a"), AiSdk.request), by_tools(AiSdk.response, result("a"))],
    "an approval that a provider waits for": [
        user,
        by_model(call("a", providerExecuted=True), AiSdk.request),
        by_tools(AiSdk.response),
        by_model(result("a")),
    ],
    "a request for approval that waits": [user, by_model(call("a"), AiSdk.request)],
}
AI_SDK_BAD: Bad = {
    "unanswered, then the user": (
        [user, calls("a"), user],
        [(1, "unanswered-call")],
        "call 'a' has no result right after it",
    ),
    "unanswered, then the assistant": ([user, calls("a"), reply], [(1, "unanswered-call")], "'a'"),
    "one of two unanswered": ([user, calls("a", "b"), results("a"), user], [(1, "unanswered-call")], "'b'"),
    "approved and never answered": (
        [user, by_model(call("a"), AiSdk.request), by_tools(AiSdk.response), user],
        [(1, "unanswered-call")],
        "'a'",
    ),
    "an approval that nobody asked for": (
        [user, calls("a"), by_tools(AiSdk.response, result("a"))],
        [(2, "orphan-result")],
        "tool-approval-response 'p' answers the approval request 'p', which does not come before it",
    ),
    "a provider's result without its call": (
        [user, by_model(result("a"))],
        [(1, "orphan-result")],
        "tool-result of 'a' answers the tool run by the provider 'a'",
    ),
    "a result without a call": ([user, results("ghost")], [(1, "orphan-result")], "a result for 'ghost'"),
    "a result that comes late": (
        [user, calls("a"), user, results("a")],
        [(1, "unanswered-call"), (3, "orphan-result")],
        "'a'",
    ),
    "a second result": (
        [user, calls("a"), results("a"), results("a")],
        [(3, "duplicate-result")],
        "call 'a' is answered a second time",
    ),
    "an id twice in one turn": ([user, calls("a", "a"), results("a")], [(1, "duplicate-call")], "'a'"),
    "no content": ([user, {"role": "assistant", "content": []}], [(1, "empty")], "has no content"),
    "an unknown role": ([{"role": "data", "content": "x"}], [(0, "malformed")], "is not a valid ai-sdk"),
    "a tool message with text": ([user, {"role": "tool", "content": "x"}], [(1, "orphan-result")], "holds no result"),
}
