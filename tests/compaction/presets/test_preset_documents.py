"""Each preset as its document has it: what stays, what the model is asked, and what the next call sees (P, G, H3)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import CompactionResult, MemoryStore, Outcome, SessionService, check, compact
from holdfast.compaction.presets import preset
from holdfast.errors import SummaryFailed
from holdfast.messages import CUT_OFF_MARK, INTERRUPTED_MARK, Message, decode_all, encode_all, is_note
from holdfast.messages import assistant as assistant_message
from holdfast.messages import user as user_message
from holdfast.messages.parts import Text, ToolCall, ToolResult
from holdfast.models import ScriptedModel
from holdfast.models.calls import Failure
from holdfast.summaries import CLAUDE_CODE_TASK, CODEX_TASK, GOAT_TASK, OPENCODE_TASK, PI_TASK, SYSTEM_PROMPT
from holdfast.triggers import always
from sized import request_for
from sized import user as sized_user

Json = dict[str, Any]
FORMATS = ("openai-chat", "openai-responses", "anthropic", "gemini")
each_format = pytest.mark.parametrize("format", FORMATS)
whole_history = pytest.mark.parametrize("name", ["claude_code", "opencode"])
REQUEST = "Deploy release 4.2 to the harbour cluster, then post the link."
REPLY = "Release 4.2 is deployed: https://harbour.example/4.2."
NEXT = "Now write the release notes."


class Executor:
    """A model that executes the request that is open at the end of its context."""

    def __init__(self) -> None:
        self.executed: list[str] = []

    def __call__(self, messages: list[Json], format: str) -> None:
        context = decode_all(messages, format)[0]
        asked = max((at for at, m in enumerate(context) if m.role == "user" and not is_note(m) and m.text), default=-1)
        is_open = asked >= 0 and not any(m.role == "assistant" and not m.calls for m in context[asked + 1 :])
        if is_open:
            self.executed.append(context[asked].text)


def talk(count: int) -> list[Message]:
    words = "about the piers and the ships at anchor " * 40
    pairs = ((user_message(f"q{n} {words}"), assistant_message(f"a{n} {words}")) for n in range(count))
    return [message for pair in pairs for message in pair]


def step(number: int, command: str) -> list[Message]:
    call = ToolCall(f"c{number}", "bash", {"command": command})
    return [
        Message("assistant", (call,)),
        Message("tool", (ToolResult(f"c{number}", (Text("ok\n" * 60),), False, "bash"),)),
    ]


def compacted(name: str, messages: list[Message], format: str, **options: Any) -> CompactionResult:
    given = encode_all(messages, format)
    model = options.pop("summarizer", None) or ScriptedModel("They looked after the piers.", repeat=True)
    result = compact(preset=name, messages=given, trigger=always, summarizer=model, format=format, **options)
    assert result.outcome is Outcome.COMPACTED
    assert check(result.messages, format) == []
    return result


def shown(result: CompactionResult, format: str) -> str:
    return "\n".join(message.text for message in decode_all(list(result.messages), format)[0])


LARGEST = {
    "holdfast": [(200_000, 156_073)],
    "spring": [(200_000, 3_999)],
    "pi": [(200_000, 183_616)],
    "claude_code": [(200_000, 190_000)],
    "claude_code_ts": [(200_000, 190_000)],
    "codex": [(200_000, 180_000), (272_000, 244_000), (128_000, 121_600)],
    "opencode": [(200_000, 168_000)],
    "layer": [(128_000, 93_599)],
    "workstream": [(200_000, 139_999)],
    "goat": [(200_000, 146_892)],
}
"""Of each preset, windows and the largest size that is not compacted in them."""


@pytest.mark.parametrize(
    ("name", "window", "size"), [(name, *edge) for name, edges in LARGEST.items() for edge in edges]
)
def test_preset_compacts_above_the_size_of_its_document(name: str, window: int, size: int) -> None:
    """S6, P2, P20, P21, P22, P24, L2, W1, G2: to the token."""
    policy = preset(name).changed(window=window)
    for tokens, fires in ((size, False), (size + 1, True)):
        messages = [*(sized_user(100) for _ in range(11)), sized_user(tokens - 1_100)]
        assert policy.trigger(policy.request(request_for(messages).view)[1]) is fires


def test_p23_amp_compacts_at_no_size() -> None:
    assert not preset("amp").trigger(request_for([sized_user(400_000)], budget=200_000))


@each_format
@whole_history
def test_p20_p22_answered_request_is_not_executed_again(name: str, format: str) -> None:
    messages = [*talk(8), user_message(REQUEST), *step(1, "deploy 4.2"), assistant_message(REPLY)]
    result = compacted(name, messages, format)
    model = Executor()
    model(list(result.messages), format)
    assert model.executed == []
    assert result.kept == []
    following = [*result.messages, *encode_all([user_message(NEXT)], format)]
    assert check(following, format, ready=True) == []
    model(following, format)
    assert model.executed == [NEXT]


@whole_history
def test_h3_answered_request_and_its_reply_are_quoted_in_the_summary(name: str) -> None:
    messages = [*talk(8), user_message(REQUEST), *step(1, "deploy 4.2"), assistant_message(REPLY)]
    text = shown(compacted(name, messages, "openai-chat"), "openai-chat")
    assert f"### The user's last message\n[17] {REQUEST}" in text
    assert f"### The reply to it\n[20] {REPLY}" in text


@pytest.mark.parametrize("mark", [INTERRUPTED_MARK, CUT_OFF_MARK])
@whole_history
def test_request_with_an_interrupted_reply_is_not_answered(name: str, mark: str) -> None:
    """The request stays: it is still open."""
    reply = assistant_message(f"I will now deploy\n\n{mark}")
    result = compacted(name, [*talk(8), user_message(REQUEST), reply], "openai-chat")
    assert any(message.get("content") == REQUEST for message in result.messages)


@each_format
@whole_history
def test_p20_p22_unanswered_request_stays_last(name: str, format: str) -> None:
    result = compacted(name, [*talk(8), user_message(REQUEST)], format)
    model = Executor()
    model(list(result.messages), format)
    assert model.executed == [REQUEST]
    assert check(list(result.messages), format, ready=True) == []


@each_format
@pytest.mark.parametrize("name", ["claude_code", "opencode", "codex"])
def test_p20_p22_request_in_progress_stays_with_what_is_done(name: str, format: str) -> None:
    """The unfinished tool loop stays; the archived steps of the same request are listed."""
    steps = [*step(1, "make image"), *step(2, "push image --tag 4.2"), *step(3, "deploy 4.2")]
    result = compacted(name, [*talk(8), user_message(REQUEST), *steps], format)
    text = shown(result, format)
    done = "### Done since the user's last message\n[18] ran: make image\n[20] ran: push image --tag 4.2\n"
    assert done in text
    assert "deploy 4.2" not in text
    context = decode_all(list(result.messages), format)[0]
    assert REQUEST in text and [call.id for message in context for call in message.calls] == ["c3"]


@each_format
@whole_history
def test_request_answered_after_a_compaction_within_its_turn_is_archived_in_the_next(name: str, format: str) -> None:
    steps = [*step(1, "make image"), *step(2, "deploy 4.2")]
    first = compacted(name, [*talk(8), user_message(REQUEST), *steps], format)
    assert REQUEST in shown(first, format)
    end = encode_all([assistant_message(REPLY + " It runs." * 400)], format)
    model = ScriptedModel("They deployed.")
    second = compact(
        preset=name,
        messages=[*first.messages, *end],
        trigger=always,
        summarizer=model,
        format=format,
        previous=first.checkpoint,
    )
    assert second.outcome is Outcome.COMPACTED
    executor = Executor()
    executor(list(second.messages), format)
    assert executor.executed == []
    assert REQUEST in shown(second, format)


@whole_history
def test_h3_quoted_request_is_read_back_without_the_checkpoint(name: str) -> None:
    """A process that has only the messages still knows the request, its number and the task."""
    messages = [*talk(8), user_message(REQUEST), assistant_message(REPLY)]
    first = compacted(name, messages, "openai-chat")
    more = encode_all([*talk(6), user_message(NEXT)], "openai-chat")
    again = compact([*first.messages, *more], budget=4_000, format="openai-chat", trigger=always)
    text = shown(again, "openai-chat")
    assert REQUEST in text and "q0 about the piers" in text


@whole_history
def test_answered_task_of_a_single_turn_is_still_the_task_in_the_next_round(name: str) -> None:
    reply = assistant_message(REPLY + " The piers are of oak." * 300)
    first = compacted(name, [user_message(REQUEST), reply], "openai-chat")
    assert shown(first, "openai-chat").count(REQUEST) == 1
    more = encode_all([*talk(6), user_message(NEXT)], "openai-chat")
    again = compact([*first.messages, *more], budget=4_000, format="openai-chat", trigger=always)
    assert f"## Task [1]\n{REQUEST}" in shown(again, "openai-chat")


def test_ledger_page_says_that_the_message_below_it_is_answered() -> None:
    """The fallback without a model keeps the newest user message where the reply does not fit."""
    broken = ScriptedModel(Failure("transport", "the line is dead"), repeat=True)
    messages = [*talk(8), user_message(REQUEST), assistant_message("It is deployed. " * 4_000)]
    result = compacted("claude_code", messages, "openai-chat", summarizer=broken, window=8_000)
    assert result.fallback == "ledger"
    assert "The user's message below has been answered." in shown(result, "openai-chat")


def test_p22_summary_is_marked_as_one_for_a_reader() -> None:
    """OpenCode's summary is an assistant message: without a mark, a person would take it for a reply."""
    result = compacted("opencode", talk(8), "openai-chat")
    first = result.messages[0]
    assert first["role"] == "assistant"
    assert first["content"].startswith("# Summary of the earlier conversation\n\nThey looked after the piers.")
    more = encode_all(talk(8), "openai-chat")
    model = ScriptedModel("They talked on.")
    compact(
        preset="opencode", messages=[*result.messages, *more], trigger=always, summarizer=model, format="openai-chat"
    )
    assert "# Summary of the earlier" not in model.calls[0].prompt, "the mark is not sent back as part of the summary"
    assert "They looked after the piers." in model.calls[0].prompt


