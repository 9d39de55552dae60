"""Roles that alternate, for models whose chat template refuses two messages of one role in a row."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from chat_templates import Messages, gemma, mistral
from holdfast import Keeper, MemoryStore, SessionService, SlidingWindow, SQLiteStore, check, compact, repair
from holdfast.compaction import PRESETS
from holdfast.errors import InvalidInput
from holdfast.messages import ACKNOWLEDGED, CONTINUE, framed_message
from holdfast.models import ScriptedModel
from holdfast.triggers import always

USER, REPLY = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}
SYSTEM = {"role": "system", "content": "be brief"}
NOTE = {"role": "user", "content": framed_message("notes").text}
ACK = {"role": "assistant", "content": ACKNOWLEDGED.text}
GO_ON = {"role": "user", "content": CONTINUE.text}
LONG = "some words of a long answer " * 30


def call(name: str) -> Messages:
    made = [{"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}}]
    return [
        {"role": "assistant", "content": None, "tool_calls": made},
        {"role": "tool", "tool_call_id": name, "content": LONG},
    ]


CALL, RESULT = call("a")
REPAIRED: dict[str, tuple[Messages, Messages]] = {
    "two of the user": ([USER, USER], [USER, ACK, USER]),
    "two of the assistant": ([USER, REPLY, REPLY], [USER, REPLY, GO_ON, REPLY]),
    "words, then a call": ([USER, REPLY, CALL, RESULT], [USER, REPLY, GO_ON, CALL, RESULT]),
    "the user after a result": ([USER, CALL, RESULT, USER], [USER, CALL, RESULT, ACK, USER]),
    "a note and the user": ([NOTE, USER, REPLY], [{"role": "user", "content": f"{NOTE['content']}\n\nhi"}, REPLY]),
    "two notes and parts of the user": (
        [NOTE, NOTE, {"role": "user", "name": "ann", "content": [{"type": "text", "text": "hi", "cache_control": {}}]}],
        [
            {
                "role": "user",
                "name": "ann",
                "content": [
                    {"type": "text", "text": f"{NOTE['content']}\n\n{NOTE['content']}"},
                    {"type": "text", "text": "hi", "cache_control": {}},
                ],
            }
        ],
    ),
    "a note after the user": ([USER, NOTE], [USER, ACK, NOTE]),
    "two system messages": ([SYSTEM, SYSTEM, USER], [{"role": "system", "content": "be brief\n\nbe brief"}, USER]),
}


@pytest.mark.parametrize(("messages", "expected"), REPAIRED.values(), ids=REPAIRED)
def test_repair_makes_roles_alternate(messages: Messages, expected: Messages) -> None:
    report: list[str] = []
    assert check(messages, "openai-chat") == []
    assert check(messages, "openai-chat", alternating=True) != []
    assert repair(messages, "openai-chat", alternating=True, report=report) == expected
    assert check(expected, "openai-chat", alternating=True) == []
    assert repair(expected, "openai-chat", alternating=True) == expected
    assert mistral(expected) == ""
    assert report


def test_check_names_the_two_roles() -> None:
    (problem,) = check([USER, CALL, RESULT, USER], "openai-chat", alternating=True)
    assert str(problem) == "message 3: the user message follows the tool's: user and assistant must alternate"


def test_system_message_from_mid_conversation_is_quoted() -> None:
    repaired = repair([USER, REPLY, SYSTEM, USER], "openai-chat", alternating=True)
    assert [one["role"] for one in repaired] == ["user", "assistant", "user"]
    assert "be brief" in repaired[2]["content"]
    assert repaired[2]["content"].endswith("\n\nhi")


@pytest.mark.parametrize("format", ["openai-responses"])
def test_items_have_no_roles_that_could_alternate(format: str) -> None:
    with pytest.raises(InvalidInput, match="no roles that could alternate"):
        check([USER], format, alternating=True)


@given(data=st.data())
@settings(max_examples=min(150, settings().max_examples))
def test_repaired_histories_alternate(data: st.DataObject) -> None:
    messages = data.draw(histories.wire("openai-chat", broken=True))
    repaired = repair(messages, "openai-chat", alternating=True)
    assert mistral(_undeveloped(repaired)) == ""
    assert check(repaired, "openai-chat", alternating=True) == []
    assert repair(repaired, "openai-chat", alternating=True) == repaired


def _undeveloped(messages: Messages) -> Messages:
    """A developer's message is a system message."""
    return [one | {"role": "system"} if one["role"] == "developer" else one for one in messages]


def conversation(turns: int) -> Messages:
    """A conversation that a template accepts; some turns call tools."""
    messages: Messages = [SYSTEM]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn}: {LONG}"})
        messages += call(f"c{turn}") if turn % 3 == 1 else []
        messages.append({"role": "assistant", "content": f"answer {turn}: {LONG}"})
    return messages


