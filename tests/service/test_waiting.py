"""A flag in the store tells every process that a session is being compacted, and who speaks can wait (W13, S3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from holdfast import (
    Abort,
    BlockingSessionService,
    CompactionResult,
    EventCount,
    MemoryStore,
    Outcome,
    ScriptedModel,
    SessionService,
    always,
    never,
)
from holdfast.errors import InvalidInput, InvalidLimit, NoRoom, StoreError
from holdfast.hooks import Before, Hooks
from holdfast.stores import Log
from hooked import SAID, SUMMARY, Slow, go_on, message, seen, talk

pytestmark = pytest.mark.anyio
FULL = EventCount(8)
SHORT = 0.05


class Elsewhere:
    """Another process that compacts the session, as far as the store can tell."""

    def __init__(self, store: Log, model: Slow | None = None, **options: Any) -> None:
        self.model = model or Slow()
        self.service = SessionService(store, summarizer=self.model, **options)
        self.results: list[CompactionResult] = []

    async def compacts(self) -> None:
        self.results.append(await self.service.compact("s", FULL, SUMMARY, "rebase"))


async def while_it_runs(store: Log, work: Callable[[Elsewhere], Awaitable[object]]) -> Elsewhere:
    """Do this while another process is in the middle of a compaction, then let that go on."""
    other = Elsewhere(store)
    async with anyio.create_task_group() as group:
        group.start_soon(other.compacts)
        await other.model.begun.wait()
        await work(other)
        other.model.goes_on.set()
    return other


# -- who speaks ------------------------------------------------------------------------------------------------------


async def test_a_chat_waits_for_another_process(store: Log) -> None:
    service, ready = await talk(store=store), []

    async def chat() -> None:
        ready.append(await service.ready("s"))
        ready.append(await seen(service))

    async with anyio.create_task_group() as group:

        async def waits(other: Elsewhere) -> None:
            group.start_soon(chat)
            assert await service.ready("s", SHORT) is False
            assert ready == []

        await while_it_runs(store, waits)
    assert ready == [True, ["They", "u5", "a5", "u6", "a6"]], "and then it sees the compacted context"
    await service.close()


async def test_what_is_said_meanwhile_is_kept_and_is_in_the_context_afterwards(store: Log) -> None:
    service = await talk(store=store)
    other = await while_it_runs(store, lambda other: service.append("s", message("u7"), id="u7"))
    assert other.results[0].outcome is Outcome.COMPACTED
    assert await seen(service) == ["They", "u5", "a5", "u6", "a6", "u7"]
    assert [event.id for event in await service.events("s", text="u7 ")] == ["u7"]
    await service.close()


async def test_an_append_that_has_waited_long_enough_is_made_all_the_same() -> None:
    """Nothing that a user typed is lost because a model is slow."""
    store = MemoryStore()
    service = await talk(store=store)
    await while_it_runs(store, lambda other: service.append("s", message("u7"), wait=SHORT))
    assert (await seen(service))[-1] == "u7"


async def test_an_append_can_wait_until_it_is_over() -> None:
    store, events = MemoryStore(), []
    service = await talk(store=store)

    async def says() -> None:
        events.extend(await service.append("s", message("u7"), wait=True))

    async with anyio.create_task_group() as group:

        async def begins(other: Elsewhere) -> None:
            group.start_soon(says)
            await anyio.wait_all_tasks_blocked()
            assert events == []

        await while_it_runs(store, begins)
    (compaction,) = await service.events("s", kind="compaction")
    assert events[0].epoch == compaction.id


async def test_after_the_time_out_it_goes_on_with_the_old_context_if_that_fits() -> None:
    store, contexts = MemoryStore(), []
    service = await talk(store=store)

    async def asks(other: Elsewhere) -> None:
        contexts.append(await service.context("s", wait=SHORT, budget=100_000))

    await while_it_runs(store, asks)
    assert len(contexts[0]) == 12
    assert len(await service.context("s", wait=True)) == 5


async def test_after_the_time_out_it_says_clearly_that_the_old_context_does_not_fit() -> None:
    store = MemoryStore()
    service = await talk(store=store)

    async def asks(other: Elsewhere) -> None:
        with pytest.raises(NoRoom, match=r"over the 100 that fit.*within 0\.05 s: wait longer") as caught:
            await service.context("s", wait=SHORT, budget=100)
        assert caught.value.budget == 100 and caught.value.tokens > 100 and caught.value.session_id == "s"

    await while_it_runs(store, asks)
    assert len(await service.context("s", wait=SHORT, budget=100)) == 5, (
        "once it is over, it is for the caller to judge"
    )


async def test_what_fits_is_what_the_model_takes_unless_it_is_said_otherwise() -> None:
    store = MemoryStore()
    service = SessionService(store)
    await service.create(id="s", model="gpt-4")
    await service.append("s", {"role": "user", "content": "word " * 9_000})
    assert await store.take("s", "somebody", 60)
    with pytest.raises(NoRoom, match="over the 8,192 that fit"):
        await service.context("s", wait=SHORT)
    await service.create(id="t")
    assert await store.take("t", "somebody", 60)
    assert len(await service.context("t", wait=SHORT)) == 0, "nobody knows what fits there"


async def test_a_wrong_time_or_budget_is_an_error() -> None:
    service = await talk()
    for wait in (0, -1, "soon"):
        with pytest.raises(InvalidLimit, match="timeout must be a number of seconds above 0"):
            await service.context("s", wait=wait)  # type: ignore[arg-type]
        with pytest.raises(InvalidLimit, match="timeout must be a number of seconds above 0"):
            await service.append("s", message("u7"), wait=wait)  # type: ignore[arg-type]
    with pytest.raises(InvalidLimit, match="budget must be"):
        await service.context("s", budget=0)
    with pytest.raises(InvalidLimit, match="lease must be a number of seconds above 0"):
        SessionService(MemoryStore(), lease=0)


# -- who compacts ----------------------------------------------------------------------------------------------------


async def test_an_automatic_one_waits_for_another_process_and_asks_its_trigger_again(store: Log) -> None:
    """Nobody pays for two summaries of the same."""
    service, results = await talk(store=store), []

    async def second() -> None:
        results.append(await service.compact("s", FULL, SUMMARY, "rebase"))

    async with anyio.create_task_group() as group:

        async def starts(other: Elsewhere) -> None:
            group.start_soon(second)
            await anyio.sleep(SHORT)
            assert results == []

        other = await while_it_runs(store, starts)
    assert [other.results[0].outcome, results[0].outcome] == [Outcome.COMPACTED, Outcome.NOT_NEEDED]
    assert isinstance(service.model, ScriptedModel) and service.model.calls == []
    assert len(await service.events("s", kind="compaction")) == 1
    await service.close()


async def test_a_person_who_asks_does_not_wait_for_another_process_and_the_faster_one_wins() -> None:
    """S3: the other one's work is lost, and it says so."""
    store = MemoryStore()
    service = await talk(store=store)
    other = await while_it_runs(store, lambda other: service.compact("s", always, SUMMARY))
    assert other.results[0].outcome is Outcome.CONFLICT
    assert len(await service.events("s", kind="compaction")) == 1