SECTIONS = {
    "claude_code": ["Done", "In Progress", "Files", "Next Steps", "Requests and Constraints"],
    "claude_code_ts": ["Done", "In Progress", "Files", "Next Steps", "Requests and Constraints"],
    "codex": ["Progress and Decisions", "Context and Constraints", "Remaining Work", "References"],
    "opencode": ["Done", "Current Work", "Files Being Modified", "Next", "Lasting Requests", "Technical Decisions"],
    "pi": ["Goal", "Progress", "Files", "Next Steps", "Critical Data"],
    "goat": ["Earlier Work", "Key Decisions", "Key Facts"],
}
EMPHASIS = {
    "claude_code": "starts anew",
    "claude_code_ts": "starts anew",
    "codex": "another model takes this task over",
    "opencode": "all there is of this conversation",
    "pi": "absolute path",
    "goat": "the newer part stays visible",
}


@pytest.mark.parametrize("name", SECTIONS)
def test_p20_p21_p22_p8_g5_prompt_names_the_sections_of_its_document(name: str) -> None:
    model = ScriptedModel("They talked.")
    compacted(name, talk(60), "openai-chat", summarizer=model)
    prompt = model.calls[0].prompt
    assert [line[3:] for line in prompt.splitlines() if line.startswith("## ")] == SECTIONS[name]
    assert EMPHASIS[name] in prompt
    assert model.calls[0].system == SYSTEM_PROMPT, "the rules are shared"


