"""Valid and invalid histories for Anthropic and Gemini: name, messages, and broken rules by index."""

from __future__ import annotations

from boundary_wire import HI, YES, Claude, Gemini, Messages
from check_cases_openai import Bad

user, reply, text = Claude.user, Claude.reply, Claude.text
calls, results, thought = Claude.calls, Claude.results, Claude.thought
by_user, by_model, use, result = Claude.by_user, Claude.by_model, Claude.use, Claude.result
PICTURE = {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}}

CLAUDE_GOOD: dict[str, Messages] = {
    "plain": [user, reply, user],
    "the same role twice": [user, user, reply, reply],
    "parallel calls, answered in any order": [user, calls("a", "b"), results("b", "a"), reply],
    "results, then words": [user, calls("a"), by_user(result("a"), text), reply],
    "results over two messages": [user, calls("a", "b"), results("a"), results("b"), user],
    "calls over two messages": [user, calls("a"), calls("b"), results("a", "b")],
    "thinking, then a call": [user, by_model(thought(), use("a")), results("a")],
    "redacted thinking": [user, by_model({"type": "redacted_thinking", "data": "x"}, text)],
    "an empty result": [user, calls("a"), by_user(result("a", ""))],
    "a picture in a result": [user, calls("a"), by_user(result("a", [PICTURE]))],
    "a system message behind the user's": [user, Claude.system, reply],
    "a system message behind results, last": [user, calls("a"), results("a"), Claude.system],
    "the vendor's summary first": [by_model(Claude.summary), reply, user],
    "an unsigned summary later": [user, by_model({"type": "compaction", "content": None}, text)],
    "calls that wait": [user, calls("a", "b")],
    "one of two that waits": [user, calls("a", "b"), results("b")],
}
CLAUDE_BAD: Bad = {
    "unanswered": ([user, calls("a"), user], [(1, "unanswered-call")], "call 'a' has no result right after it"),
    "unanswered, answered later": (
        [user, calls("a"), user, reply, results("a")],
        [(1, "unanswered-call"), (4, "orphan-result")],
        "'a'",
    ),
    "one of two unanswered": ([user, calls("a", "b"), results("a"), reply], [(1, "unanswered-call")], "call 'b'"),
    "one of two unanswered next to text": (
        [user, calls("a", "b"), by_user(result("a"), text)],
        [(1, "unanswered-call")],
        "call 'b'",
    ),
    "a result behind words": (
        [user, calls("a", "b"), by_user(result("a"), text), results("b")],
        [(1, "unanswered-call"), (3, "orphan-result")],
        "'b'",
    ),
    "words before a result": (
        [user, calls("a"), by_user(text, result("a"))],
        [(2, "results-first")],
        "tool results must come first",
    ),
    "a result without a call": ([user, results("ghost")], [(1, "orphan-result")], "a result for 'ghost'"),
    "a result first of all": (
        [results("a"), reply],
        [(0, "first-role"), (0, "orphan-result")],
        "a result for 'a'",
    ),
    "a second result": ([user, calls("a"), results("a"), results("a")], [(3, "duplicate-result")], "call 'a'"),
    "a second result in one message": ([user, calls("a"), results("a", "a")], [(2, "duplicate-result")], "call 'a'"),
    "a call id used again": (
        [user, calls("a"), results("a"), calls("a"), results("a")],
        [(3, "duplicate-call")],
        "the call id 'a' is used a second time",
    ),
    "the assistant first": ([reply, user], [(0, "first-role")], "the first message is the assistant's"),
    "an empty string": ([user, reply, {"role": "user", "content": ""}], [(2, "empty")], "the user message"),
    "an empty list": ([user, by_model(), user], [(1, "empty")], "the assistant message has no content"),
    "an empty text": ([by_user(text, {"type": "text", "text": ""})], [(0, "empty")], "text content must not be"),
    "a blank text": ([{"role": "user", "content": " \n"}], [(0, "empty")], "a text is blank"),
    "thinking without a signature": (
        [user, by_model(thought(None), text)],
        [(1, "unsigned-reasoning")],
        "no signature",
    ),
    "thinking last": ([user, by_model(text, thought()), user], [(1, "reasoning-alone")], "following item"),
    "thinking and nothing else": ([user, by_model(thought())], [(1, "reasoning-alone")], "following item"),
    "a system message first": ([Claude.system, user], [(0, "system-place"), (0, "system-place")], "directly follow"),
    "a system message behind the assistant's": ([user, reply, Claude.system], [(2, "system-place")], "follow a user"),
    "a system message before the user's": ([user, Claude.system, user], [(1, "system-place")], "must precede"),
    "two system messages": ([user, Claude.system, Claude.system, reply], [(2, "system-place")], "follow a user"),
    "a signed summary later": ([user, by_model(Claude.summary)], [(1, "summary-place")], "must come first"),
    "an unknown role": ([user, {"role": "tool", "content": "x"}], [(0, "malformed")], "Message 1 is not a valid"),
}

