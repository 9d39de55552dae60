"""`Keeper` around the steps of an agent loop (G2, G3, L11, L12, P3).

Behaviours refer to the study of coding agents (docs/requirements.md).
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from keeper_conversations import TASK, assistant_message, open_keeper, tool_call, tool_result, tool_steps, user_message

from carried_rounds import forgetful
from holdfast import Abort, MemoryStore, Outcome, SessionService, check
from holdfast.agent import Keeper
from holdfast.compaction.presets import PRESETS
from holdfast.errors import InvalidInput
from holdfast.hooks.events import CompactionCompleted, CompactionEvent, Continued
from holdfast.messages import ToolCall, decode_all, is_note
from holdfast.models import Failure, Reply, ScriptedModel
from holdfast.models.calls import StepReply
from holdfast.sessions.continuation import CONTINUE_PROMPT
from holdfast.sessions.steps import AUTO_COMPACTION_OFF
from holdfast.strategies.read_back import read_note
from holdfast.tokens import Usage

pytestmark = pytest.mark.anyio
TOO_LONG = Failure("overflow", "prompt is too long")


def texts(messages: Any) -> str:
    return "\n".join(str(message.get("content")) for message in messages)


async def compactions(keeper: Keeper) -> int:
    return len(await keeper.sessions.events(keeper.session_id, kind="compaction"))


# -- before a step ---------------------------------------------------------------------------------------


async def test_g2_context_that_fits_is_unchanged() -> None:
    keeper = await open_keeper([user_message(), *tool_steps(3)])
    context = await keeper.prepare_step()
    assert list(context) == [user_message(), *tool_steps(3)]
    assert await compactions(keeper) == 0


async def test_g2_full_window_is_compacted_before_the_step() -> None:
    keeper = await open_keeper([user_message(), *tool_steps(20)])
    context = await keeper.prepare_step()
    assert context.tokens < 8_000 * 0.6
    assert TASK in texts(context)
    assert not check(list(context), "openai-chat")
    assert await compactions(keeper) == 1


async def test_ledger_without_a_summarizer_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    keeper = await open_keeper([user_message(), *tool_steps(20)])
    await keeper.prepare_step()
    assert await compactions(keeper) == 1
    assert [record for record in caplog.records if record.levelname != "INFO"] == []


async def test_next_step_after_a_compaction_does_not_compact() -> None:
    """(behaviour 21)"""
    keeper = await open_keeper([user_message(), *tool_steps(20)])
    first = await keeper.prepare_step()
    await keeper.on_step_finish(tool_call(20))
    await keeper.sessions.append(keeper.session_id, tool_result(20))
    second = await keeper.prepare_step()
    assert await compactions(keeper) == 1
    assert second[: len(first)] == list(first), "the prompt cache holds"


async def test_p22_continue_prompt_only_for_unfinished_work() -> None:
    heard: list[CompactionEvent] = []
    working = await open_keeper([user_message(), *tool_steps(20)], listen=heard.append)
    context = await working.prepare_step()
    assert CONTINUE_PROMPT in texts(context[-1:])
    assert isinstance(heard[-1], Continued)
    asked = await open_keeper([user_message(), *tool_steps(20), assistant_message(), user_message("And the lights?")])
    context = await asked.prepare_step()
    assert list(context)[-1] == user_message("And the lights?")


async def test_compaction_after_finished_work_adds_no_continue_prompt() -> None:
    """(behaviour 22)"""
    keeper = await open_keeper([user_message(), *tool_steps(20), assistant_message()])
    assert await keeper.compact_if_due()
    assert CONTINUE_PROMPT not in texts(await keeper.context())


async def test_reply_that_was_cut_off_continues_after_a_whole_history_summary() -> None:
    """G3, P20: the partial reply is archived with its request, so that only the prompt says what to do."""
    conversation = [user_message(), *tool_steps(20), assistant_message("The lights of pier 4 are")]
    keeper = await open_keeper(conversation, preset="claude_code", summarizer=ScriptedModel("They mended lights."))
    assert (await keeper.compact_if_full())[0] == "go_on"
    context = list(await keeper.context())
    assert CONTINUE_PROMPT in texts(context[-1:])
    assert f"### The reply to it\n[{len(conversation)}] The lights of pier 4 are" in texts(context)


async def test_p22_continue_prompt_is_not_a_turn_and_is_archived() -> None:
    keeper = await open_keeper([user_message(), *tool_steps(20)])
    for number in range(20, 44):
        await keeper.prepare_step()
        await keeper.on_step_finish(tool_call(number))
        await keeper.sessions.append(keeper.session_id, tool_result(number))
    assert await compactions(keeper) > 2
    context = await keeper.context()
    assert texts(context).count(CONTINUE_PROMPT) == 1, "the trail of earlier compactions shows it already"
    assert texts(context).count(TASK) >= 1, "the newest user message is still the task"


async def test_l11_failing_compaction_does_not_break_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = await open_keeper([user_message(), *tool_steps(20)])

    async def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(keeper.sessions.store, "append", broken)
    context = await keeper.prepare_step()
    assert list(context) == [user_message(), *tool_steps(20)]


async def test_failing_summarizer_falls_back_to_the_ledger() -> None:
    """(behaviour 20)"""
    model = ScriptedModel(Failure("transport", "the line is dead"), repeat=True)
    keeper = await open_keeper([user_message(), *tool_steps(20)], summarizer=model)
    context = await keeper.prepare_step()
    assert context.tokens < 8_000 * 0.6
    assert TASK in texts(context)


async def test_context_over_the_window_is_compacted_without_a_model_whatever_the_preset_does() -> None:
    """Pi leaves the context as it is where its model fails, for the user to decide: the provider would refuse it."""
    model = ScriptedModel(Failure("auth", "no key"), repeat=True)
    keeper = await open_keeper([user_message(), *tool_steps(40)], preset="pi", summarizer=model)
    assert (await keeper.context()).tokens > 8_000
    context = await keeper.prepare_step()
    assert model.calls and context.tokens < 8_000 and TASK in texts(context)
    assert not check(list(context), "openai-chat")


async def test_p2_auto_off_does_not_compact() -> None:
    keeper = await open_keeper([user_message(), *tool_steps(20)], auto=False)
    assert list(await keeper.prepare_step()) == [user_message(), *tool_steps(20)]


async def test_w13_step_waits_for_a_running_compaction() -> None:
    release = anyio.Event()
    order: list[str] = []

    class Slow:
        name = "slow"

        async def __call__(self, call: Any, on_delta: Any) -> Reply:
            order.append("asked")
            await release.wait()
            order.append("answered")
            return Reply("## Completed Work\n- Berths were read.\n## Pending Work\n- The rest of the berths.")

    keeper = await open_keeper([user_message(), *tool_steps(20)], summarizer=Slow())
    async with anyio.create_task_group() as group:
        group.start_soon(keeper.compact)
        await anyio.wait_all_tasks_blocked()

        async def step() -> None:
            context = await keeper.prepare_step()
            order.append("prepared")
            assert context.tokens < 8_000 * 0.7

        group.start_soon(step)
        await anyio.wait_all_tasks_blocked()
        await keeper.sessions.append(keeper.session_id, user_message("One more thing."))
        release.set()
    assert order == ["asked", "answered", "prepared"]
    assert "One more thing." in texts(await keeper.context()), "messages appended meanwhile are kept"


@pytest.mark.parametrize("window", [1, 2, 100, 16_384, 20_000])
async def test_window_smaller_than_the_reserve_gives_a_valid_context(window: int) -> None:
    """(behaviour 14)"""
    keeper = await open_keeper([user_message(), *tool_steps(20)], window=window)
    context = await keeper.prepare_step()
    assert len(context) > 0
    assert not check(list(context), "openai-chat")


@pytest.mark.parametrize("window", [0, -5, "many", True])
async def test_invalid_window_is_rejected(window: Any) -> None:
    """(behaviour 14)"""
    with pytest.raises(InvalidInput, match="window must be a whole number"):
        await open_keeper([], window=window)


async def test_unknown_model_uses_preset_window_until_an_error_reports_one() -> None:
    """(behaviour 14)"""
    keeper = await open_keeper([user_message(), *tool_steps(20)], model="nobody/knows-this", window=None)
    assert (await keeper.size()).window == (await keeper.policy()).usual_window
    await keeper.on_overflow(Failure("overflow", "too long", window=6_000))
    assert (await keeper.size()).window == 6_000


# -- overflow and length -----------------------------------------------------------------------------------


async def test_g3_overflow_compacts_and_allows_one_retry() -> None:
    keeper = await open_keeper([user_message(), *tool_steps(6)])
    before = await keeper.prepare_step()
    recovery = await keeper.on_overflow(TOO_LONG)
    assert recovery.retry and recovery.context is not None
    assert recovery.context.tokens < before.tokens
    assert not check(list(recovery.context), "openai-chat")
    again = await keeper.on_overflow(TOO_LONG)
    assert not again.retry and "again" in again.why


async def test_overflow_retry_is_allowed_again_after_a_reply() -> None:
    """(behaviour 5)"""
    keeper = await open_keeper([user_message(), *tool_steps(8)])
    assert (await keeper.on_overflow(TOO_LONG)).retry
    await keeper.on_step_finish(tool_call(8))
    await keeper.sessions.append(keeper.session_id, [tool_result(8), *tool_steps(8, 9)])
    assert (await keeper.on_overflow(TOO_LONG)).retry


async def test_overflow_that_cannot_shrink_is_not_retried() -> None:
    """(behaviour 5)"""
    keeper = await open_keeper([user_message("A single question.")])
    recovery = await keeper.on_overflow(TOO_LONG)
    assert not recovery.retry and "smaller" in recovery.why


async def test_overflow_after_streaming_is_not_retried() -> None:
    """(behaviour 5)"""
    keeper = await open_keeper([user_message(), *tool_steps(6)])
    recovery = await keeper.on_overflow(TOO_LONG, streamed=True)
    assert not recovery.retry and "twice" in recovery.why
    assert await compactions(keeper) == 0


@pytest.mark.parametrize(
    "failure", [Failure("transport", "429 rate limit reached"), Failure("auth", "no"), Failure("request", "bad")]
)
async def test_rate_limit_is_not_an_overflow(failure: Failure) -> None:
    """(behaviour 4)"""
    keeper = await open_keeper([user_message(), *tool_steps(6)])
    recovery = await keeper.on_overflow(failure)
    assert not recovery.retry and failure.why in recovery.why
    assert await compactions(keeper) == 0


async def test_sdk_exception_is_classified_as_overflow() -> None:
    """(behaviour 4)"""

    class BadRequest(Exception):
        status_code = 400

        @property
        def body(self) -> Any:
            return {"error": {"message": "prompt is too long: 9000 tokens > 5000 maximum"}}

    keeper = await open_keeper([user_message(), *tool_steps(6)])
    assert (await keeper.on_overflow(BadRequest("Error code: 400"))).retry
    assert (await keeper.size()).window == 5_000


async def test_auto_off_applies_to_overflow_and_length() -> None:
    """(behaviour 16)"""
    keeper = await open_keeper([user_message(), *tool_steps(6)], auto=False)
    recovery = await keeper.on_overflow(TOO_LONG)
    assert (recovery.retry, recovery.why) == (False, AUTO_COMPACTION_OFF)
    full = await open_keeper([user_message(), *tool_steps(20)], auto=False)
    assert (await full.on_length(assistant_message("I was cut"))).why == AUTO_COMPACTION_OFF
    assert await compactions(keeper) == await compactions(full) == 0


async def test_g3_open_breaker_does_not_block_overflow_recovery() -> None:
    model = ScriptedModel(Failure("auth", "no key"), repeat=True)
    keeper = await open_keeper([user_message(), *tool_steps(8)], summarizer=model, preset="pi")
    for _ in range(4):
        await keeper.compact_if_due()
    assert (await keeper.on_overflow(TOO_LONG)).retry, "the ledger needs no model"


def cut_reply(arguments: str = '{"path": "/harbor/ber') -> StepReply:
    whole = tool_call(90)["tool_calls"][0]
    broken = {"id": "call_x", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
    message = {"role": "assistant", "content": "Both at once.", "tool_calls": [whole, broken]}
    calls = (
        ToolCall("call_90", "read_file", whole["function"]["arguments"]),
        ToolCall("call_x", "read_file", arguments),
    )
    return StepReply((message,), "Both at once.", calls, "length", Usage(input=7_000, output=400))


async def test_g3_incomplete_call_is_dropped_and_others_kept() -> None:
    keeper = await open_keeper([user_message(), *tool_steps(2)])
    cut = await keeper.on_length(cut_reply())
    assert [call.id for call in cut.calls] == ["call_90"]
    assert [call["id"] for call in cut.messages[0]["tool_calls"]] == ["call_90"]
    stored = cut.events[-1].body["message"]
    assert [call["id"] for call in stored["tool_calls"]] == ["call_90"]
    assert stored["content"] == "Both at once."


async def test_g3_length_with_room_left_returns_max_tokens() -> None:
    keeper = await open_keeper([user_message(), *tool_steps(2)], window=100_000)
    cut = await keeper.on_length(assistant_message("This was too lo"))
    assert cut.status == "max_tokens" and "of the window in use" in cut.why
    assert await compactions(keeper) == 0


async def test_g3_length_in_full_window_compacts_once() -> None:
    keeper = await open_keeper([user_message(), *tool_steps(20)])
    cut = await keeper.on_length(assistant_message("The first half of the ans"))
    assert cut.status == "go_on"
    context = await keeper.context()
    assert "The first half of the ans" in texts(context)
    assert CONTINUE_PROMPT in texts(context[-1:])
    await keeper.sessions.append(keeper.session_id, tool_steps(20, 40))
    again = await keeper.on_length(assistant_message("The second half of the an"))
    assert again.status == "max_tokens" and "again" in again.why


async def test_g3_reply_with_only_incomplete_calls_stores_nothing() -> None:
    keeper = await open_keeper([user_message()])
    message = {**tool_call(1), "content": None}
    message["tool_calls"][0]["function"]["arguments"] = '{"path": "/har'
    cut = await keeper.on_length([message])
    assert cut.messages == [] and cut.events == []


# -- after a step, and without a session ---------------------------------------------------------------------


async def test_p3_provider_usage_overrides_the_estimate() -> None:
    keeper = await open_keeper([user_message()])
    await keeper.on_step_finish(assistant_message("Hello."), {"prompt_tokens": 7_900, "completion_tokens": 50})
    assert (await keeper.context()).tokens == 7_950


async def test_usage_from_before_a_compaction_is_ignored() -> None:
    """(behaviour 3)"""
    keeper = await open_keeper([user_message(), *tool_steps(6)])
    await keeper.on_step_finish(assistant_message(), {"input_tokens": 7_900, "output_tokens": 50})
    await keeper.sessions.append(keeper.session_id, user_message("And now?"))
    assert (await keeper.prepare_step()).tokens < 7_000
    await keeper.prepare_step()
    assert await compactions(keeper) == 1


async def test_aborted_compaction_changes_nothing() -> None:
    """(behaviour 12)"""
    abort = Abort()

    def stops(call: Any) -> str:
        abort()
        return "never read"

    keeper = await open_keeper([user_message(), *tool_steps(20)], summarizer=ScriptedModel(stops, repeat=True))
    before = list(await keeper.context())
    result = await keeper.compact(abort=abort)
    assert result.outcome is Outcome.ABORTED
    assert list(await keeper.context()) == before
    assert await compactions(keeper) == 0


async def test_message_list_stays_inside_the_window() -> None:
    heard: list[CompactionEvent] = []
    keeper = Keeper(window=8_000, listen=heard.append)
    history = [user_message()]
    for number in range(60):
        context = await keeper.prepare_step(history)
        assert context.tokens < 8_000
        assert not check(list(context), "openai-chat")
        await keeper.on_step_finish(tool_call(number), {"prompt_tokens": context.tokens, "completion_tokens": 20})
        history += [tool_call(number), tool_result(number)]
    assert sum(isinstance(event, CompactionCompleted) for event in heard) > 2
    await keeper.prepare_step(history)
    assert len(await keeper.sessions.events(keeper.session_id, kind="message", archived=None)) >= len(history)


async def test_message_list_extending_the_result_is_the_same_session() -> None:
    keeper = Keeper(window=8_000)
    messages: list[Any] = [user_message(), *tool_steps(20)]
    sent = list(await keeper.prepare_step(messages))
    session = keeper.session_id
    await keeper.prepare_step([*sent, tool_call(20), tool_result(20)])
    assert keeper.session_id == session
    await keeper.prepare_step([user_message("Something else.")])
    assert keeper.session_id != session, "a rewritten list is another conversation"


async def test_invalid_arguments_raise_invalid_input() -> None:
    with pytest.raises(InvalidInput, match="sessions="):
        Keeper(session_id="s")
    with pytest.raises(InvalidInput, match=r"pass them to create\(\)"):
        Keeper(SessionService(MemoryStore()), "s", system="Be brief.")
    with pytest.raises(InvalidInput, match=r"pass them to create\(\)"):
        Keeper(SessionService(MemoryStore()), "s", tools=[])
    with pytest.raises(InvalidInput, match="No messages"):
        await Keeper().prepare_step()
    with pytest.raises(InvalidInput, match="preset"):
        Keeper(SessionService(MemoryStore()), "s", preset="codexx")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("preset", sorted(PRESETS.keys() - {"amp"}))
async def test_h3_restarted_keeper_continues_from_the_list_alone(preset: str) -> None:
    """The list may continue from what was returned, in another process too."""
    messages: list[Any] = [user_message(), *tool_steps(20)]
    sent: list[Any] = []
    for round in range(1, 4):
        keeper = Keeper(preset=preset, window=8_000, summarizer=forgetful())
        sent = json.loads(json.dumps(list(await keeper.prepare_step(messages))))
        assert all(str(message).count("[holdfast:") <= 1 for message in sent)
        notes = [note for note in decode_all(sent)[0] if is_note(note)]
        assert max(read_note(note).round for note in notes) == round
        messages = [*sent, assistant_message(), user_message(f"And part {round}?"), *tool_steps(20, 100 * round)]
    assert TASK in texts(sent)
    assert "/harbor/berth_3.txt" in {file.path for note in notes for file in read_note(note).files}