async def test_one_that_waits_for_another_process_can_be_aborted() -> None:
    store, abort, results = MemoryStore(), Abort(), []
    service = await talk(store=store)

    async def second() -> None:
        results.append(await service.compact("s", FULL, SUMMARY, "rebase", abort=abort))

    async with anyio.create_task_group() as group:

        async def stops(other: Elsewhere) -> None:
            group.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            abort()
            await anyio.wait_all_tasks_blocked()
            assert [result.outcome for result in results] == [Outcome.ABORTED], "it does not wait any longer"

        await while_it_runs(store, stops)


async def test_the_flag_is_down_when_it_is_over_however_it_ends(store: Log) -> None:
    service, flagged = await talk(store=store), []

    async def broken(text: str) -> str:
        flagged.append(await store.held("s"))  # type: ignore[attr-defined]
        raise ValueError("nothing comes to mind")

    for summarizer, outcome in ((broken, Outcome.SUMMARY_FAILED), (ScriptedModel(SAID), Outcome.COMPACTED)):
        result = await service.compact("s", FULL, SUMMARY, "rebase", summarizer=summarizer, tries_again=True)
        assert result.outcome is outcome
        assert await store.held("s") is None  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):  # as itself, and not in a group
        await service.compact("s", lambda request: True, lambda request: 1 / 0)  # type: ignore[arg-type, return-value]
    assert await store.held("s") is None  # type: ignore[attr-defined]
    assert flagged and None not in flagged
    await service.close()


@pytest.mark.parametrize("how", ["an abort", "a cancelled task"])
async def test_the_flag_of_one_that_was_stopped_is_down(store: Log, how: str) -> None:
    service, model, abort = await talk(store=store), Slow(), Abort()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, summarizer=model, abort=abort))
        await model.begun.wait()
        assert await store.held("s") is not None  # type: ignore[attr-defined]
        abort() if how == "an abort" else group.cancel_scope.cancel()
    assert await store.held("s") is None  # type: ignore[attr-defined]
    await service.close()


async def test_a_dead_workers_flag_falls_by_itself(store: Log) -> None:
    service = await talk(store=store)
    assert await store.take("s", "killed", 0.2)  # type: ignore[attr-defined]
    assert await service.ready("s") is True
    assert (await service.compact("s", FULL, SUMMARY, "rebase")).outcome is Outcome.COMPACTED
    await service.close()


async def test_the_flag_is_renewed_as_long_as_the_work_goes_on() -> None:
    store = MemoryStore()
    service, model = await talk(store=store, lease=SHORT), Slow()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, summarizer=model))
        await model.begun.wait()
        await anyio.sleep(5 * SHORT)
        assert await store.held("s") is not None
        model.goes_on.set()
    assert await store.held("s") is None


