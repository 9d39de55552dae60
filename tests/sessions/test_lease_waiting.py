"""A lease in the store marks a session as being compacted; other processes can wait for it (W13, S3)."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

import anyio
import anyio.to_thread
import pytest

from compaction_session import (
    SUMMARY,
    SUMMARY_TEXT,
    BlockedModel,
    append_turns,
    make_message,
    open_session,
    visible_names,
)
from holdfast import Abort, BlockingSessionService, CompactionResult, MemoryStore, Outcome, SessionService
from holdfast.context import Plan, Request
from holdfast.errors import InvalidLimit, NoRoom, StoreError, SummaryFailed
from holdfast.hooks import BeforeCompaction, Hooks
from holdfast.models import ScriptedModel
from holdfast.stores import LeaseName, Log
from holdfast.triggers import EventCount, always, never

pytestmark = pytest.mark.anyio
FULL = EventCount(8)
SHORT = 0.05


class OtherProcess:
    """A second service on the same store that compacts the session, like another process."""

    def __init__(self, store: Log, model: BlockedModel | None = None, **options: Any) -> None:
        self.model = model or BlockedModel()
        self.service = SessionService(store, summarizer=self.model, **options)
        self.results: list[CompactionResult] = []

    async def compact(self) -> None:
        self.results.append(await self.service.compact("s", FULL, SUMMARY, "rebase"))


async def during_other_compaction(store: Log, work: Callable[[OtherProcess], Awaitable[object]]) -> OtherProcess:
    """Runs `work` during a compaction of another process, then releases its model."""
    other = OtherProcess(store)
    async with anyio.create_task_group() as group:
        group.start_soon(other.compact)
        await other.model.started.wait()
        await work(other)
        other.model.release.set()
    return other


# -- waiting ---------------------------------------------------------------------------------------------------------


async def test_ready_waits_for_another_process(store: Log) -> None:
    service, ready = await open_session(store=store), []

    async def chat() -> None:
        ready.append(await service.ready("s"))
        ready.append(await visible_names(service))

    async with anyio.create_task_group() as group:

        async def waits(other: OtherProcess) -> None:
            group.start_soon(chat)
            assert await service.ready("s", SHORT) is False
            assert ready == []

        await during_other_compaction(store, waits)
    assert ready == [True, ["They", "u5", "a5", "u6", "a6"]], "the context is compacted"
    await service.close()


async def test_message_appended_during_a_compaction_is_kept(store: Log) -> None:
    service = await open_session(store=store)
    other = await during_other_compaction(store, lambda other: service.append("s", make_message("u7"), id="u7"))
    assert other.results[0].outcome is Outcome.COMPACTED
    assert await visible_names(service) == ["They", "u5", "a5", "u6", "a6", "u7"]
    assert [event.id for event in await service.events("s", text="u7 ")] == ["u7"]
    await service.close()


async def test_append_wait_timeout_appends_anyway() -> None:
    """A slow model never loses user input."""
    store = MemoryStore()
    service = await open_session(store=store)
    await during_other_compaction(store, lambda other: service.append("s", make_message("u7"), wait=SHORT))
    assert (await visible_names(service))[-1] == "u7"


async def test_append_waits_for_the_compaction() -> None:
    store, events = MemoryStore(), []
    service = await open_session(store=store)

    async def append() -> None:
        events.extend(await service.append("s", make_message("u7"), wait=True))

    async with anyio.create_task_group() as group:

        async def begins(other: OtherProcess) -> None:
            group.start_soon(append)
            await anyio.wait_all_tasks_blocked()
            assert events == []

        await during_other_compaction(store, begins)
    (compaction,) = await service.events("s", kind="compaction")
    assert events[0].epoch == compaction.id


async def test_context_after_timeout_returns_the_old_context_if_it_fits() -> None:
    store, contexts = MemoryStore(), []
    service = await open_session(store=store)

    async def read(other: OtherProcess) -> None:
        contexts.append(await service.context("s", wait=SHORT, budget=100_000))

    await during_other_compaction(store, read)
    assert len(contexts[0]) == 12
    assert len(await service.context("s", wait=True)) == 5


async def test_context_after_timeout_raises_no_room_if_it_does_not_fit() -> None:
    store = MemoryStore()
    service = await open_session(store=store)

    async def read(other: OtherProcess) -> None:
        with pytest.raises(NoRoom, match=r"over the 100 that fit.*within 0\.05 s: wait longer") as caught:
            await service.context("s", wait=SHORT, budget=100)
        assert caught.value.budget == 100 and caught.value.tokens > 100 and caught.value.session_id == "s"

    await during_other_compaction(store, read)
    assert len(await service.context("s", wait=SHORT, budget=100)) == 5, "after the compaction the caller decides"


async def test_context_budget_defaults_to_the_model_window() -> None:
    store = MemoryStore()
    service = SessionService(store)
    await service.create(id="s", model="gpt-4")
    await service.append("s", {"role": "user", "content": "word " * 9_000})
    assert await store.take("s", "compaction", "somebody", 60)
    with pytest.raises(NoRoom, match="over the 8,192 that fit"):
        await service.context("s", wait=SHORT)
    await service.create(id="t")
    assert await store.take("t", "compaction", "somebody", 60)
    assert len(await service.context("t", wait=SHORT)) == 0, "the model's window is unknown"


async def test_invalid_timeout_or_budget_is_rejected() -> None:
    service = await open_session()
    for wait in (0, -1, "soon"):
        with pytest.raises(InvalidLimit, match="timeout must be a number of seconds above 0"):
            await service.context("s", wait=wait)  # type: ignore[arg-type]
        with pytest.raises(InvalidLimit, match="timeout must be a number of seconds above 0"):
            await service.append("s", make_message("u7"), wait=wait)  # type: ignore[arg-type]
    with pytest.raises(InvalidLimit, match="budget must be"):
        await service.context("s", budget=0)
    with pytest.raises(InvalidLimit, match="lease must be a number of seconds above 0"):
        SessionService(MemoryStore(), lease=0)


# -- compactions -----------------------------------------------------------------------------------------------------


async def test_automatic_compaction_waits_for_another_process(store: Log) -> None:
    """Only one summary is written."""
    service, results = await open_session(store=store), []

    async def second() -> None:
        results.append(await service.compact("s", FULL, SUMMARY, "rebase"))

    async with anyio.create_task_group() as group:

        async def starts(other: OtherProcess) -> None:
            group.start_soon(second)
            await anyio.sleep(SHORT)
            assert results == []

        other = await during_other_compaction(store, starts)
    assert [other.results[0].outcome, results[0].outcome] == [Outcome.COMPACTED, Outcome.NOT_NEEDED]
    assert isinstance(service.model, ScriptedModel) and service.model.calls == []
    assert len(await service.events("s", kind="compaction")) == 1
    await service.close()


async def test_manual_compaction_does_not_wait_for_another_process() -> None:
    """S3: the slower one reports a conflict."""
    store = MemoryStore()
    service = await open_session(store=store)
    other = await during_other_compaction(store, lambda other: service.compact("s", always, SUMMARY))
    assert other.results[0].outcome is Outcome.CONFLICT
    assert len(await service.events("s", kind="compaction")) == 1


async def test_compaction_waiting_for_another_process_can_be_aborted() -> None:
    store, abort, results = MemoryStore(), Abort(), []
    service = await open_session(store=store)

    async def second() -> None:
        results.append(await service.compact("s", FULL, SUMMARY, "rebase", abort=abort))

    async with anyio.create_task_group() as group:

        async def stops(other: OtherProcess) -> None:
            group.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            abort()
            await anyio.wait_all_tasks_blocked()
            assert [result.outcome for result in results] == [Outcome.ABORTED], "it stops waiting"

        await during_other_compaction(store, stops)


async def test_lease_is_released_however_a_compaction_ends(store: Log) -> None:
    service, held = await open_session(store=store), []

    async def broken(text: str) -> str:
        held.append(await store.held("s", "compaction"))  # type: ignore[attr-defined]
        raise ValueError("nothing comes to mind")

    for summarizer, outcome in ((broken, Outcome.SUMMARY_FAILED), (ScriptedModel(SUMMARY_TEXT), Outcome.COMPACTED)):
        result = await service.compact("s", FULL, SUMMARY, "rebase", summarizer=summarizer, record_failure=False)
        assert result.outcome is outcome
        assert await store.held("s", "compaction") is None  # type: ignore[attr-defined]
    for error in (LookupError("no such plan"), SummaryFailed("no such plan")):

        def raises(request: Request, error: Exception = error) -> Plan:
            raise error

        with pytest.raises(SummaryFailed) if isinstance(error, SummaryFailed) else nullcontext():  # not in a group
            result = await service.compact("s", lambda request: True, raises)
            assert result.outcome is Outcome.SUMMARY_FAILED
    assert await store.held("s", "compaction") is None  # type: ignore[attr-defined]
    assert held and None not in held
    await service.close()


@pytest.mark.parametrize("how", ["an abort", "a cancelled task"])
async def test_lease_is_released_after_abort_or_cancel(store: Log, how: str) -> None:
    service, model, abort = await open_session(store=store), BlockedModel(), Abort()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, summarizer=model, abort=abort))
        await model.started.wait()
        assert await store.held("s", "compaction") is not None  # type: ignore[attr-defined]
        abort() if how == "an abort" else group.cancel_scope.cancel()
    assert await store.held("s", "compaction") is None  # type: ignore[attr-defined]
    await service.close()


async def test_lease_of_a_dead_worker_expires(store: Log) -> None:
    service = await open_session(store=store)
    assert await store.take("s", "compaction", "killed", 0.2)  # type: ignore[attr-defined]
    assert await service.ready("s") is True
    assert (await service.compact("s", FULL, SUMMARY, "rebase")).outcome is Outcome.COMPACTED
    await service.close()


async def test_lease_is_renewed_while_a_compaction_runs() -> None:
    taken: list[tuple[str, bool, float | None]] = []
    often = threading.Event()

    class Renewed(MemoryStore):
        async def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
            took = await super().take(session_id, name, owner, seconds)
            taken.append((owner, took, await self.held(session_id, name)))
            if len(taken) > 4:
                often.set()
            return took

    store = Renewed()
    service, model = await open_session(store=store, lease=0.2), BlockedModel()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, summarizer=model))
        await model.started.wait()
        await anyio.to_thread.run_sync(often.wait, 20)
        model.release.set()
    assert often.is_set()
    assert len({owner for owner, _, _ in taken}) == 1
    assert all(took and left is not None for _, took, left in taken)
    assert await store.held("s", "compaction") is None


async def test_h9_busy_event_loop_does_not_lose_its_lease(store: Log) -> None:
    """It is renewed from a thread: a loop that computes for longer than the lease keeps it."""
    service, model = await open_session(store=store, lease=0.2), BlockedModel()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, summarizer=model))
        await model.started.wait()
        time.sleep(0.7)  # noqa: ASYNC251 - the loop is busy
        assert not await store.take("s", "compaction", "other", 60)  # type: ignore[attr-defined]
        model.release.set()
    assert await store.held("s", "compaction") is None  # type: ignore[attr-defined]
    await service.close()


async def test_lease_is_released_while_being_renewed() -> None:
    class Renewed(MemoryStore):
        taken = 0
        renewing = threading.Event()

        async def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
            self.taken += 1
            if self.taken > 1:
                self.renewing.set()
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(SHORT)
            return await super().take(session_id, name, owner, seconds)

    store = Renewed()
    service, model = await open_session(store=store, lease=2.0), BlockedModel()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, summarizer=model))
        await anyio.to_thread.run_sync(store.renewing.wait)
        model.release.set()
    assert await store.held("s", "compaction") is None


async def test_lost_lease_does_not_release_another_owner() -> None:
    """As after a process pause longer than the lease: compare-and-set decides."""
    store = MemoryStore()
    service, model = await open_session(store=store), BlockedModel()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, summarizer=model))
        await model.started.wait()
        store._leases.drop("s")
        assert await store.take("s", "compaction", "faster", 60)
        model.release.set()
    assert await store.held("s", "compaction") is not None


async def test_lease_is_not_taken_if_nothing_is_due() -> None:
    """H5: checking the trigger writes nothing."""

    class Counting(MemoryStore):
        taken = 0

        async def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
            self.taken += 1
            return await super().take(session_id, name, owner, seconds)

    store = Counting()
    service = await open_session(store=store)
    assert (await service.compact("s", never, SUMMARY)).outcome is Outcome.NOT_NEEDED
    assert store.taken == 0
    await service.compact("s", FULL, SUMMARY)
    assert store.taken == 1


async def test_lane_compaction_takes_no_lease() -> None:
    store = MemoryStore()
    service, model = await open_session(store=store), BlockedModel()
    for number in range(6):
        await service.append("s", [make_message(f"u{number}"), make_message(f"a{number}")], lane="tests")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", FULL, SUMMARY, lane="tests", summarizer=model))
        await model.started.wait()
        assert await store.held("s", "compaction") is None
        assert await service.ready("s", 60) and not await service.ready("s", SHORT, lane="tests")
        model.release.set()


async def test_compaction_inside_a_hook_does_not_wait_for_its_own_lease() -> None:
    inner: list[CompactionResult] = []

    async def compact_again(before: BeforeCompaction) -> None:
        inner.append(await service.compact("s", FULL, SUMMARY, "rebase"))

    service = await open_session(Hooks(before=compact_again))
    outer = await service.compact("s", FULL, SUMMARY, "rebase")
    assert [inner[0].outcome, outer.outcome] == [Outcome.COMPACTED, Outcome.CONFLICT]


# -- stores without leases, or with failing ones ---------------------------------------------------------------------


class Plain:
    """A store without leases."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def __getattr__(self, name: str) -> Any:
        if name in ("take", "release", "held", "changed"):
            raise AttributeError(name)
        return getattr(self._store, name)


