"""Usage counts for the checkpoint that the reply was requested with; a retry is one by any estimator (P3)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Keeper, SessionService, SlidingWindow
from holdfast.errors import DuplicateEvent
from holdfast.messages import decode_one
from holdfast.stores import Log, MemoryStore, SQLiteStore
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
WORDS = "words of a step in the harbour " * 60
REPLY = {"role": "assistant", "content": "The newest reply."}
BEFORE = {"input_tokens": 12_400, "output_tokens": 50}
"""Usage of a reply that was requested before the compaction."""


async def filled(store: Log | None = None, **options: Any) -> SessionService:
    sessions = SessionService(store or MemoryStore(), **options)
    await sessions.create(id="s", format="openai-chat")
    for number in range(30):
        await sessions.append("s", {"role": ("user", "assistant")[number % 2], "content": f"{number} {WORDS}"})
    return sessions


async def test_p3_reply_requested_before_a_compaction_does_not_count_after_it() -> None:
    sessions = await filled()
    before = await sessions.context("s")
    compacted = await sessions.compact("s", budget=1_000)
    await sessions.append("s", REPLY, usage=BEFORE, made_on=before.checkpoint)
    size = await sessions.size("s")
    assert size.tokens < compacted.tokens_after + 20 and not size.known


async def test_an_implausible_first_report_after_a_compaction_is_not_believed() -> None:
    sessions = await filled()
    compacted = await sessions.compact("s", budget=1_000)
    await sessions.append("s", REPLY, usage=BEFORE)
    assert (await sessions.size("s")).tokens < compacted.tokens_after + 20
    await sessions.append("s", {"role": "user", "content": "Go on."})
    await sessions.append("s", REPLY, usage={"input_tokens": 900, "output_tokens": 5})
    size = await sessions.size("s")
    assert (size.tokens, size.known) == (905, True)


async def test_a_reply_requested_after_a_compaction_counts_whatever_its_size() -> None:
    sessions = await filled()
    await sessions.compact("s", budget=1_000)
    context = await sessions.context("s")
    await sessions.append("s", REPLY, usage=BEFORE, made_on=context.checkpoint)
    size = await sessions.size("s")
    assert (size.tokens, size.known) == (12_450, True)


async def test_an_append_after_the_version_of_its_context_is_believed() -> None:
    sessions = await filled()
    await sessions.compact("s", budget=1_000)
    await sessions.append("s", REPLY, usage=BEFORE, after=(await sessions.context("s")).version)
    assert (await sessions.size("s")).tokens == 12_450


async def test_a_report_counts_again_after_an_undo_and_for_a_service_that_reads_the_log() -> None:
    store = MemoryStore()
    sessions = await filled(store)
    before = await sessions.context("s")
    await sessions.compact("s", budget=1_000)
    await sessions.append("s", REPLY, usage=BEFORE, made_on=before.checkpoint)
    small = (await SessionService(store).size("s")).tokens
    await sessions.undo("s")
    assert (
        small < 1_000 and (await sessions.size("s")).tokens == (await SessionService(store).size("s")).tokens == 12_450
    )


async def test_a_keeper_knows_the_checkpoint_of_its_request() -> None:
    sessions = await filled()
    keeper = Keeper(sessions, "s", window=100_000)
    await keeper.prepare_step()
    compacted = await sessions.compact("s", always, budget=1_000)
    await keeper.on_step_finish(REPLY, BEFORE)
    assert (await sessions.size("s")).tokens < compacted.tokens_after + 20
    await sessions.append("s", {"role": "user", "content": "Go on."})
    await keeper.prepare_step()
    await keeper.on_step_finish(REPLY, {"input_tokens": 900, "output_tokens": 5})
    assert (await sessions.size("s")).tokens == 905


async def test_p3_reports_from_before_a_compaction_count_as_a_ratio_and_not_as_a_size() -> None:
    """Each message takes twice the tokens of its estimate; two of the replies are kept."""
    store = MemoryStore()
    sessions, size = SessionService(store), 0
    await sessions.create(id="s", format="openai-chat")

    def estimated(*messages: Any) -> int:
        return sum(sessions.estimator.measure(decode_one(message, "openai-chat")) for message in messages)

    for number in range(30):
        message = {"role": ("user", "assistant")[number % 2], "content": f"{number:2} {WORDS}"}
        size += 2 * estimated(message)
        await sessions.append("s", message, usage={"input_tokens": size} if number % 2 else None)
    assert (await sessions.size("s")).tokens == size
    await sessions.compact("s", always, SlidingWindow(4))
    shown = (await sessions.context("s")).messages
    for reader in (sessions, SessionService(store)):
        after = await reader.size("s")
        assert after.tokens == pytest.approx(2 * estimated(*shown), rel=0.1) and not after.known


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_retry_through_a_service_with_another_estimator_is_a_retry(kind: str, tmp_path: Any) -> None:
    store: Log = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "log.db")
    one, other = SessionService(store), SessionService(store, estimator="chars/4")
    await one.create(id="s")
    message = {"role": "user", "content": "Häfen und Schiffe " * 9}
    first = await one.append("s", message, id="m")
    assert await other.append("s", message, id="m") == first
    assert await other.append("s", message, id="m", made_on="c", usage=None) == first
    with pytest.raises(DuplicateEvent):
        await other.append("s", {"role": "user", "content": "another"}, id="m")
    assert await one.verify("s") == [] and (await one.get("s")).version == 1
    await one.close()