async def test_a_flag_that_is_just_being_renewed_comes_down_all_the_same() -> None:
    class Renewed(MemoryStore):
        taken = 0
        renewing = anyio.Event()

        async def take(self, session_id: str, owner: str, seconds: float) -> bool:
            self.taken += 1
            if self.taken > 1:
                self.renewing.set()
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(SHORT)
            return await super().take(session_id, owner, seconds)

    store = Renewed()
    service, model = await talk(store=store, lease=2.0), Slow()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, summarizer=model))
        await store.renewing.wait()
        model.goes_on.set()
    assert await store.held("s") is None


async def test_one_that_lost_its_flag_while_it_stood_still_lowers_nobody_elses() -> None:
    """As after a pause of the process that is longer than its lease: then compare-and-set decides."""
    store = MemoryStore()
    service, model = await talk(store=store), Slow()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, summarizer=model))
        await model.begun.wait()
        store._lease.forget("s")
        assert await store.take("s", "faster", 60)
        model.goes_on.set()
    assert await store.held("s") is not None


async def test_as_long_as_there_is_nothing_to_do_no_flag_goes_up() -> None:
    """H5: asking whether it is time writes nothing."""

    class Counting(MemoryStore):
        taken = 0

        async def take(self, session_id: str, owner: str, seconds: float) -> bool:
            self.taken += 1
            return await super().take(session_id, owner, seconds)

    store = Counting()
    service = await talk(store=store)
    assert (await service.compact("s", never, SUMMARY)).outcome is Outcome.NOT_NEEDED
    assert store.taken == 0
    await service.compact("s", FULL, SUMMARY)
    assert store.taken == 1


async def test_a_lane_is_waited_for_in_its_own_process_alone() -> None:
    store = MemoryStore()
    service, model = await talk(store=store), Slow()
    for number in range(6):
        await service.append("s", [message(f"u{number}"), message(f"a{number}")], lane="tests")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, lane="tests", summarizer=model))
        await model.begun.wait()
        assert await store.held("s") is None
        assert await service.ready("s", 1) and not await service.ready("s", SHORT, lane="tests")
        model.goes_on.set()


async def test_a_hook_that_compacts_does_not_wait_for_the_flag_of_its_own_compaction() -> None:
    inner: list[CompactionResult] = []

    async def compacts(before: Before) -> None:
        inner.append(await service.compact("s", FULL, SUMMARY, "rebase"))

    service = await talk(Hooks(before=compacts))
    outer = await service.compact("s", FULL, SUMMARY, "rebase")
    assert [inner[0].outcome, outer.outcome] == [Outcome.COMPACTED, Outcome.CONFLICT]


# -- stores without flags, or with broken ones -------------------------------------------------------------------------


class Plain:
    """A store that has no flags."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def __getattr__(self, name: str) -> Any:
        if name in ("take", "release", "held", "changed"):
            raise AttributeError(name)
        return getattr(self._store, name)


async def test_a_store_without_flags_does_as_before() -> None:
    store: Any = Plain()
    service = await talk(store=store)
    other = await while_it_runs(store, lambda other: service.ready("s"))
    assert other.results[0].outcome is Outcome.COMPACTED
    assert len(await service.context("s", wait=True)) == 5


async def test_flags_that_cannot_be_written_stop_no_compaction() -> None:
    class Broken(MemoryStore):
        async def take(self, session_id: str, owner: str, seconds: float) -> bool:
            raise StoreError("The flags are not to be had: retry.")

        async def release(self, session_id: str, owner: str) -> None:
            raise StoreError("The flags are not to be had: retry.")

    service = await talk(store=Broken())
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.COMPACTED


# -- asking whether it is time -----------------------------------------------------------------------------------------


async def test_whether_it_is_due_is_asked_without_doing_it() -> None:
    service = await talk()
    version = (await service.get("s")).version
    assert await service.due("s", FULL) and not await service.due("s", never)
    assert (await service.get("s")).version == version
    with pytest.raises(InvalidInput, match="name one, or make the service with preset="):
        await service.due("s")
    await service.compact("s", FULL, SUMMARY)
    assert not await service.due("s", FULL)


async def test_it_is_not_due_while_the_last_failure_makes_it_wait() -> None:
    service = await talk(says=[])
    assert await service.due("s", FULL)
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.SUMMARY_FAILED
    assert not await service.due("s", FULL)
    await go_on(service, 7, 1)
    assert await service.due("s", FULL)


async def test_one_who_tries_again_anyway_need_not_wait_for_something_to_be_said() -> None:
    """W12: the second attempt of a job is a real one."""
    service = await talk(says=[])
    for tries_again, outcome in ((True, "summary_failed"), (False, "summary_failed"), (False, "breaker_open")):
        assert (await service.compact("s", FULL, SUMMARY, tries_again=tries_again)).outcome == outcome


def test_blocking_callers_can_wait_and_ask_too() -> None:
    with BlockingSessionService(MemoryStore()) as service:
        service.create(id="s", model="gpt-4")
        service.append("s", {"role": "user", "content": "word " * 9_000}, wait=True)
        assert service.due("s", EventCount(1)) is False
        service.call(lambda sessions: sessions.store.take("s", "somebody", 60))  # type: ignore[attr-defined]
        with pytest.raises(NoRoom):
            service.context("s", wait=SHORT)