def test_presets_with_free_text_have_prompts_of_their_own() -> None:
    tasks = {"claude_code": CLAUDE_CODE_TASK, "codex": CODEX_TASK, "opencode": OPENCODE_TASK, "pi": PI_TASK}
    assert len({*tasks.values(), GOAT_TASK}) == 5


def test_p2_last_reply_within_20_000_tokens_stays_in_a_small_window() -> None:
    """pi in a window of 60,000 tokens: a reply of 18,000 fits what it keeps."""
    reply = assistant_message("pier " * 14_400)
    messages = [*talk(60), user_message(REQUEST), reply]
    result = compacted("pi", messages, "openai-chat", window=60_000)
    assert list(result.messages[-2:]) == encode_all([user_message(REQUEST), reply], "openai-chat")
    assert result.tokens_after <= 30_000


@pytest.mark.parametrize(("reserve", "limit"), [(16_384, 13_107), (10_000, 8_000)])
def test_p8_summary_call_of_pi_may_use_four_fifths_of_the_reserve(reserve: int, limit: int) -> None:
    model = ScriptedModel("They talked.")
    result = compact(
        encode_all(talk(60), "openai-chat"), preset=preset("pi", reserve=reserve), trigger=always, summarizer=model
    )
    assert result.outcome is Outcome.COMPACTED
    assert [call.max_tokens for call in model.calls] == [limit]


SYSTEM = Message("system", (Text("You look after a harbour."),))


def test_l15_layer_shows_system_then_summary_then_the_last_ten() -> None:
    """L5, L15: the summary is an assistant message headed by its round."""
    messages = [SYSTEM, *talk(20)]
    model = ScriptedModel("### Current State\n- Working on: the piers", repeat=True)
    first = compacted("layer", messages, "openai-chat", summarizer=model)
    assert [message["role"] for message in first.messages[:2]] == ["system", "assistant"]
    assert first.messages[1]["content"].startswith("## Session Summary (Compaction Round 1)\n\n### Original Task\nq0 ")
    assert list(first.messages[2:]) == encode_all(messages[-10:], "openai-chat")
    more = [*first.messages, *encode_all(talk(12), "openai-chat")]
    second = compact(preset="layer", messages=more, trigger=always, summarizer=model, previous=first.checkpoint)
    assert second.messages[1]["content"].startswith("## Session Summary (Compaction Round 2)\n\n### Original Task\nq0 ")
    assert "This summary takes in 1 earlier round." in second.messages[1]["content"]


