"""Spring's service and repository cases: compare-and-set, archive, order (S2, S3, L9, H1)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from spring_helpers import Scenario, names

from holdfast import BlockingSessionService, MemoryStore, Outcome, SlidingWindow, TurnCount
from holdfast.errors import DuplicateEvent, StaleVersion, UnknownSession
from holdfast.strategies import KeepLast
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


async def test_s3_two_writers_race_and_the_loser_reports_conflict(scenario: Scenario) -> None:
    await scenario.append_named("msg-1", "msg-2", "msg-3", "msg-4", "msg-5")
    results = []

    async def compact() -> None:
        results.append(await scenario.service.compact(scenario.id, TurnCount(4), SlidingWindow(max_events=2)))

    async with anyio.create_task_group() as group:
        group.start_soon(compact)
        group.start_soon(compact)
    assert sum(result.removed for result in results) == 3
    assert await scenario.visible() == ["msg-4", "msg-5"]
    assert {result.outcome for result in results} <= {Outcome.COMPACTED, Outcome.CONFLICT, Outcome.NOT_NEEDED}


def test_s3_two_services_on_one_store_race() -> None:
    store = MemoryStore()
    with BlockingSessionService(store) as first:
        session = first.create(id="s")
        for number in range(1, 6):
            first.append("s", {"role": "user", "content": f"msg-{number}"})
        with ThreadPoolExecutor(2) as threads:
            compact = lambda _: first.compact(session.id, TurnCount(4), SlidingWindow(max_events=2))  # noqa: E731
            results = list(threads.map(compact, range(2)))
        assert sum(result.removed for result in results) == 3
        assert [m["content"] for m in first.context("s")] == ["msg-4", "msg-5"]


async def test_s2_result_reports_kept_archived_and_saved(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2")
    result = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=2))
    assert (names(result.kept), names(result.archived), result.removed) == (["u2", "a2"], ["u1", "a1"], 2)
    assert result.tokens_saved == result.tokens_before - result.tokens_after == 21
    assert result.round == 1
    assert result.duration >= 0


async def test_h1_archived_events_are_still_found(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2")
    await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=2))
    assert names(await scenario.service.events(scenario.id, text="A1", kind="message")) == ["a1"]
    assert names(await scenario.service.events(scenario.id, archived=True)) == ["u1", "a1"]
    assert names(await scenario.service.events(scenario.id, archived=False)) == ["u2", "a2"]


async def test_l9_order_holds_and_superseded_records_stay_in_the_log(scenario: Scenario) -> None:
    await scenario.append_named("msg-1", "msg-2", "msg-3")
    first = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=1))
    await scenario.append_named("msg-4", "msg-5")
    second = await scenario.service.compact(scenario.id, always, SlidingWindow(max_events=1))
    await scenario.append_named("msg-6")
    events = await scenario.service.events(scenario.id)
    kinds = [event.id if event.kind == "message" else event.kind for event in events]
    assert kinds == ["msg-1", "msg-2", "msg-3", "compaction", "msg-4", "msg-5", "compaction", "msg-6"]
    assert await scenario.visible() == ["msg-5", "msg-6"]
    assert names(first.archived) == ["msg-1", "msg-2"]
    assert names(second.archived) == ["msg-3", "msg-4"]
    assert [event.seq for event in events] == list(range(1, 9))


async def test_same_id_is_appended_once(scenario: Scenario) -> None:
    await scenario.append_named("u1")
    await scenario.append_named("u1")
    assert (await scenario.service.get(scenario.id)).version == 1
    with pytest.raises(DuplicateEvent, match="u1"):
        await scenario.append_text("user", "u1", "something else")


async def test_append_after_old_version_raises(scenario: Scenario) -> None:
    await scenario.append_named("u1")
    version = (await scenario.service.context(scenario.id)).version
    await scenario.append_named("u2")
    with pytest.raises(StaleVersion, match="read its context again"):
        await scenario.service.append(scenario.id, {"role": "assistant", "content": "late"}, after=version)
    assert await scenario.visible() == ["u1", "u2"]


async def test_append_of_known_id_ignores_after(scenario: Scenario) -> None:
    await scenario.append_named("u1", "u2")
    again = await scenario.service.append(scenario.id, {"role": "user", "content": "u1"}, id="u1", after=0)
    assert names(again) == ["u1"]


async def test_unknown_session_raises(scenario: Scenario) -> None:
    with pytest.raises(UnknownSession, match="nowhere"):
        await scenario.service.compact("nowhere", always, KeepLast(1))
    with pytest.raises(UnknownSession):
        await scenario.service.append("nowhere", {"role": "user", "content": "hi"})


async def test_sessions_are_filtered_by_owner(scenario: Scenario) -> None:
    await scenario.service.create(owner="another")
    assert [session.id for session in await scenario.service.list(owner="someone")] == [scenario.id]
    assert len(await scenario.service.list()) == 2


async def test_events_are_filtered_and_paged(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2", "u3")
    await scenario.append_named("q-sub", lane="sub")
    events = scenario.service.events
    assert names(await events(scenario.id, last=2)) == ["u3", "q-sub"]
    assert names(await events(scenario.id, lane="")) == ["u1", "a1", "u2", "a2", "u3"]
    assert names(await events(scenario.id, lane="sub")) == ["q-sub"]
    assert names(await events(scenario.id, page=1, page_size=2)) == ["u2", "a2"]
    assert names(await events(scenario.id, before=4, last=2)) == ["a1", "u2"]
    assert await events(scenario.id, before=1) == []
    assert names(await events(scenario.id, kind="compaction")) == []
    assert names(await events(scenario.id, text="U", last=1)) == ["q-sub"]
