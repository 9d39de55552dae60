"""What a keeper does around the steps of any loop (G2, G3, L11, L12, P3).

Behaviours are those of the study of coding agents (docs/requirements.md).
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from loops import TASK, answers, asks, finds, keeper_of, reads, worked

from holdfast import Abort, Failure, InvalidInput, MemoryStore, Outcome, Reply, ScriptedModel, SessionService, check
from holdfast.agent import Keeper
from holdfast.agent.keeper import OFF
from holdfast.agent.nudge import GO_ON
from holdfast.calls import StepReply
from holdfast.hooks.events import CompactionCompleted, CompactionEvent, Continued
from holdfast.messages import ToolCall
from holdfast.tokens import Usage

pytestmark = pytest.mark.anyio
TOO_LONG = Failure("overflow", "prompt is too long")


def texts(messages: Any) -> str:
    return "\n".join(str(message.get("content")) for message in messages)


async def compactions(keeper: Keeper) -> int:
    return len(await keeper.sessions.events(keeper.session_id, kind="compaction"))


# -- before a step ---------------------------------------------------------------------------------------


async def test_g2_a_context_that_fits_is_sent_as_it_is() -> None:
    keeper = await keeper_of([asks(), *worked(3)])
    context = await keeper.prepare_step()
    assert list(context) == [asks(), *worked(3)]
    assert await compactions(keeper) == 0


async def test_g2_a_full_window_is_compacted_before_the_model_is_asked() -> None:
    keeper = await keeper_of([asks(), *worked(20)])
    context = await keeper.prepare_step()
    assert context.tokens < 8_000 * 0.6
    assert TASK in texts(context)
    assert not check(list(context), "openai-chat")
    assert await compactions(keeper) == 1


async def test_without_a_summarizer_the_ledger_is_nothing_to_complain_about(caplog: pytest.LogCaptureFixture) -> None:
    keeper = await keeper_of([asks(), *worked(20)])
    await keeper.prepare_step()
    assert await compactions(keeper) == 1
    assert [record for record in caplog.records if record.levelname != "INFO"] == []


async def test_the_next_step_does_not_compact_again() -> None:
    """(behaviour 21)"""
    keeper = await keeper_of([asks(), *worked(20)])
    first = await keeper.prepare_step()
    await keeper.on_step_finish(reads(20))
    await keeper.sessions.append(keeper.session_id, finds(20))
    second = await keeper.prepare_step()
    assert await compactions(keeper) == 1
    assert second[: len(first)] == list(first), "the prompt cache holds"


async def test_p22_unfinished_work_is_told_to_go_on_and_a_new_question_is_not() -> None:
    heard: list[CompactionEvent] = []
    working = await keeper_of([asks(), *worked(20)], listen=heard.append)
    context = await working.prepare_step()
    assert GO_ON in texts(context[-1:])
    assert isinstance(heard[-1], Continued)
    asked = await keeper_of([asks(), *worked(20), answers(), asks("And the lights?")])
    context = await asked.prepare_step()
    assert list(context)[-1] == asks("And the lights?")


async def test_finished_work_is_compacted_and_nothing_goes_on() -> None:
    """(behaviour 22)"""
    keeper = await keeper_of([asks(), *worked(20), answers()])
    assert await keeper.compact_if_due()
    assert GO_ON not in texts(await keeper.context())


async def test_p22_telling_it_to_go_on_is_no_turn_and_goes_with_what_it_stood_beside() -> None:
    keeper = await keeper_of([asks(), *worked(20)])
    for number in range(20, 80):
        await keeper.prepare_step()
        await keeper.on_step_finish(reads(number))
        await keeper.sessions.append(keeper.session_id, finds(number))
    assert await compactions(keeper) > 2
    context = await keeper.context()
    assert texts(context).count(GO_ON) <= 1
    assert texts(context).count(TASK) >= 1, "the newest words of the user are still the task"


async def test_l11_a_compaction_that_breaks_does_not_break_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = await keeper_of([asks(), *worked(20)])

    async def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(keeper.sessions, "compact", broken)
    context = await keeper.prepare_step()
    assert list(context) == [asks(), *worked(20)]


async def test_a_summarizer_that_fails_is_replaced_by_the_ledger() -> None:
    """(behaviour 20)"""
    model = ScriptedModel(Failure("transport", "the line is dead"), repeat=True)
    keeper = await keeper_of([asks(), *worked(20)], summarizer=model)
    context = await keeper.prepare_step()
    assert context.tokens < 8_000 * 0.6
    assert TASK in texts(context)


async def test_p2_nothing_is_compacted_where_it_is_turned_off() -> None:
    keeper = await keeper_of([asks(), *worked(20)], auto=False)
    assert list(await keeper.prepare_step()) == [asks(), *worked(20)]


async def test_w13_a_step_waits_for_a_compaction_that_is_running() -> None:
    release = anyio.Event()
    order: list[str] = []

    class Slow:
        name = "slow"

        async def __call__(self, call: Any, on_delta: Any) -> Reply:
            order.append("asked")
            await release.wait()
            order.append("answered")
            return Reply("## Completed Work\n- Berths were read.\n## Pending Work\n- The rest of the berths.")

    keeper = await keeper_of([asks(), *worked(20)], summarizer=Slow())
    async with anyio.create_task_group() as group:
        group.start_soon(keeper.compact)
        await anyio.wait_all_tasks_blocked()

        async def step() -> None:
            context = await keeper.prepare_step()
            order.append("prepared")
            assert context.tokens < 8_000 * 0.7

        group.start_soon(step)
        await anyio.wait_all_tasks_blocked()
        await keeper.sessions.append(keeper.session_id, asks("One more thing."))
        release.set()
    assert order == ["asked", "answered", "prepared"]
    assert "One more thing." in texts(await keeper.context()), "what is said meanwhile is not lost"


@pytest.mark.parametrize("window", [1, 2, 100, 16_384, 20_000])
async def test_a_window_smaller_than_any_reserve_ends_well(window: int) -> None:
    """(behaviour 14)"""
    keeper = await keeper_of([asks(), *worked(20)], window=window)
    context = await keeper.prepare_step()
    assert len(context) > 0
    assert not check(list(context), "openai-chat")


@pytest.mark.parametrize("window", [0, -5, "many", True])
async def test_a_window_that_makes_no_sense_is_refused(window: Any) -> None:
    """(behaviour 14)"""
    with pytest.raises(InvalidInput, match="window must be a whole number"):
        await keeper_of([], window=window)


async def test_an_unknown_model_has_the_presets_window_until_an_error_tells_better() -> None:
    """(behaviour 14)"""
    keeper = await keeper_of([asks(), *worked(20)], model="nobody/knows-this", window=None)
    assert keeper.window.size == keeper.preset.window
    await keeper.on_overflow(Failure("overflow", "too long", window=6_000))
    assert keeper.window.size == 6_000


# -- when it did not fit -----------------------------------------------------------------------------------


async def test_g3_an_overflow_compacts_whatever_the_size_and_is_tried_again_once() -> None:
    keeper = await keeper_of([asks(), *worked(6)])
    before = await keeper.prepare_step()
    recovery = await keeper.on_overflow(TOO_LONG)
    assert recovery.retry and recovery.context is not None
    assert recovery.context.tokens < before.tokens
    assert not check(list(recovery.context), "openai-chat")
    again = await keeper.on_overflow(TOO_LONG)
    assert not again.retry and "again" in again.why


async def test_the_next_good_reply_allows_another() -> None:
    """(behaviour 5)"""
    keeper = await keeper_of([asks(), *worked(8)])
    assert (await keeper.on_overflow(TOO_LONG)).retry
    await keeper.on_step_finish(reads(8))
    await keeper.sessions.append(keeper.session_id, [finds(8), *worked(8, 9)])
    assert (await keeper.on_overflow(TOO_LONG)).retry


async def test_what_cannot_become_smaller_is_not_sent_again() -> None:
    """(behaviour 5)"""
    keeper = await keeper_of([asks("A single question.")])
    recovery = await keeper.on_overflow(TOO_LONG)
    assert not recovery.retry and "smaller" in recovery.why


async def test_nothing_is_asked_again_once_a_part_of_the_reply_was_shown() -> None:
    """(behaviour 5)"""
    keeper = await keeper_of([asks(), *worked(6)])
    recovery = await keeper.on_overflow(TOO_LONG, streamed=True)
    assert not recovery.retry and "twice" in recovery.why
    assert await compactions(keeper) == 0


@pytest.mark.parametrize(
    "failure", [Failure("transport", "429 rate limit reached"), Failure("auth", "no"), Failure("request", "bad")]
)
async def test_a_rate_limit_is_no_overflow(failure: Failure) -> None:
    """(behaviour 4)"""
    keeper = await keeper_of([asks(), *worked(6)])
    recovery = await keeper.on_overflow(failure)
    assert not recovery.retry and failure.why in recovery.why
    assert await compactions(keeper) == 0


async def test_an_exception_of_an_sdk_is_read_like_any_other_error() -> None:
    """(behaviour 4)"""

    class BadRequest(Exception):
        status_code = 400

        @property
        def body(self) -> Any:
            return {"error": {"message": "prompt is too long: 9000 tokens > 5000 maximum"}}

    keeper = await keeper_of([asks(), *worked(6)])
    assert (await keeper.on_overflow(BadRequest("Error code: 400"))).retry
    assert keeper.window.size == 5_000


async def test_turned_off_means_off_when_it_overflows_too() -> None:
    """(behaviour 16)"""
    keeper = await keeper_of([asks(), *worked(6)], auto=False)
    recovery = await keeper.on_overflow(TOO_LONG)
    assert (recovery.retry, recovery.why) == (False, OFF)
    full = await keeper_of([asks(), *worked(20)], auto=False)
    assert (await full.on_length(answers("I was cut"))).why == OFF
    assert await compactions(keeper) == await compactions(full) == 0


async def test_g3_an_open_breaker_does_not_keep_an_overflow_from_being_mended() -> None:
    model = ScriptedModel(Failure("auth", "no key"), repeat=True)
    keeper = await keeper_of([asks(), *worked(8)], summarizer=model, preset="pi")
    for _ in range(4):
        await keeper.compact_if_due()
    assert (await keeper.on_overflow(TOO_LONG)).retry, "the ledger needs no model"


def cut_reply(arguments: str = '{"path": "/harbor/ber') -> StepReply:
    whole = reads(90)["tool_calls"][0]
    broken = {"id": "call_x", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
    message = {"role": "assistant", "content": "Both at once.", "tool_calls": [whole, broken]}
    calls = (
        ToolCall("call_90", "read_file", whole["function"]["arguments"]),
        ToolCall("call_x", "read_file", arguments),
    )
    return StepReply((message,), "Both at once.", calls, "length", Usage(input=7_000, output=400))


async def test_g3_a_call_whose_json_breaks_off_is_dropped_and_the_others_stay() -> None:
    keeper = await keeper_of([asks(), *worked(2)])
    cut = await keeper.on_length(cut_reply())
    assert [call.id for call in cut.calls] == ["call_90"]
    assert [call["id"] for call in cut.messages[0]["tool_calls"]] == ["call_90"]
    stored = cut.events[-1].body["message"]
    assert [call["id"] for call in stored["tool_calls"]] == ["call_90"]
    assert stored["content"] == "Both at once."


async def test_g3_room_left_means_stop_without_compacting() -> None:
    keeper = await keeper_of([asks(), *worked(2)], window=100_000)
    cut = await keeper.on_length(answers("This was too lo"))
    assert cut.status == "max_tokens" and "of the window in use" in cut.why
    assert await compactions(keeper) == 0


async def test_g3_a_full_window_is_compacted_and_the_reply_goes_on_once() -> None:
    keeper = await keeper_of([asks(), *worked(20)])
    cut = await keeper.on_length(answers("The first half of the ans"))
    assert cut.status == "go_on"
    context = await keeper.context()
    assert "The first half of the ans" in texts(context)
    assert GO_ON in texts(context[-1:])
    await keeper.sessions.append(keeper.session_id, worked(20, 40))
    again = await keeper.on_length(answers("The second half of the an"))
    assert again.status == "max_tokens" and "again" in again.why


async def test_g3_a_reply_of_which_nothing_is_whole_stores_nothing() -> None:
    keeper = await keeper_of([asks()])
    message = {**reads(1), "content": None}
    message["tool_calls"][0]["function"]["arguments"] = '{"path": "/har'
    cut = await keeper.on_length([message])
    assert cut.messages == [] and cut.events == []


# -- after a step, and without a session ---------------------------------------------------------------------


async def test_p3_the_providers_count_decides_and_not_our_guess() -> None:
    keeper = await keeper_of([asks()])
    await keeper.on_step_finish(answers("Hello."), {"prompt_tokens": 7_900, "completion_tokens": 50})
    assert (await keeper.context()).tokens == 7_950


async def test_a_count_from_before_a_compaction_decides_nothing_after_it() -> None:
    """(behaviour 3)"""
    keeper = await keeper_of([asks(), *worked(6)])
    await keeper.on_step_finish(answers(), {"input_tokens": 7_900, "output_tokens": 50})
    await keeper.sessions.append(keeper.session_id, asks("And now?"))
    assert (await keeper.prepare_step()).tokens < 7_000
    await keeper.prepare_step()
    assert await compactions(keeper) == 1


async def test_an_aborted_compaction_leaves_nothing_behind() -> None:
    """(behaviour 12)"""
    abort = Abort()

    def stops(call: Any) -> str:
        abort()
        return "never read"

    keeper = await keeper_of([asks(), *worked(20)], summarizer=ScriptedModel(stops, repeat=True))
    before = list(await keeper.context())
    result = await keeper.compact(abort=abort)
    assert result.outcome is Outcome.ABORTED
    assert list(await keeper.context()) == before
    assert await compactions(keeper) == 0


async def test_a_plain_list_of_messages_is_kept_small_too() -> None:
    heard: list[CompactionEvent] = []
    keeper = Keeper(window=8_000, listen=heard.append)
    history = [asks()]
    for number in range(60):
        context = await keeper.prepare_step(history)
        assert context.tokens < 8_000
        assert not check(list(context), "openai-chat")
        await keeper.on_step_finish(reads(number), {"prompt_tokens": context.tokens, "completion_tokens": 20})
        history += [reads(number), finds(number)]
    assert sum(isinstance(event, CompactionCompleted) for event in heard) > 2
    assert len(await keeper.sessions.events(keeper.session_id, kind="message", archived=None)) >= len(history)


async def test_a_list_that_goes_on_from_what_was_returned_is_the_same_conversation() -> None:
    keeper = Keeper(window=8_000)
    messages: list[Any] = [asks(), *worked(20)]
    sent = list(await keeper.prepare_step(messages))
    session = keeper.session_id
    await keeper.prepare_step([*sent, reads(20), finds(20)])
    assert keeper.session_id == session
    await keeper.prepare_step([asks("Something else.")])
    assert keeper.session_id != session, "a list that was rewritten is another conversation"


async def test_mistakes_get_one_clear_sentence() -> None:
    with pytest.raises(InvalidInput, match="sessions="):
        Keeper(session_id="s")
    with pytest.raises(InvalidInput, match=r"hand them to create\(\)"):
        Keeper(SessionService(MemoryStore()), "s", system="Be brief.")
    with pytest.raises(InvalidInput, match=r"hand them to create\(\)"):
        Keeper(SessionService(MemoryStore()), "s", tools=[])
    with pytest.raises(InvalidInput, match="Hand in the messages"):
        await Keeper().prepare_step()
    with pytest.raises(InvalidInput, match="preset"):
        Keeper(SessionService(MemoryStore()), "s", preset="codexx")