def test_w10_workstream_shows_the_summary_as_first_system_message_after_the_prompt() -> None:
    """W3, W10: the last six messages follow; before the first compaction there is no such message."""
    messages = [SYSTEM, *talk(20)]
    given = encode_all(messages, "openai-chat")
    unchanged = compact(preset="workstream", messages=given, summarizer=ScriptedModel("never asked"))
    assert (unchanged.outcome, list(unchanged.messages)) == (Outcome.NOT_NEEDED, given)
    answer = '{"summary": "KEY FACTS:\\n- The piers are of oak.", "state_delta": {}}'
    result = compacted("workstream", messages, "openai-chat", summarizer=ScriptedModel(answer))
    assert result.messages[0] == given[0]
    assert result.messages[1]["role"] == "system"
    assert result.messages[1]["content"].startswith("Compacted context summary:\n\nKEY FACTS:\n- The piers are of oak.")
    assert list(result.messages[2:]) == given[-6:]


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_w10_summary_is_a_user_message_where_messages_have_no_system_role(format: str) -> None:
    model = ScriptedModel('{"summary": "KEY FACTS:\\n- The piers are of oak.", "state_delta": {}}')
    first = decode_all(list(compacted("workstream", talk(20), format, summarizer=model).messages), format)[0][0]
    assert (first.role, is_note(first)) == ("user", True)
    assert first.text.startswith("Compacted context summary:")


def test_w4_workstream_reads_only_the_tools_of_its_document() -> None:
    tools = ("userQuestions", "proceedInOnboarding", "linearCreateIssue", "bash", "userQuestionsLater")
    calls = tuple(ToolCall(f"c{at}", tool, {"of": tool}) for at, tool in enumerate(tools))
    results = tuple(ToolResult(call.id, (Text(f"result of {call.name}"),), False, call.name) for call in calls)
    model = ScriptedModel('{"summary": "KEY FACTS: none", "state_delta": {}}')
    messages = [user_message("Go."), Message("assistant", calls), Message("tool", results), *talk(20)]
    compacted("workstream", messages, "openai-chat", summarizer=model)
    read = [tool for tool in tools if f"result of {tool}\n" in model.calls[0].prompt]
    assert read == ["userQuestions", "proceedInOnboarding", "linearCreateIssue"]


def test_g_claude_code_ts_keeps_the_newest_half() -> None:
    messages = talk(20)
    result = compacted("claude_code_ts", messages, "openai-chat")
    assert list(result.messages[1:]) == encode_all(messages[20:], "openai-chat")
    assert "They looked after the piers." in result.messages[0]["content"]


def test_g_claude_code_ts_does_not_split_tool_pairs() -> None:
    messages = [*talk(8), user_message(REQUEST), *step(1, "make"), *step(2, "deploy")]
    result = compacted("claude_code_ts", messages, "anthropic")
    assert check(list(result.messages), "anthropic", ready=True) == []


@pytest.mark.parametrize("answer", [Failure("transport", "the line is dead"), ""], ids=["an error", "nothing"])
def test_g_claude_code_ts_raises_an_error_if_the_model_fails(answer: Any) -> None:
    """The document: a hard error, where Goat truncates."""
    given = encode_all(talk(20), "openai-chat")
    with pytest.raises(SummaryFailed, match=r"The compaction failed, nothing has changed: .+ Compact again") as raised:
        compact(preset="claude_code_ts", messages=given, trigger=always, summarizer=ScriptedModel(answer, repeat=True))
    assert ("the line is dead" if answer else "blank") in raised.value.why


@pytest.mark.anyio
async def test_g_claude_code_ts_failure_leaves_the_session_as_it_was() -> None:
    broken = ScriptedModel(Failure("auth", "no key"), repeat=True)
    async with SessionService(MemoryStore(), preset="claude_code_ts", summarizer=broken) as sessions:
        session = await sessions.create(format="openai-chat")
        await sessions.append(session.id, encode_all(talk(20), "openai-chat"))
        with pytest.raises(SummaryFailed, match="no key"):
            await sessions.compact(session.id, always)
        assert list(await sessions.context(session.id)) == encode_all(talk(20), "openai-chat")
        await sessions.append(session.id, encode_all([user_message(NEXT)], "openai-chat"))
