"""Each rule of the Anthropic judge fires on a history made to break it, and on no good one."""

from typing import Any

import pytest

from judge import bound_thinking, judge

Message = dict[str, Any]
USER: Message = {"role": "user", "content": "hi"}
ASSISTANT: Message = {"role": "assistant", "content": "hello"}
SYSTEM: Message = {"role": "system", "content": "be brief"}
TEXT: Message = {"type": "text", "text": "and?"}
COMPACTION: Message = {"type": "compaction", "content": "so far", "signature": "Eu"}
SEARCH: Message = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND: Message = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def user(*blocks: Message) -> Message:
    return {"role": "user", "content": list(blocks)}


def model(*blocks: Message) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def use(id: str, **more: Any) -> Message:
    return {"type": "tool_use", "id": id, "name": "read", "input": {}, **more}


def result(name: str, **more: Any) -> Message:
    return {"type": "tool_result", "tool_use_id": name, "content": "done", **more}


def think(name: str) -> Message:
    return {"type": "thinking", "thinking": "hm", "signature": name}


def image(**source: Any) -> Message:
    return {"type": "image", "source": source}


GOOD: dict[str, list[Message]] = {
    "plain": [USER, ASSISTANT, USER],
    "parallel": [USER, model(think("s"), TEXT, use("a"), use("b")), user(result("b"), result("a"), TEXT)],
    "results spread over messages": [
        USER,
        model(use("a"), use("b")),
        user(result("a")),
        user(result("b")),
        USER,
    ],
    "calls spread over messages": [USER, model(use("a")), model(use("b")), user(result("a"), result("b"))],
    "waiting": [USER, model(use("a"), use("b"))],
    "one of two waiting": [USER, model(use("a"), use("b")), user(result("b"))],
    "empty result": [USER, model(use("a")), user(result("a", content=""))],
    "empty last assistant": [USER, {"role": "assistant", "content": ""}],
    "system after user": [USER, SYSTEM, ASSISTANT],
    "system after results, last": [USER, model(use("a")), user(result("a")), SYSTEM],
    "compaction first": [model(COMPACTION), ASSISTANT, USER],
    "compaction in the user's message": [user(COMPACTION, TEXT), ASSISTANT],
    "unsigned compaction later": [USER, model({"type": "compaction", "content": None}, TEXT)],
    "server tool": [USER, model(SEARCH, FOUND, TEXT), USER],
    "server tool paused": [USER, model(SEARCH)],
    "redacted": [USER, model({"type": "redacted_thinking", "data": "x"}, TEXT)],
    "images": [user(image(type="url", url="https://x.test/a.png"), TEXT)],
}
BAD: dict[str, tuple[str, list[Message]]] = {
    "nothing": ("at least one message is required", []),
    "role": ('messages.1: Unexpected role "tool"', [USER, {"role": "tool", "content": "x"}]),
    "no content": ("messages.0.content: Input should be", [{"role": "user"}]),
    "empty": ("messages.0: all messages must have non-empty", [{"role": "user", "content": ""}]),
    "empty assistant": ("messages.1: all messages must have non-empty", [USER, model(), USER]),
    "empty text": ("must be non-empty (messages.0.content.1)", [user(TEXT, {"type": "text", "text": ""})]),
    "blank text": ("must contain non-whitespace text", [{"role": "user", "content": " \n"}]),
    "assistant first": ('first message must use the "user" role', [ASSISTANT, USER]),
    "unanswered": ("ids were found without `tool_result` blocks", [USER, model(use("a"), use("b")), USER]),
    "half answered": (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b",
        [USER, model(use("a"), use("b")), user(result("a"), TEXT)],
    ),
    "results not first": ("messages.2: Did not find 1", [USER, model(use("a")), user(TEXT, result("a"))]),
    "text merged in before": ("Did not find 1", [USER, model(use("a")), USER, user(result("a"))]),
    "orphan": ("messages.0.content.0: unexpected `tool_use_id`", [user(result("a"), TEXT)]),
    "late": ("unexpected `tool_use_id`", [USER, model(use("a")), USER, ASSISTANT, user(result("a"))]),
    "two results": (
        "must have a single result",
        [USER, model(use("a")), user(result("a")), user(result("a"))],
    ),
    "same id": ("ids must be unique", [USER, model(use("a")), user(result("a")), model(use("a"))]),
    "id pattern": ("tool_use.id: String should match", [USER, model(use("a.b"))]),
    "input": ("tool_use.input: Input should be a valid dictionary", [USER, model(use("a", input="{}"))]),
    "name": ("Invalid `name`", [USER, model(use("a", name=""))]),
    "unsigned thinking": (
        "thinking.signature: Field required",
        [USER, model({"type": "thinking", "thinking": "x"}, TEXT)],
    ),
    "empty signature": ("Invalid `signature`", [USER, model(think(""), TEXT)]),
    "redacted without data": ("redacted_thinking.data", [USER, model({"type": "redacted_thinking"}, TEXT)]),
    "thinking last": ("final block in an assistant message cannot be", [USER, model(TEXT, think("s")), USER]),
    "thinking by the user": ("can only be in `assistant` messages", [user(think("s"))]),
    "result by the assistant": ("can only be in `user` messages", [USER, model(result("a"))]),
    "block type": ("Input tag 'input_text'", [user({"type": "input_text", "text": "x"})]),
    "error without content": (
        "cannot be empty if `is_error`",
        [USER, model(use("a")), user(result("a", content="", is_error=True))],
    ),
    "error with image": (
        "all content must be type `text`",
        [USER, model(use("a")), user(result("a", is_error=True, content=[image(type="url", url="x")]))],
    ),
    "image source": ("Input tag 'path'", [user(image(type="path"))]),
    "media type": ("media_type", [user(image(type="base64", media_type="image/bmp", data="x"))]),
    "system first": ("must immediately follow a user message", [SYSTEM, USER]),
    "system after assistant": ("must immediately follow a user message", [USER, ASSISTANT, SYSTEM]),
    "system before user": ("must precede an assistant", [USER, SYSTEM, USER]),
    "systems in a row": ("cannot be adjacent", [USER, SYSTEM, SYSTEM, ASSISTANT]),
    "system between call and result": (
        "must immediately",
        [USER, model(use("a")), SYSTEM, user(result("a"))],
    ),
    "image in system": (
        "can only be in `user`",
        [USER, {"role": "system", "content": [image(type="url", url="x")]}],
    ),
    "compaction misplaced": ("compaction_block_misplaced", [USER, model(COMPACTION)]),
    "two compactions": ("compaction_block_ambiguous", [model(COMPACTION, COMPACTION)]),
    "empty compaction": ("compaction.content", [model({"type": "compaction", "content": ""})]),
    "server result without use": ("`server_tool_use` block before it", [USER, model(FOUND, TEXT)]),
    "server use without result": ("without a corresponding", [USER, model(SEARCH, TEXT), USER, ASSISTANT]),
}