ask, answer = Gemini.ask, Gemini.answer
GEMINI_GOOD: dict[str, Messages] = {
    "plain": [HI, YES, HI],
    "the same role twice": [HI, HI, YES, YES],
    "a call and its response": [HI, Gemini.calls("1"), Gemini.results("1"), YES],
    "a chain": [HI, Gemini.by_model(ask()), Gemini.by_user(answer()), Gemini.by_model(ask()), Gemini.by_user(answer())],
    "parallel calls in order, without ids": [
        HI,
        Gemini.by_model(ask(), ask("ls")),
        Gemini.by_user(answer(), answer("ls")),
    ],
    "the same call twice, without ids": [HI, Gemini.by_model(ask(), ask()), Gemini.by_user(answer(), answer())],
    "a response, then words": [HI, Gemini.calls("1"), Gemini.by_user(answer(id="1"), Gemini.text), YES],
    "an id used again in a later turn": [
        HI,
        Gemini.calls("1"),
        Gemini.results("1"),
        Gemini.calls("1"),
        Gemini.results("1"),
    ],
    "an empty text": [HI, Gemini.by_model({"text": "", "thoughtSignature": "c2ln"}), HI],
    "a thought": [HI, Gemini.by_model({"text": "hm", "thought": True}, {"text": "yes"})],
    "calls that wait": [HI, Gemini.by_model({"text": "let me see"}, ask())],
    "one of two that waits": [HI, Gemini.calls("1", "2"), Gemini.results("1")],
}
GEMINI_BAD: Bad = {
    "the model first": ([YES, HI], [(0, "first-role")], "the first message is the assistant's"),
    "a call first": (
        [Gemini.calls("1"), Gemini.results("1")],
        [(0, "first-role")],
        "it must be the user's",
    ),
    "a call behind the model's words": ([HI, YES, Gemini.calls("1")], [(2, "call-place")], "right after a user"),
    "unanswered": ([HI, Gemini.calls("1"), HI], [(1, "unanswered-call")], "call '1' has no result"),
    "one of two unanswered": ([HI, Gemini.calls("1", "2"), Gemini.results("1"), YES], [(1, "unanswered-call")], "'2'"),
    "one of two unanswered next to text": (
        [HI, Gemini.calls("1", "2"), Gemini.by_user(answer(id="1"), Gemini.text)],
        [(1, "unanswered-call")],
        "'2'",
    ),
    "responses over two turns": (
        [HI, Gemini.calls("1", "2"), Gemini.results("1"), Gemini.results("2")],
        [(3, "split-results")],
        "in one message",
    ),
    "a response without a call": (
        [HI, Gemini.results("9")],
        [(1, "orphan-result")],
        "a result for '9'",
    ),
    "a response for another id": (
        [HI, Gemini.calls("1"), Gemini.results("2")],
        [(2, "orphan-result")],
        "a result for '2'",
    ),
    "a response by another name": (
        [HI, Gemini.by_model(ask()), Gemini.by_user(answer("ls"))],
        [(2, "results-order"), (2, "orphan-result")],
        "follows no such call",
    ),
    "a second response": (
        [HI, Gemini.calls("1"), Gemini.results("1", "1")],
        [(2, "duplicate-result")],
        "call '1' is answered a second time",
    ),
    "responses out of order, without ids": (
        [HI, Gemini.by_model(ask(), ask("ls")), Gemini.by_user(answer("ls"), answer())],
        [(2, "results-order")],
        "in the order of their calls",
    ),
    "no parts": ([HI, Gemini.by_model()], [(1, "empty")], "the assistant message has no content"),
    "an unknown role": ([HI, {"role": "assistant", "parts": [{"text": "x"}]}], [(0, "malformed")], "Message 1"),
}
