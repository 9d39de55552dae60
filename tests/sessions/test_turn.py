"""`sessions.turn`: one turn at a time per session, idempotent by id, resumable after a crash at any point (H9)."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from turn_loop import ANSWER, EXPECTED, HEIGHTS, QUESTION, Harbour, MortalStore, next_reply

from holdfast import BlockingSessionService, MemoryStore, SessionService, check
from holdfast.errors import DuplicateEvent, InvalidInput, NoRoom, StoreError, TurnSuperseded, UnknownSession
from holdfast.messages import CUT_OFF_MARK, Text, ToolResult
from holdfast.models.calls import Failure
from holdfast.sessions.continuation import CONTINUE_PROMPT
from holdfast.strategies import SlidingWindow
from holdfast.triggers import always
from real_sessions import WHOLE

pytestmark = pytest.mark.anyio
SAY = {"role": "user", "content": QUESTION}


async def open_service(store: Any = None, **options: Any) -> SessionService:
    service = SessionService(store or MemoryStore(), **options)
    await service.create(id="s", format="openai-chat", system="You watch the tides.")
    return service


async def names(service: SessionService) -> list[str]:
    return [event.id for event in await service.events("s", kind="message")]


async def test_h9_events_of_a_turn_are_named_after_it(reopen: Callable[[], Any]) -> None:
    service, harbour = await open_service(reopen()), Harbour()
    async with service:
        reply = await harbour.answer(service, "t")
        assert reply["content"] == ANSWER
        assert await names(service) == EXPECTED
        assert len(harbour.requests) == 3
        assert harbour.requests[0][0] == {"role": "system", "content": "You watch the tides."}
        assert list(harbour.runs) == ["s/t/1/0", "s/t/1/1", "s/t/2/0"]
        assert (await service.context("s")).known, "usage is stored with the reply"


async def test_h9_same_id_again_returns_the_reply_and_runs_nothing(reopen: Callable[[], Any]) -> None:
    async with await open_service(reopen()) as service:
        first = await Harbour().answer(service, "t")
    again = Harbour()
    async with SessionService(reopen()) as other:
        assert await again.answer(other, "t") == first
        assert again.requests == [] and not again.runs
        assert await names(other) == EXPECTED


async def test_h9_same_id_while_the_first_runs_waits_and_returns_its_reply() -> None:
    service, harbour, replies = await open_service(), Harbour(), []
    started, finish = anyio.Event(), anyio.Event()

    async def first() -> None:
        async with service.turn("s", id="t") as turn:
            await turn.say(SAY)
            await turn.request()
            started.set()
            await finish.wait()
            assert not await turn.receive({"role": "assistant", "content": ANSWER})

    async def second() -> None:
        replies.append(await harbour.answer(service, "t"))

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await started.wait()
        group.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        assert replies == []
        finish.set()
    assert replies[0]["content"] == ANSWER and harbour.requests == []


async def test_h9_turns_of_one_session_run_one_at_a_time(reopen: Callable[[], Any]) -> None:
    at_once, most = 0, 0
    async with await open_service(reopen()) as service:

        async def one(number: int) -> None:
            nonlocal at_once, most
            async with service.turn("s", id=f"t{number}") as turn:
                at_once += 1
                most = max(most, at_once)
                await turn.say(f"question {number}")
                await turn.request()
                await anyio.sleep(0.01)
                await turn.receive({"role": "assistant", "content": f"answer {number}"})
                at_once -= 1

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(one, number)
        messages = list(await service.context("s"))
    assert most == 1
    assert [message["role"] for message in messages] == ["user", "assistant"] * 5
    assert all(a["content"][-1] == b["content"][-1] for a, b in zip(messages[::2], messages[1::2], strict=True))


# -- crashes ---------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_h9_turn_goes_on_elsewhere_after_a_crash_at_any_call_of_the_store(
    reopen: Callable[[], Any], after: bool
) -> None:
    """Every event once, every request valid, and only calls without a stored result run again."""
    counting = MortalStore(reopen(), None, lambda: None)
    async with await open_service(counting) as whole:
        before = counting.calls
        await Harbour().answer(whole, "t")
        calls = counting.calls - before
    assert calls > 20
    every = 1 if WHOLE else 3 if isinstance(counting._store, MemoryStore) else 8
    for point in range(1 + after, calls + 1, every):
        await _crash_and_go_on(reopen(), f"s{point}", point, after=after)


async def _crash_and_go_on(store: Any, session: str, point: int, *, after: bool) -> None:
    async with SessionService(store, lease=0.05) as service:
        await service.create(id=session, format="openai-chat")
        died = anyio.Event()
        dying = MortalStore(store, point, died.set, after=after)
        victim, harbour = SessionService(dying, lease=0.05), Harbour()
        async with anyio.create_task_group() as group:

            @group.start_soon
            async def _die() -> None:
                with suppress(StoreError):
                    await harbour.answer(victim, "t", session=session)
                died.set()

            await died.wait()
            stored = {event.id for event in await service.events(session)}
            survivor = Harbour()
            reply = await survivor.answer(service, "t", session=session)
            dying.buried.set()
        assert reply["content"] == ANSWER, point
        assert [event.id for event in await service.events(session, kind="message")] == EXPECTED, point
        assert not check(list(await service.context(session)), "openai-chat")
        assert not [key for key in survivor.runs if key.removeprefix(f"{session}/") in stored], "had its result"
        assert set(harbour.runs + survivor.runs) == {f"{session}/{name}" for name in EXPECTED if name.count("/") == 2}
    await victim._leases.close()


async def test_h9_resumed_turn_runs_only_its_open_calls() -> None:
    service, harbour = await open_service(lease=0.05), Harbour()
    async with service.turn("s", id="t") as turn:
        assert not turn.interrupted
        await turn.say(SAY)
        await turn.receive(harbour.reply(await turn.request()))
        first, second = turn.calls
        await turn.results([harbour.run(turn, first)])
    async with SessionService(service.store).turn("s", id="t") as turn:
        assert turn.interrupted and not turn.done
        assert turn.calls == (second,)
        assert turn.key(second) == "s/t/1/1"
        await turn.say(SAY)
        await turn.results([harbour.run(turn, second)])
        assert turn.calls == ()


async def test_h9_open_call_is_not_taken_for_its_answered_twin() -> None:
    """Two calls of a reply that are equal but for their ids: each has its own key, and its own result."""
    service = await open_service()
    function = {"name": "tide", "arguments": '{"at": "north"}'}
    calls = [{"id": id, "type": "function", "function": function} for id in ("c1", "c10")]
    async with service.turn("s", id="t") as turn:
        await turn.say(SAY)
        await turn.receive({"role": "assistant", "content": None, "tool_calls": calls})
        assert [turn.key(call) for call in turn.calls] == ["s/t/1/0", "s/t/1/1"]
        await turn.results([ToolResult("c1", (Text("4"),))])
    async with SessionService(service.store).turn("s", id="t") as turn:
        assert [turn.key(call) for call in turn.calls] == ["s/t/1/1"]
        await turn.results([ToolResult("c10", (Text("4"),))])
        assert turn.calls == ()


async def test_h9_forgotten_turn_gives_its_lease_back() -> None:
    """Its renewals end with it, as when a task is dropped without being cancelled."""
    service = await open_service(lease=0.05)
    turn = service.turn("s", id="t")
    await turn.__aenter__()
    await turn.say(SAY)
    del turn
    gc.collect()
    async with service.turn("s", id="t") as again:
        assert again.interrupted


async def test_h9_next_turn_closes_what_a_lost_one_left_open() -> None:
    """Open calls are closed, and a reply that never arrived is marked, in the append of the new message."""
    service, harbour = await open_service(), Harbour()
    async with service.turn("s", id="a") as turn:
        await turn.say("first")
        await turn.receive(harbour.reply(await turn.request()))
    async with service.turn("s", id="b") as turn:
        version = (await service.get("s")).version
        await turn.say("second")
        assert (await service.get("s")).version == version + 3, "two results and the message"
    async with service.turn("s", id="c") as turn:
        await turn.say("third")
        messages = (await turn.request())["messages"]
    assert not check(messages, "openai-chat")
    assert messages[-3:] == [
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": CUT_OFF_MARK},
        {"role": "user", "content": "third"},
    ]


async def test_h9_superseded_turn_says_so() -> None:
    service = await open_service()
    async with service.turn("s", id="a") as turn:
        await turn.say("first")
    async with service.turn("s", id="b") as newer:
        await newer.say("second")
    async with service.turn("s", id="a") as turn:
        assert not turn.done
        for step in (turn.say("first"), turn.request(), turn.receive({"role": "assistant", "content": "late"})):
            with pytest.raises(TurnSuperseded, match="A newer turn of session 's' began before turn 'a' was done"):
                await step
    async with service.turn("s", id="b") as newer:
        await newer.receive({"role": "assistant", "content": "answer"})
    async with service.turn("s", id="c") as last:
        await last.say("third")
    async with service.turn("s", id="b") as newer:
        assert newer.done and newer.reply == {"role": "assistant", "content": "answer"}


# -- other writers -----------------------------------------------------------------------------------------------------


async def test_h9_reply_to_an_older_context_is_not_stored() -> None:
    """A message came between: the reply has not seen it, and the model is asked again."""
    service = await open_service()
    async with service.turn("s", id="t") as turn:
        await turn.say(SAY)
        await turn.request()
        await service.append("s", {"role": "user", "content": "And the wind?"})
        assert await turn.receive({"role": "assistant", "content": "the tide only"})
        assert turn.calls == ()
        assert (await turn.request())["messages"][-1]["content"] == "And the wind?"
        assert not await turn.receive({"role": "assistant", "content": "both"})
    assert [m["content"] for m in await service.context("s")] == [QUESTION, "And the wind?", "both"]


async def test_h9_marks_of_others_do_not_matter() -> None:
    """A compaction while the model was called: the reply is stored, and its usage not counted."""
    service = await open_service()
    for number in range(6):
        await service.append("s", [{"role": "user", "content": f"u{number}"}, {"role": "assistant", "content": "a"}])
    async with service.turn("s", id="t") as turn:
        await turn.say(SAY)
        await turn.request()
        await SessionService(service.store).compact("s", always, SlidingWindow(max_events=2), "rebase")
        assert not await turn.receive({"role": "assistant", "content": ANSWER}, usage={"prompt_tokens": 12_000})
        assert turn.reply is not None and turn.reply["content"] == ANSWER
    for reader in (service, SessionService(service.store)):
        assert (await reader.context("s")).tokens < 200


async def test_h9_two_processes_without_leases_store_each_event_once() -> None:
    """Leases only save work: both do the turn at once, and the log has it once."""
    store = MemoryStore()

    class NoLease:
        def __getattr__(self, name: str) -> Any:
            if name in ("take", "release", "held", "changed"):
                raise AttributeError(name)
            return getattr(store, name)

    service = await open_service(store)
    replies = []

    async def one() -> None:
        replies.append(await Slow().answer(SessionService(NoLease()), "t"))  # type: ignore[arg-type]

    class Slow(Harbour):
        async def answer(self, *args: Any, **kwargs: Any) -> Any:
            async with args[0].turn("s", id="t") as turn:
                await turn.say(SAY)
                while True:
                    for call in turn.calls:
                        await anyio.lowlevel.checkpoint()
                        await turn.results([self.run(turn, call)] if call in turn.calls else [])
                    request = await turn.request() if not turn.done else None
                    if request is None:
                        return turn.reply
                    await anyio.lowlevel.checkpoint()
                    if not await turn.receive(self.reply(request)):
                        return turn.reply

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one)
    assert [reply["content"] for reply in replies] == [ANSWER] * 4
    assert sorted(await names(service)) == sorted(EXPECTED)


# -- the window --------------------------------------------------------------------------------------------------------


async def test_h9_request_compacts_when_due_without_a_model() -> None:
    service = await open_service(window=3_000)
    for number in range(40):
        text = {"role": "user", "content": f"{number}: " + "the tide rises " * 20}
        await service.append("s", [text, {"role": "assistant", "content": "noted"}])
    async with service.turn("s", id="t") as turn:
        await turn.say(SAY)
        request = await turn.request()
        assert not await turn.receive({"role": "assistant", "content": ANSWER})
    assert not check(request["messages"], "openai-chat")
    assert len(request["messages"]) < 60
    assert len(await service.events("s", kind="compaction")) == 1


async def test_h9_request_goes_on_when_the_process_that_compacts_has_died() -> None:
    """Nobody waits longer than a lease; then the turn that needs room compacts, without a model if need be."""
    service = await open_service(window=3_000)
    await service.append("s", [{"role": "user", "content": "the tide rises " * 30}] * 40)
    assert await service.store.take("s", "compaction", "killed", 0.2)  # type: ignore[attr-defined]
    async with service.turn("s", id="t") as turn:
        await turn.say(SAY)
        assert len((await turn.request())["messages"]) < 40


async def test_h9_request_that_cannot_fit_raises_no_room_with_the_smallest_context() -> None:
    service = await open_service(window=1_000)
    async with service.turn("s", id="t") as turn:
        await turn.say("the tide rises " * 2_000)
        with pytest.raises(NoRoom, match=r"over the 1,000 that fit, and nothing more can be archived") as caught:
            await turn.request()
    assert caught.value.messages
    assert not check(list(caught.value.messages), "openai-chat")


async def test_h9_no_room_has_what_is_left_if_everything_else_is_archived() -> None:
    service = await open_service(window=1_000)
    await service.append("s", [{"role": "user", "content": f"{n}: " + "the tide " * 20} for n in range(30)])
    async with service.turn("s", id="t") as turn:
        huge = "the tide rises " * 2_000
        await turn.say({"role": "user", "content": huge})
        with pytest.raises(NoRoom) as caught:
            await turn.request()
    before = await service.context("s")
    assert len(before.messages) == 31 and caught.value.tokens < before.tokens
    assert [message["content"] for message in caught.value.messages if message["role"] == "user"] == [huge]


async def test_h9_overflow_compacts_once_and_is_remembered() -> None:
    service = await open_service(window=100_000)
    await service.append("s", [{"role": "user", "content": f"{n}: " + "the tide " * 30} for n in range(60)])
    async with service.turn("s", id="t") as turn:
        await turn.say(SAY)
        sent = await turn.request()
        recovery = await turn.overflow(Failure("overflow", "maximum context length is 2000 tokens", window=2_000))
        assert recovery.retry
        assert len((await turn.request())["messages"]) < len(sent["messages"])
        assert not await turn.receive({"role": "assistant", "content": ANSWER})
        assert not (await turn.overflow(Failure("rate_limit", "slow down"))).retry
    async with service.turn("s", id="u") as turn:
        await turn.say("more " * 4_000)
        with pytest.raises(NoRoom, match="over the 2,000"):
            await turn.request()


async def test_h9_reply_cut_off_in_a_full_window_is_continued() -> None:
    service = await open_service(window=2_000)
    await service.append("s", [{"role": "user", "content": f"{n}: " + "the tide " * 20} for n in range(30)])
    async with service.turn("s", id="t") as turn:
        await turn.say(SAY)
        await turn.request()
        cut = await turn.cut_off({"role": "assistant", "content": "4, 5 and" + " so on" * 900})
        assert cut.status == "go_on" and not turn.done
    async with service.turn("s", id="t") as turn:
        assert not turn.done, "as another process reads it"
        assert CONTINUE_PROMPT in (await turn.request())["messages"][-1]["content"]
        assert not await turn.receive({"role": "assistant", "content": "6 metres"})
        assert turn.done
    async with service.turn("s", id="u") as turn:
        await turn.say("thanks")
        await turn.request()
        cut = await turn.cut_off({"role": "assistant", "content": "you are"})
        assert cut.status == "max_tokens" and turn.done


# -- the API -----------------------------------------------------------------------------------------------------------


async def test_h9_say_is_idempotent_and_another_message_is_an_error() -> None:
    service = await open_service()
    async with service.turn("s", id="t") as turn:
        for message in (QUESTION, SAY):
            await turn.say(message)
        with pytest.raises(DuplicateEvent, match="'t/say' with other content"):
            await turn.say("something else")
    assert await names(service) == ["t/say"]


async def test_h9_errors_name_the_cause() -> None:
    service = await open_service()
    for id in ("", "a/b"):
        with pytest.raises(InvalidInput, match="A turn's id must not be empty or contain a slash"):
            service.turn("s", id=id)
    with pytest.raises(UnknownSession):
        async with service.turn("nobody", id="t"):
            pass
    async with service.turn("s", id="t") as turn:
        with pytest.raises(InvalidInput, match=r"call say\(\) first"):
            await turn.request()
        with pytest.raises(InvalidInput, match=r"call say\(\) before receive"):
            await turn.receive({"role": "assistant", "content": "x"})
        await turn.say(SAY)
        with pytest.raises(InvalidInput, match="no text and no complete call"):
            await turn.receive([])


async def test_h9_results_may_be_neutral_and_of_calls_with_one_id() -> None:
    """A provider that numbers the calls of each reply from 1."""
    service = await open_service()
    async with service.turn("s", id="t") as turn:
        await turn.say(SAY)
        for _ in range(2):
            reply = next_reply([SAY])
            for number, call in enumerate(reply["tool_calls"]):
                call["id"] = f"call_{number}"
            await turn.request()
            assert await turn.receive(reply)
            answers = [ToolResult(c.id, (Text(str(HEIGHTS[c.arguments_dict["at"]])),)) for c in turn.calls]
            assert len(answers) == 2
            await turn.results(answers[::-1])
            await turn.results(answers)
            assert turn.calls == ()
        assert not check((await turn.request())["messages"], "openai-chat")
    assert sorted(await names(service)) == ["t/1", "t/1/0", "t/1/1", "t/2", "t/2/0", "t/2/1", "t/say"]


@pytest.mark.parametrize("format", ["anthropic", "openai-responses", "gemini"])
async def test_h9_request_has_the_arguments_of_each_format(format: str) -> None:
    service = SessionService(MemoryStore())
    tools = [{"name": "tide", "description": "", "input_schema": {"type": "object"}}]
    await service.create(id="s", format=format, system="Watch.", tools=tools if format == "anthropic" else None)
    async with service.turn("s", id="t") as turn:
        await turn.say("How high?")
        request = await turn.request()
        given = {"anthropic": "messages", "openai-responses": "input", "gemini": "contents"}[format]
        assert len(request[given]) == 1
        assert not check(request[given], format)
        assert "Watch." in str(request)
        assert ("tools" in request) == (format == "anthropic")


def test_h9_blocking_turn() -> None:
    with BlockingSessionService(MemoryStore()) as sessions:
        sessions.create(id="s", format="openai-chat")
        harbour = Harbour()
        for _ in range(2):
            with sessions.turn("s", id="t") as turn:
                if not turn.done:
                    turn.say(SAY)
                    while turn.receive(harbour.reply(turn.request())):
                        turn.results([harbour.run(turn, call) for call in turn.calls])  # type: ignore[arg-type]
                assert turn.reply is not None and turn.reply["content"] == ANSWER
        assert len(harbour.requests) == 3