@pytest.mark.parametrize("messages", [pytest.param(case, id=name) for name, case in GOOD.items()])
def test_judge_anthropic_valid_history_is_accepted(messages: list[Message]) -> None:
    assert judge(messages, "anthropic") == []


@pytest.mark.parametrize(("error", "messages"), [pytest.param(*case, id=name) for name, case in BAD.items()])
def test_judge_anthropic_invalid_history_is_rejected(error: str, messages: list[Message]) -> None:
    assert [text for text in judge(messages, "anthropic") if error in text]


STORY = [
    USER,
    model(think("1"), use("a")),
    user(result("a")),
    model(think("2"), TEXT),
    USER,
    model(think("3"), TEXT),
]
CACHED = {**result("a"), "cache_control": {"type": "ephemeral"}}
KEPT: dict[str, list[Message]] = {
    "the same": STORY,
    "a prefix": STORY[:4],
    "no thinking at all": [{"role": "user", "content": "so far: …"}, model(TEXT)],
    "thinking dropped from the front": [USER, model(use("a")), user(result("a")), *STORY[3:]],
    "cache marks": [*STORY[:2], user(CACHED), *STORY[3:]],
    "text as a block": [user({"type": "text", "text": "hi"}), *STORY[1:]],
    "behind the vendor's summary": [model(COMPACTION), *STORY[4:]],
}
COMPACTED = [model(COMPACTION), USER, model(think("1"), TEXT), USER, model(think("2"), TEXT)]
UNBOUND: dict[str, tuple[list[str], list[Message]]] = {
    "a hole": (["messages.5.content.0"], [*STORY[:3], model(TEXT), *STORY[4:]]),
    "summary in front": (["messages.1.content.0"], [{"role": "user", "content": "so far: …"}, STORY[5]]),
    "result shortened": (
        ["messages.3.content.0", "messages.5.content.0"],
        [*STORY[:2], user(result("a", content="cut")), *STORY[3:]],
    ),
    "message lost": (["messages.4.content.0"], [*STORY[:3], *STORY[3:4], STORY[5]]),
    "thought rewritten": (["messages.1.content.0"], [USER, model({**think("1"), "thinking": "h"}, use("a"))]),
    "gap behind the vendor's summary": (["messages.2.content.0"], [model(COMPACTION), STORY[0], STORY[3]]),
}


@pytest.mark.parametrize("after", [pytest.param(case, id=name) for name, case in KEPT.items()])
def test_judge_anthropic_thinking_still_verifies(after: list[Message]) -> None:
    assert bound_thinking(STORY, after) == []


@pytest.mark.parametrize(("paths", "after"), [pytest.param(*case, id=name) for name, case in UNBOUND.items()])
def test_judge_anthropic_moved_thinking_does_not_verify(paths: list[str], after: list[Message]) -> None:
    found = bound_thinking(STORY, after)
    assert [text.split(":")[0] for text in found] == paths
    assert all("bound to a different conversation" in text for text in found)


def test_judge_anthropic_prefix_starts_at_vendor_summary() -> None:
    assert bound_thinking([USER, ASSISTANT, *COMPACTED], COMPACTED) == []
    assert len(bound_thinking(COMPACTED, [COMPACTED[0], *COMPACTED[2:]])) == 2
