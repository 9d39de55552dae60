"""`sessions.size`: one value with its basis, whatever was reported, learned or imported (P3, G1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import MemoryStore, SessionService, preset
from holdfast.agent import Keeper
from holdfast.hooks.events import WindowLowered
from holdfast.models.calls import Failure
from holdfast.tokens import count_tokens
from holdfast.transcripts import read_transcript
from holdfast.transcripts.importing import import_transcript
from holdfast.web.stats import StatsReader
from real_sessions import FILES, each_nth_session
from real_sessions import transcript as read_once

pytestmark = pytest.mark.anyio
WORDS = "The crane of berth four lifts the crates, and the clerk counts them before the ship sails. "


def text_of(role: str, length: int = 200) -> dict[str, Any]:
    return {"role": role, "content": WORDS * (length // 20)}


async def opened(**given: Any) -> SessionService:
    service = SessionService(MemoryStore(), **given)
    await service.create(id="s")
    return service


async def test_size_has_its_parts_its_basis_and_the_window() -> None:
    service = await opened(preset="holdfast", window=16_000)
    await service.append("s", text_of("user"))
    size = await service.size("s")
    assert (size.basis, size.window, size.window_basis) == ("estimated", 16_000, "given")
    assert size.overhead + size.notes + size.messages == size.tokens == (await service.context("s")).tokens
    assert size.threshold is not None and size.target is not None and size.target < size.threshold < 16_000
    [reply] = await service.append("s", text_of("assistant"), usage={"input": 900, "output": 100})
    size = await service.size("s")
    assert (size.tokens, size.basis) == (1_000, f"reported with #{reply.seq}, estimated since")


async def test_an_overflow_without_a_number_is_probed_upwards_within_270_steps() -> None:
    """It stayed near 1,000 to 5,000 tokens for all of them."""
    service, heard = await opened(), list[Any]()
    keeper = Keeper(service, "s", window=16_000, preset="holdfast", listen=heard.append)
    windows, largest = [], 0
    for step in range(270):
        await service.append("s", text_of("user"))
        context = await keeper.prepare_step()
        if step == 15:
            recovery = await keeper.on_overflow(Failure("overflow", "prompt is too long"))
            assert recovery.retry, recovery.why
        await keeper.on_step_finish(text_of("assistant"))
        windows.append((await keeper.size()).window or 0)
        largest = max(largest, context.tokens) if step > 100 else 0
    [lowered] = [event for event in heard if isinstance(event, WindowLowered)]
    assert (lowered.before, lowered.after) == (16_000, windows[15]) and windows[15] < 8_000
    assert windows[-1] == windows[100] == 16_000, "an explicit window is not lowered for good"
    assert largest > 10_000, "it is used again"


async def test_a_second_overflow_in_a_row_says_why_it_is_not_tried_again() -> None:
    service = await opened(preset="holdfast")
    keeper = Keeper(service, "s", window=16_000)
    await service.append("s", text_of("user"))
    for _ in range(3):
        recovery = await keeper.on_overflow(Failure("overflow", "prompt is too long"))
        assert recovery.retry or recovery.why.rpartition(": ")[2].strip()


async def test_windows_learned_by_one_process_are_known_to_the_next() -> None:
    store = MemoryStore()
    first = SessionService(store)
    await first.create(id="s", model="nobody/knows")
    await first.append("s", text_of("user"))
    await Keeper(first, "s").on_overflow(Failure("overflow", "too long", window=6_000))
    size = await SessionService(store).size("s")
    assert (size.window, size.window_basis) == (6_000, "learned")
    await SessionService(store).set_window("s", model="claude-sonnet-4-5")
    size = await SessionService(store).size("s")
    assert (size.window, size.window_basis) == (200_000, "catalog"), "another model has its own"
    assert await first.verify("s") == []


async def test_a_window_outlives_the_compaction_that_archives_its_event() -> None:
    service = await opened()
    await service.set_window("s", 9_000)
    for _ in range(20):
        await service.append("s", [text_of("user"), text_of("assistant")])
    assert (await service.compact("s", budget=2_000)).outcome == "compacted"
    size = await SessionService(service.store).size("s")
    assert (size.window, size.window_basis, size.is_compacted) == (9_000, "given", True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("reported", [0, 12, 1_000], ids=["nothing", "the uncached part", "a constant"])
async def test_implausible_reports_are_ignored_and_do_not_defeat_compaction(reported: int) -> None:
    service = await opened(preset="holdfast", window=16_000)
    compacted, remarks = 0, set[str]()
    for _ in range(60):
        await service.append("s", text_of("user", 600))
        await service.append("s", text_of("assistant", 100), usage={"input": reported, "output": 0})
        compacted += (await service.compact("s", on_conflict="rebase")).outcome == "compacted"
        remarks |= {*(await service.size("s")).remarks}
        view = await (await service._live("s")).view()
        assert view.token_sums.estimator.tokens(view.units()) < 16_000
    assert compacted > 1
    assert any("is ignored" in remark for remark in remarks)


async def test_a_report_of_another_model_is_a_ratio_only() -> None:
    service = await opened(window=64_000)
    await service.append("s", text_of("user", 2_000))
    estimate = (await service.size("s")).tokens
    await service.append("s", text_of("assistant"), usage={"input": 20_000}, model="one")
    assert (await service.size("s")).tokens == 20_000
    await service.set_window("s", model="two")
    size = await service.size("s")
    assert size.basis == "estimated" and size.tokens < 2 * estimate


async def test_the_number_in_an_overflow_beats_the_report() -> None:
    service = await opened(preset="holdfast", window=64_000)
    await service.append("s", text_of("user", 9_000))
    await service.append("s", text_of("assistant"), usage={"input": 2_500})
    assert (await service.size("s")).tokens == 2_500
    await service.note_overflow("s", Failure("overflow", "too long: 9000 > 8000", window=8_000), 2_500)
    size = await service.size("s")
    assert (
        size.basis == "estimated"
        and size.tokens > 8_000
        and size.remarks == ("the provider reported 2,500 tokens, and refused more than 8,000",)
    )


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name == "codex"], ids=lambda path: path.name[:13]
)
async def test_codex_window_is_recorded_and_its_share_taken_once(path: Path) -> None:
    transcript = read_transcript(path)
    async with SessionService(MemoryStore(), preset="codex") as service:
        record = await import_transcript(service, transcript)
        size, context = await service.size(record.id), await service.context(record.id)
        assert (size.window, size.window_basis, size.basis) == (transcript.window, "recorded", "estimated")
        if transcript.window == 258_400:
            assert transcript.whole_window == 272_000 and size.threshold == 244_000
        text = sum(count_tokens(service.estimator, str(message)) for message in context.messages)
        assert size.tokens < 2 * text


async def test_a_compaction_reports_the_size_that_the_session_then_has() -> None:
    """After a report, the result was extrapolated from it, and the session was estimated anew."""
    service = await opened(preset="holdfast", window=16_000)
    for number in range(12):
        await service.append("s", text_of("user"))
        reported = {"input": 700 * (number + 1), "output": 100}
        await service.append("s", text_of("assistant"), usage=reported)
    result = await service.compact("s", budget=3_000)
    assert result.outcome == "compacted"
    assert result.tokens_after == (await service.size("s")).tokens == (await service.context("s")).tokens


@pytest.mark.sampled(6)
@each_nth_session(7)
async def test_an_imported_session_has_one_size_wherever_it_is_shown(path: Path) -> None:
    """H8: one had three: 103k in its headline, 92k at the end of its curve, 114k as the other tool reported it."""
    async with SessionService(MemoryStore(), preset="holdfast") as service:
        record = await import_transcript(service, read_once(path))
        size, context = await service.size(record.id), await service.context(record.id)
        _, counted, reported = (await StatsReader(service).read(record.id)).curve(size.tokens)
        assert size.basis == "estimated" and size.threshold is not None
        assert {size.tokens} == {context.tokens, *counted[-1:], *reported[-1:]}
        assert await service.due(record.id) == (size.tokens > size.threshold)


async def test_other_tools_are_counted_and_what_was_reported_before_them_is_a_ratio_only() -> None:
    """H8: a client connected a server of tools in the middle of its conversation."""
    service = await opened(preset="holdfast", window=64_000)
    await service.append("s", [text_of("user"), text_of("assistant")], usage={"input": 900, "output": 100})
    before = await service.size("s")
    tools = [{"type": "function", "function": {"name": f"tool{n}", "description": WORDS * 5}} for n in range(20)]
    await service.set_prompt("s", tools=tools)
    after = await service.size("s")
    assert (before.basis, after.basis) == ("reported with #2, estimated since", "estimated")
    assert after.overhead > before.overhead + 1_500 and after.tokens > before.tokens + 1_500
    version = (await service.get("s")).version
    await service.set_prompt("s", system="It is noon.", tools=tools)
    assert (await service.get("s")).version == version, "nothing is written for so little"
    for _ in range(12):
        await service.append("s", [text_of("user"), text_of("assistant")])
    assert (await service.compact("s", budget=4_000)).outcome == "compacted"
    assert (await SessionService(service.store).size("s")).overhead == after.overhead


@pytest.mark.parametrize("share", [0.6, 0.8, 1.0, 1.3])
async def test_notes_fill_the_target_whatever_was_reported(share: float) -> None:
    """What a plan takes was measured from the report, and then anew: notes that were a little too long were dropped."""
    service = await opened(preset="holdfast", window=4_000)
    for number in range(40):
        await service.append("s", text_of("user", 100 + number % 7 * 40))
        await service.append("s", text_of("assistant", 60), usage={"input": round(share * await estimated(service))})
        result = await service.compact("s", on_conflict="rebase")
        if result.outcome == "compacted":
            break
    assert result.bounds is not None and result.bounds.target is not None and result.checkpoint is not None
    assert 0.6 * result.bounds.target < result.tokens_after <= result.bounds.target
    assert result.strategy == "ledger" and any(item.kind == "note" for item in result.checkpoint.head)


async def estimated(service: SessionService) -> int:
    view = await (await service._live("s")).view()
    return view.token_sums.estimator.tokens(view.units())


async def test_a_policy_that_counts_the_same_keeps_the_view() -> None:
    """A keeper that sets its policy after a list of ten thousand messages was read does not read them again."""
    service = await opened(preset="holdfast", window=16_000)
    await service.append("s", [text_of("user"), text_of("assistant")])
    live = await service._live("s")
    view = await live.view()
    await service.set_policy("s", preset("holdfast").changed(target=2_000))
    assert await live.view() is view and live.policy is not None and live.policy.target == 2_000
    await service.set_policy("s", "layer")
    assert await live.view() is not view and live.estimator.name == (await live.view()).token_sums.estimator.name
