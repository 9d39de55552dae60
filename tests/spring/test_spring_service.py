"""Spring's service and repository cases: compare-and-set, archive, order (S2, S3, L9, H1)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from spring_story import Story, names

from holdfast import BlockingSessionService, KeepLast, MemoryStore, Outcome, SlidingWindow, TurnCount, always
from holdfast.errors import DuplicateEvent, StaleVersion, UnknownSession

pytestmark = pytest.mark.anyio


async def test_s3_two_writers_race_and_the_loser_says_so(story: Story) -> None:
    await story.tell("msg-1", "msg-2", "msg-3", "msg-4", "msg-5")
    results = []

    async def compact() -> None:
        results.append(await story.service.compact(story.id, TurnCount(4), SlidingWindow(max_events=2)))

    async with anyio.create_task_group() as group:
        group.start_soon(compact)
        group.start_soon(compact)
    assert sum(result.removed for result in results) == 3
    assert await story.visible() == ["msg-4", "msg-5"]
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


async def test_s2_the_result_says_what_was_kept_archived_and_saved(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2")
    result = await story.service.compact(story.id, always, SlidingWindow(max_events=2))
    assert (names(result.kept), names(result.archived), result.removed) == (["u2", "a2"], ["u1", "a1"], 2)
    assert result.tokens_saved == result.tokens_before - result.tokens_after == 21
    assert result.round == 1
    assert result.duration >= 0


async def test_h1_archived_events_are_still_found(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2")
    await story.service.compact(story.id, always, SlidingWindow(max_events=2))
    assert names(await story.service.events(story.id, text="A1", kind="message")) == ["a1"]
    assert names(await story.service.events(story.id, archived=True)) == ["u1", "a1"]
    assert names(await story.service.events(story.id, archived=False)) == ["u2", "a2"]


async def test_l9_order_holds_and_superseded_records_stay_in_the_log(story: Story) -> None:
    await story.tell("msg-1", "msg-2", "msg-3")
    first = await story.service.compact(story.id, always, SlidingWindow(max_events=1))
    await story.tell("msg-4", "msg-5")
    second = await story.service.compact(story.id, always, SlidingWindow(max_events=1))
    await story.tell("msg-6")
    events = await story.service.events(story.id)
    kinds = [event.id if event.kind == "message" else event.kind for event in events]
    assert kinds == ["msg-1", "msg-2", "msg-3", "compaction", "msg-4", "msg-5", "compaction", "msg-6"]
    assert await story.visible() == ["msg-5", "msg-6"]
    assert names(first.archived) == ["msg-1", "msg-2"]
    assert names(second.archived) == ["msg-3", "msg-4"]
    assert [event.seq for event in events] == list(range(1, 9))


async def test_the_same_id_is_appended_once(story: Story) -> None:
    await story.tell("u1")
    await story.tell("u1")
    assert (await story.service.get(story.id)).version == 1
    with pytest.raises(DuplicateEvent, match="u1"):
        await story.say("user", "u1", "something else")


async def test_a_reply_made_for_an_old_context_cannot_land_on_a_new_one(story: Story) -> None:
    await story.tell("u1")
    version = (await story.service.context(story.id)).version
    await story.tell("u2")
    with pytest.raises(StaleVersion, match="read its context again"):
        await story.service.append(story.id, {"role": "assistant", "content": "late"}, after=version)
    assert await story.visible() == ["u1", "u2"]


async def test_a_known_id_is_looked_up_before_after_is_compared(story: Story) -> None:
    await story.tell("u1", "u2")
    again = await story.service.append(story.id, {"role": "user", "content": "u1"}, id="u1", after=0)
    assert names(again) == ["u1"]


async def test_unknown_sessions_are_an_error(story: Story) -> None:
    with pytest.raises(UnknownSession, match="nowhere"):
        await story.service.compact("nowhere", always, KeepLast(1))
    with pytest.raises(UnknownSession):
        await story.service.append("nowhere", {"role": "user", "content": "hi"})


async def test_sessions_have_an_owner(story: Story) -> None:
    await story.service.create(owner="another")
    assert [session.id for session in await story.service.list(owner="someone")] == [story.id]
    assert len(await story.service.list()) == 2


async def test_events_are_filtered_and_paged(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2", "u3")
    await story.tell("q-sub", lane="sub")
    events = story.service.events
    assert names(await events(story.id, last=2)) == ["u3", "q-sub"]
    assert names(await events(story.id, lane="")) == ["u1", "a1", "u2", "a2", "u3"]
    assert names(await events(story.id, lane="sub")) == ["q-sub"]
    assert names(await events(story.id, page=1, page_size=2)) == ["u2", "a2"]
    assert names(await events(story.id, kind="compaction")) == []
    assert names(await events(story.id, text="U", last=1)) == ["q-sub"]