@pytest.mark.parametrize("last", [[USER], [USER, *call("z")], []], ids=["user", "result", "reply"])
@pytest.mark.parametrize("preset", PRESETS)
def test_compaction_by_every_preset_alternates(preset: str, last: Messages) -> None:
    model = ScriptedModel("They talked about questions and answers.", repeat=True)
    options: dict[str, Any] = {"preset": preset, "target": 1_200, "summarizer": model, "trigger": always}
    result = compact(conversation(12) + last, alternating=True, format="openai-chat", **options)
    assert mistral(result.messages) == ""
    assert check(result.messages, "openai-chat", alternating=True) == []


@pytest.mark.parametrize("strategy", ["sliding:4", "sliding:7", "turns:2", "tokens:900", "last:5", "fraction:0.3"])
def test_compaction_of_plain_talk_suits_every_template(strategy: str) -> None:
    talk = [one for one in conversation(12) if one["role"] != "tool" and not one.get("tool_calls")]
    result = compact([*talk, USER], budget=10**6, strategy=strategy, trigger=always, alternating=True)
    assert result.archived
    assert mistral(result.messages) == gemma(result.messages) == ""


def test_every_step_of_a_list_extends_the_one_before() -> None:
    """H6, with what the caller passes back: the last result's messages and what came after."""
    messages, checkpoint, compacted = [SYSTEM, USER], None, 0
    sent: Messages = []
    for step in range(40):
        result = compact(
            messages, budget=3_000, target=1_200, previous=checkpoint, alternating=True, format="openai-chat"
        )
        assert mistral(result.messages) == ""
        if result.outcome == "compacted":
            compacted += 1
        else:
            assert result.messages[: len(sent)] == sent
        sent, checkpoint = result.messages, result.checkpoint
        messages = [*sent, {"role": "assistant", "content": f"answer {step}"}]
        messages += [{"role": "user", "content": f"question {step}: {LONG}"}]
        messages += [{"role": "user", "content": f"and {step}"}] if step % 3 == 0 else []
        messages += call(f"c{step}") if step % 2 else []
    assert compacted > 2


@pytest.mark.anyio
async def test_contexts_of_a_session_alternate_and_extend_each_other() -> None:
    async with SessionService(MemoryStore()) as sessions:
        session = await sessions.create(format="openai-chat", alternating=True)
        sent: list[Messages] = []
        history = [*conversation(4)[1:], USER, *call("x"), USER, REPLY, USER, USER, REPLY]
        for place, message in enumerate(history):
            if message["role"] == "assistant" and place:
                sent.append(list(await sessions.context(session.id)))
            if place == 8:
                await sessions.compact(session.id, always, SlidingWindow(4))
                sent.clear()
            await sessions.append(session.id, message)
        context = list(await sessions.context(session.id))
        assert all(mistral(messages) == "" for messages in [*sent, context])
        assert all(later[: len(earlier)] == earlier for earlier, later in pairwise([*sent, context]))
        assert await sessions.verify(session.id) == []
        view = await (await sessions._live(session.id)).view()
        assert view.turn_count == sum(one["role"] == "user" and "Notes" not in one["content"] for one in context)


@pytest.mark.anyio
async def test_store_fork_and_export_keep_that_roles_alternate(tmp_path: Any) -> None:
    async with SessionService(SQLiteStore(tmp_path / "s.db")) as sessions:
        session = await sessions.create(alternating=True)
        await sessions.append(session.id, [USER, USER])
        fork = await sessions.fork(session.id)
        copied = await sessions.import_(await sessions.export(session.id), id="copy")
        for id in (session.id, fork.id, copied.id):
            assert list(await sessions.context(id)) == [USER, ACK, USER]


@pytest.mark.anyio
@pytest.mark.parametrize("own", [True, False], ids=["own list", "returned list"])
async def test_keeper_returns_messages_that_alternate(own: bool) -> None:
    keeper = Keeper(window=8_000, preset="holdfast", alternating=True, format="openai-chat")
    messages: Messages = [USER, USER]
    for step in range(30):
        context = await keeper.prepare_step(messages)
        assert mistral(list(context)) == ""
        reply = {"role": "assistant", "content": f"{step}: {LONG}"}
        messages = [*(messages if own else context), reply, *[USER] * (1 + step % 2)]
    assert context.is_compacted


def test_tokens_count_what_is_put_in_between() -> None:
    plain = compact([USER, USER], budget=10**6, format="openai-chat")
    alternating = compact([USER, USER], budget=10**6, format="openai-chat", alternating=True)
    assert alternating.messages == [USER, ACK, USER]
    assert alternating.tokens_before > plain.tokens_before
