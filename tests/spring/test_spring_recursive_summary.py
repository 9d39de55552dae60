"""Spring's recursive summary, case by case; messages are long enough for a summary to be smaller (S11-S14)."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

import pytest
from spring_helpers import Scenario, names

from holdfast import CompactionResult, KeepLedger, Outcome, StructuredSummary, compact
from holdfast.context import Request
from holdfast.errors import InvalidLimit
from holdfast.models import Reply, ScriptedModel
from holdfast.strategies import RecursiveSummary
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
SUMMARY = "They talked at length about the harbour, and agreed to go on with it."
PLAIN = RecursiveSummary(3, 1, verify=False)


def long(name: str) -> str:
    return f"{name} {'says a good many words about the harbour and its ships ' * 8}".strip()


async def append_long(scenario: Scenario, *appended: str) -> None:
    for name in appended:
        await scenario.append_text("user" if name.startswith(("u", "msg")) else "assistant", name, long(name))


async def compacted(scenario: Scenario, strategy: Any, model: Any) -> CompactionResult:
    return await scenario.service.compact(scenario.id, always, strategy, summarizer=model)


async def seen(scenario: Scenario) -> list[str]:
    """The first word of each message; of a summary the whole text."""
    return [text if text.startswith("They") else text.split()[0] for text in map(bare, await scenario.visible())]


def bare(text: str) -> str:
    return text.partition("\n[holdfast:")[0]


def order(text: str, *pieces: str) -> bool:
    """Whether these pieces occur in the text in this order."""
    places = [text.find(piece) for piece in pieces]
    return -1 not in places and places == sorted(places)


async def test_s11_six_messages_keep_three_gives_two_synthetic_and_last_three(scenario: Scenario) -> None:
    await append_long(scenario, "msg-1", "msg-2", "msg-3", "msg-4", "msg-5", "msg-6")
    result = await compacted(scenario, PLAIN, ScriptedModel(SUMMARY))
    assert result.outcome is Outcome.COMPACTED
    assert await seen(scenario) == ["Please", SUMMARY, "msg-4", "msg-5", "msg-6"]
    assert [message["role"] for message in result.messages[:2]] == ["user", "assistant"]
    assert names(result.archived) == ["msg-1", "msg-2", "msg-3"]
    assert names(result.kept) == ["msg-4", "msg-5", "msg-6"]


async def test_s14_kept_window_starts_at_a_user_message(scenario: Scenario) -> None:
    await append_long(scenario, "u1", "a1", "u2", "a2a", "a2b", "u3", "a3")
    result = await compacted(scenario, PLAIN, ScriptedModel(SUMMARY))
    assert await seen(scenario) == ["Please", SUMMARY, "u3", "a3"]
    assert result.removed == 5


async def test_s11_next_summary_replaces_previous_without_archiving_it(scenario: Scenario) -> None:
    await append_long(scenario, "u1", "a1", "u2", "a2", "u3", "a3")
    await compacted(scenario, PLAIN, ScriptedModel(SUMMARY))
    await append_long(scenario, "u4", "a4", "u5", "a5")
    again = await compacted(scenario, PLAIN, ScriptedModel("They have gone on to the ships."))
    assert await seen(scenario) == ["Please", "They have gone on to the ships.", "u5", "a5"]
    assert names(again.archived) == ["u3", "a3", "u4", "a4"]
    assert again.round == 2


async def test_s11_foreign_synthetic_events_are_replaced_and_not_archived(scenario: Scenario) -> None:
    await scenario.service.append(scenario.id, {"role": "user", "content": "sum up"}, id="shadow", synthetic=True)
    await scenario.service.append(
        scenario.id, {"role": "assistant", "content": long("before")}, id="sum", synthetic=True
    )
    await append_long(scenario, "msg-1", "msg-2", "msg-3", "msg-4", "msg-5")
    model = ScriptedModel(SUMMARY)
    result = await compacted(scenario, PLAIN, model)
    assert await seen(scenario) == ["Please", SUMMARY, "msg-3", "msg-4", "msg-5"]
    assert long("before") in model.calls[0].prompt
    assert "sum up" not in model.calls[0].prompt
    assert names(result.archived) == ["msg-1", "msg-2"]


@pytest.mark.parametrize("blank", [None, "", "  \n\t "], ids=["null", "empty", "white space"])
async def test_s13_null_or_blank_summary_changes_nothing(
    scenario: Scenario, blank: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    await append_long(scenario, "u1", "a1", "u2", "a2", "u3", "a3")
    before = await scenario.visible()
    failed: list[Request] = []
    asked: list[str] = []

    def says(text: str) -> Any:
        asked.append(text)
        return blank

    with caplog.at_level(logging.WARNING, "holdfast"):
        result = await compacted(scenario, RecursiveSummary(3, 1, on_failure=failed.append), says)
    assert result.outcome is Outcome.SUMMARY_FAILED
    assert result.why
    assert (await scenario.visible(), names(result.archived)) == (before, [])
    assert [request.session_id for request in failed] == [scenario.id]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert scenario.id in caplog.text
    assert 1 <= len(asked) <= 2
    assert [event.kind for event in await scenario.service.events(scenario.id) if event.kind == "compaction"] == []


async def test_s13_blank_summary_leaves_previous_one(scenario: Scenario) -> None:
    await append_long(scenario, "u1", "a1", "u2", "a2", "u3", "a3")
    await compacted(scenario, PLAIN, ScriptedModel(SUMMARY))
    await append_long(scenario, "u4", "a4", "u5", "a5")
    before = await scenario.visible()
    result = await compacted(scenario, PLAIN, ScriptedModel(Reply(" "), repeat=True))
    assert (result.outcome, await scenario.visible()) == (Outcome.SUMMARY_FAILED, before)
    assert SUMMARY in before[1]


@pytest.mark.parametrize("appended", [["u1", "a1"], ["u1", "a1", "u2"]], ids=["below", "at"])
async def test_s11_at_or_below_limit_no_model_is_called(scenario: Scenario, appended: Sequence[str]) -> None:
    await append_long(scenario, *appended)
    model = ScriptedModel(SUMMARY)
    result = await compacted(scenario, PLAIN, model)
    assert (result.outcome, model.calls) == (Outcome.NOTHING_TO_COMPACT, [])
    assert (result.version, await seen(scenario)) == (len(appended), list(appended))


@pytest.mark.parametrize(("keep", "overlap"), [(3, 3), (3, 4), (3, -1), (0, 0), (-1, 0), (1, 1)])
def test_s11_invalid_overlap_is_rejected(keep: int, overlap: int) -> None:
    with pytest.raises(InvalidLimit, match=r"overlap_size|max_events_to_keep"):
        RecursiveSummary(keep, overlap)


@pytest.mark.parametrize(("keep", "overlap"), [(3, 2), (1, 0), (10, 2)])
def test_s11_overlap_below_kept_events_is_accepted(keep: int, overlap: int) -> None:
    assert RecursiveSummary(keep, overlap).overlap == overlap


def test_s11_defaults_keep_ten_and_overlap_two() -> None:
    standard = RecursiveSummary()
    assert (standard.keep.max_events, standard.overlap) == (10, 2)  # type: ignore[attr-defined]


async def test_s11_shadow_prompt_can_be_replaced(scenario: Scenario) -> None:
    await append_long(scenario, "u1", "a1", "u2", "a2", "u3", "a3")
    strategy = RecursiveSummary(3, 1, shadow_prompt="What has happened so far?", verify=False)
    await compacted(scenario, strategy, ScriptedModel(SUMMARY))
    assert [bare(text) for text in (await scenario.visible())[:2]] == ["What has happened so far?", SUMMARY]


async def test_s11_system_prompt_can_be_replaced(scenario: Scenario) -> None:
    await append_long(scenario, "u1", "a1", "u2", "a2", "u3", "a3")
    model = ScriptedModel(SUMMARY)
    await compacted(scenario, RecursiveSummary(3, 1, system_prompt="You sum up, in verse."), model)
    assert model.calls[0].system == "You sum up, in verse."


async def test_s12_prompt_holds_previous_summary_then_conversation_then_overlap(scenario: Scenario) -> None:
    await append_long(scenario, "u1", "a1", "u2", "a2", "u3", "a3")
    asks = RecursiveSummary(2, 1, shadow_prompt="What has happened so far?")
    await compacted(scenario, asks, ScriptedModel(SUMMARY))
    await append_long(scenario, "u4", "a4", "u5", "a5")
    model = ScriptedModel("They have gone on to the ships.")
    await compacted(scenario, asks, model)
    prompt = model.calls[0].prompt
    assert "What has happened so far?" not in prompt
    assert prompt.count(SUMMARY) == 1
    assert order(prompt, "The summary so far:", SUMMARY, "The conversation to summarise:", long("u3"), long("a4"))
    assert order(prompt, long("a4"), "What comes next", "do not summarise it", long("u5"))
    assert long("u1") not in prompt
    assert long("a5") not in prompt, "the overlap is one message"


async def test_s12_restored_facts_are_not_passed_back_as_summary(scenario: Scenario) -> None:
    await scenario.append_text("user", "u1", "Never push to the main branch. " + long("u1"))
    await append_long(scenario, "a1", "u2", "a2", "u3", "a3")
    await compacted(scenario, RecursiveSummary(2, 1), ScriptedModel(SUMMARY))
    assert "Never push" in (await scenario.visible())[1]
    await append_long(scenario, "u4", "a4")
    model = ScriptedModel("They have gone on to the ships.")
    await compacted(scenario, RecursiveSummary(2, 1), model)
    assert "Never push" not in model.calls[0].prompt
    assert "Never push" in (await scenario.visible())[1], "restored facts are shown again"


def test_s12_long_shadow_prompt_without_session_is_not_taken_as_summary() -> None:
    text = [{"role": ("user", "assistant")[n % 2], "content": long(f"m{n}")} for n in range(10)]
    more = [{"role": ("user", "assistant")[n % 2], "content": long(f"n{n}")} for n in range(6)]
    prompt = "Please tell me once more, in your own words, what it is that we have been talking about until now."
    strategy = RecursiveSummary(2, 1, shadow_prompt=prompt, verify=False)
    first = compact(text, budget=10**6, trigger=always, strategy=strategy, summarizer=ScriptedModel("The harbour."))
    model = ScriptedModel("The ships.")
    second = compact(first.messages + more, budget=10**6, trigger=always, strategy=strategy, summarizer=model)
    assert "The harbour." in model.calls[0].prompt
    assert prompt not in model.calls[0].prompt
    assert [bare(message["content"]) for message in second.messages[:2]] == [prompt, "The ships."]


async def test_s12_prompt_includes_tool_name_arguments_and_response(scenario: Scenario) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find_berth", "arguments": '{"ship": "Aurora"}'}}
    await append_long(scenario, "u1")
    await scenario.service.append(scenario.id, {"role": "assistant", "content": None, "tool_calls": [call]}, id="call")
    answer = {"role": "tool", "tool_call_id": "c1", "content": "berth 17 is free"}
    await scenario.service.append(scenario.id, answer, id="answer")
    await append_long(scenario, "a1", "u2", "a2")
    model = ScriptedModel(SUMMARY)
    result = await compacted(scenario, RecursiveSummary(2, 1), model)
    assert result.removed == 4
    for expected in ("find_berth", '"ship"', "Aurora", "berth 17 is free"):
        assert expected in model.calls[0].prompt


async def test_s11_synthetic_events_inside_the_kept_window_are_replaced_too(scenario: Scenario) -> None:
    await append_long(scenario, "u1", "a1", "u2", "a2", "u3")
    await scenario.service.append(
        scenario.id, {"role": "assistant", "content": long("before")}, id="sum", synthetic=True
    )
    await append_long(scenario, "a3")
    model = ScriptedModel(SUMMARY)
    result = await compacted(scenario, PLAIN, model)
    assert long("before") in model.calls[0].prompt
    assert await seen(scenario) == ["Please", SUMMARY, "u3", "a3"]
    assert names(result.archived) == ["u1", "a1", "u2", "a2"]


async def test_s15_estimator_of_the_recursive_summary_counts_the_tokens_saved(scenario: Scenario) -> None:
    await append_long(scenario, "u1", "a1", "u2", "a2", "u3", "a3")
    counted = RecursiveSummary(3, 1, verify=False, estimator=lambda text: 100)
    result = await compacted(scenario, counted, ScriptedModel(SUMMARY))
    assert (result.removed, result.tokens_saved) == (4, 200)


@pytest.mark.parametrize("mark", [{"synthetic": True}, {"aside": True}], ids=["synthetic", "aside"])
@pytest.mark.parametrize("strategy", [RecursiveSummary(3, 1), StructuredSummary(), KeepLedger()])
async def test_s8_a_program_in_the_users_voice_does_not_state_the_task(
    scenario: Scenario, strategy: Any, mark: dict[str, bool]
) -> None:
    """S8, L7: synthetic events are apart from real ones."""
    opening = {"role": "user", "content": "Whales are large animals."}
    await scenario.service.append(scenario.id, opening, id="opening", **mark)  # type: ignore[arg-type]
    for turn in range(1, 9):
        await append_long(scenario, f"u{turn}", f"a{turn}")
    assert (await scenario.service.title(scenario.id)).startswith("u1 says")
    handoff = await scenario.service.handoff(scenario.id, "Go on.", max_tokens=3_000)
    assert task_in(handoff.message).startswith("u1 says")
    result = await scenario.service.compact(
        scenario.id, always, strategy, target=2_400, summarizer=ScriptedModel(STRUCTURED)
    )
    assert result.outcome is Outcome.COMPACTED
    assert task_in("\n".join(map(bare, await scenario.visible()))).startswith("u1 says")


STRUCTURED = "### Current State\n- Working on: the harbour\n\n### Pending Work\n- [ ] ships"


def task_in(text: str) -> str:
    """The text under the heading of the task."""
    return re.split(r"#+ (?:The task|Original Task|Task).*\n", text)[1]