async def test_store_without_leases_still_compacts() -> None:
    store: Any = Plain()
    service = await open_session(store=store)
    other = await during_other_compaction(store, lambda other: service.ready("s"))
    assert other.results[0].outcome is Outcome.COMPACTED
    assert len(await service.context("s", wait=True)) == 5


async def test_failing_lease_does_not_stop_a_compaction() -> None:
    class Broken(MemoryStore):
        async def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
            raise StoreError("Leases are unavailable: retry.")

        async def release(self, session_id: str, name: LeaseName, owner: str) -> None:
            raise StoreError("Leases are unavailable: retry.")

    service = await open_session(store=Broken())
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.COMPACTED


# -- due -------------------------------------------------------------------------------------------------------------


async def test_due_checks_without_compacting() -> None:
    service = await open_session()
    version = (await service.get("s")).version
    assert await service.due("s", FULL) and not await service.due("s", never)
    assert (await service.get("s")).version == version
    assert not await service.due("s"), "without a policy of its own, by the default preset"
    await service.compact("s", FULL, SUMMARY)
    assert not await service.due("s", FULL)


async def test_due_is_false_after_a_failure_without_new_messages() -> None:
    service = await open_session(says=[])
    assert await service.due("s", FULL)
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.SUMMARY_FAILED
    assert not await service.due("s", FULL)
    await append_turns(service, 7, 1)
    assert await service.due("s", FULL)


async def test_will_retry_allows_an_attempt_without_new_messages() -> None:
    """W12: a job's second attempt calls the model."""
    service = await open_session(says=[])
    for will_retry, outcome in ((True, "summary_failed"), (False, "summary_failed"), (False, "breaker_open")):
        assert (await service.compact("s", FULL, SUMMARY, record_failure=not will_retry)).outcome == outcome


def test_blocking_service_can_wait_and_check_due() -> None:
    with BlockingSessionService(MemoryStore()) as service:
        service.create(id="s", model="gpt-4")
        service.append("s", {"role": "user", "content": "word " * 9_000}, wait=True)
        assert service.due("s", EventCount(1)) is False
        service.call(lambda sessions: sessions.store.take("s", "compaction", "somebody", 60))  # type: ignore[attr-defined]
        with pytest.raises(NoRoom):
            service.context("s", wait=SHORT)
