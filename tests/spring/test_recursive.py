"""Spring's recursive summary, case by case; messages are long enough for a summary to be smaller (S11-S14)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from spring_story import Story, names

from holdfast import CompactionResult, Outcome, RecursiveSummary, Reply, ScriptedModel, always, compact
from holdfast.errors import InvalidLimit
from holdfast.view import Request

pytestmark = pytest.mark.anyio
SUMMARY = "They talked at length about the harbour, and agreed to go on with it."
PLAIN = RecursiveSummary(3, 1, verify=False)


def long(name: str) -> str:
    return f"{name} {'says a good many words about the harbour and its ships ' * 8}".strip()


async def tell(story: Story, *told: str) -> None:
    for name in told:
        await story.say("user" if name.startswith(("u", "msg")) else "assistant", name, long(name))


async def compacted(story: Story, strategy: Any, model: Any) -> CompactionResult:
    return await story.service.compact(story.id, always, strategy, summarizer=model)


async def seen(story: Story) -> list[str]:
    """What each message begins with, and of a summary all that was written."""
    return [said if said.startswith("They") else said.split()[0] for said in map(bare, await story.visible())]


def bare(said: str) -> str:
    return said.partition("\n[holdfast:")[0]


def order(text: str, *pieces: str) -> bool:
    """Do these stand in the text in this order?"""
    places = [text.find(piece) for piece in pieces]
    return -1 not in places and places == sorted(places)


async def test_s11_six_messages_keep_three_are_two_synthetic_ones_and_the_last_three(story: Story) -> None:
    await tell(story, "msg-1", "msg-2", "msg-3", "msg-4", "msg-5", "msg-6")
    result = await compacted(story, PLAIN, ScriptedModel(SUMMARY))
    assert result.outcome is Outcome.COMPACTED
    assert await seen(story) == ["Please", SUMMARY, "msg-4", "msg-5", "msg-6"]
    assert [message["role"] for message in result.messages[:2]] == ["user", "assistant"]
    assert names(result.archived) == ["msg-1", "msg-2", "msg-3"]
    assert names(result.kept) == ["msg-4", "msg-5", "msg-6"]


async def test_s14_the_kept_window_starts_at_a_user_message(story: Story) -> None:
    await tell(story, "u1", "a1", "u2", "a2a", "a2b", "u3", "a3")
    result = await compacted(story, PLAIN, ScriptedModel(SUMMARY))
    assert await seen(story) == ["Please", SUMMARY, "u3", "a3"]
    assert result.removed == 5


async def test_s11_the_next_summary_replaces_the_one_before_which_is_not_archived(story: Story) -> None:
    await tell(story, "u1", "a1", "u2", "a2", "u3", "a3")
    await compacted(story, PLAIN, ScriptedModel(SUMMARY))
    await tell(story, "u4", "a4", "u5", "a5")
    again = await compacted(story, PLAIN, ScriptedModel("They have gone on to the ships."))
    assert await seen(story) == ["Please", "They have gone on to the ships.", "u5", "a5"]
    assert names(again.archived) == ["u3", "a3", "u4", "a4"]
    assert again.round == 2


async def test_s11_synthetic_events_of_others_are_replaced_too_and_not_archived(story: Story) -> None:
    await story.service.append(story.id, {"role": "user", "content": "sum up"}, id="shadow", synthetic=True)
    await story.service.append(story.id, {"role": "assistant", "content": long("before")}, id="sum", synthetic=True)
    await tell(story, "msg-1", "msg-2", "msg-3", "msg-4", "msg-5")
    model = ScriptedModel(SUMMARY)
    result = await compacted(story, PLAIN, model)
    assert await seen(story) == ["Please", SUMMARY, "msg-3", "msg-4", "msg-5"]
    assert long("before") in model.calls[0].prompt
    assert "sum up" not in model.calls[0].prompt
    assert names(result.archived) == ["msg-1", "msg-2"]


@pytest.mark.parametrize("blank", [None, "", "  \n\t "], ids=["null", "empty", "white space"])
async def test_s13_a_null_or_blank_summary_changes_nothing(
    story: Story, blank: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    await tell(story, "u1", "a1", "u2", "a2", "u3", "a3")
    before = await story.visible()
    failed: list[Request] = []
    asked: list[str] = []

    def says(text: str) -> Any:
        asked.append(text)
        return blank

    with caplog.at_level(logging.WARNING, "holdfast"):
        result = await compacted(story, RecursiveSummary(3, 1, on_failure=failed.append), says)
    assert result.outcome is Outcome.SUMMARY_FAILED
    assert result.why
    assert (await story.visible(), names(result.archived)) == (before, [])
    assert [request.session_id for request in failed] == [story.id]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert story.id in caplog.text
    assert 1 <= len(asked) <= 2
    assert [event.kind for event in await story.service.events(story.id) if event.kind == "compaction"] == []


async def test_s13_a_blank_summary_leaves_the_one_before(story: Story) -> None:
    await tell(story, "u1", "a1", "u2", "a2", "u3", "a3")
    await compacted(story, PLAIN, ScriptedModel(SUMMARY))
    await tell(story, "u4", "a4", "u5", "a5")
    before = await story.visible()
    result = await compacted(story, PLAIN, ScriptedModel(Reply(" "), repeat=True))
    assert (result.outcome, await story.visible()) == (Outcome.SUMMARY_FAILED, before)
    assert SUMMARY in before[1]


@pytest.mark.parametrize("told", [["u1", "a1"], ["u1", "a1", "u2"]], ids=["below", "at"])
async def test_s11_at_or_below_the_limit_no_model_is_called(story: Story, told: Sequence[str]) -> None:
    await tell(story, *told)
    model = ScriptedModel(SUMMARY)
    result = await compacted(story, PLAIN, model)
    assert (result.outcome, model.calls) == (Outcome.NOTHING_TO_COMPACT, [])
    assert (result.version, await seen(story)) == (len(told), list(told))


@pytest.mark.parametrize(("keep", "overlap"), [(3, 3), (3, 4), (3, -1), (0, 0), (-1, 0), (1, 1)])
def test_s11_an_overlap_that_is_no_part_of_what_stays_is_refused(keep: int, overlap: int) -> None:
    with pytest.raises(InvalidLimit, match=r"overlap_size|max_events_to_keep"):
        RecursiveSummary(keep, overlap)


@pytest.mark.parametrize(("keep", "overlap"), [(3, 2), (1, 0), (10, 2)])
def test_s11_one_less_than_what_stays_is_accepted(keep: int, overlap: int) -> None:
    assert RecursiveSummary(keep, overlap).overlap == overlap


def test_s11_ten_are_kept_and_two_overlap_by_default() -> None:
    standard = RecursiveSummary()
    assert (standard.keep.max_events, standard.overlap) == (10, 2)  # type: ignore[attr-defined]


async def test_s11_the_shadow_prompt_can_be_replaced(story: Story) -> None:
    await tell(story, "u1", "a1", "u2", "a2", "u3", "a3")
    strategy = RecursiveSummary(3, 1, shadow_prompt="What has happened so far?", verify=False)
    await compacted(story, strategy, ScriptedModel(SUMMARY))
    assert [bare(said) for said in (await story.visible())[:2]] == ["What has happened so far?", SUMMARY]


async def test_s11_the_system_prompt_can_be_replaced(story: Story) -> None:
    await tell(story, "u1", "a1", "u2", "a2", "u3", "a3")
    model = ScriptedModel(SUMMARY)
    await compacted(story, RecursiveSummary(3, 1, system_prompt="You sum up, in verse."), model)
    assert model.calls[0].system == "You sum up, in verse."


async def test_s12_only_the_assistants_text_goes_back_then_the_conversation_then_what_comes_next(story: Story) -> None:
    await tell(story, "u1", "a1", "u2", "a2", "u3", "a3")
    asks = RecursiveSummary(2, 1, shadow_prompt="What has happened so far?")
    await compacted(story, asks, ScriptedModel(SUMMARY))
    await tell(story, "u4", "a4", "u5", "a5")
    model = ScriptedModel("They have gone on to the ships.")
    await compacted(story, asks, model)
    prompt = model.calls[0].prompt
    assert "What has happened so far?" not in prompt
    assert prompt.count(SUMMARY) == 1
    assert order(prompt, "The summary so far:", SUMMARY, "The conversation to summarise:", long("u3"), long("a4"))
    assert order(prompt, long("a4"), "What comes next", "do not summarise it", long("u5"))
    assert long("u1") not in prompt
    assert long("a5") not in prompt, "the overlap is one message"


async def test_s12_facts_that_were_put_back_under_a_summary_do_not_go_back_as_the_summary(story: Story) -> None:
    await story.say("user", "u1", "Never push to the main branch. " + long("u1"))
    await tell(story, "a1", "u2", "a2", "u3", "a3")
    await compacted(story, RecursiveSummary(2, 1), ScriptedModel(SUMMARY))
    assert "Never push" in (await story.visible())[1]
    await tell(story, "u4", "a4")
    model = ScriptedModel("They have gone on to the ships.")
    await compacted(story, RecursiveSummary(2, 1), model)
    assert "Never push" not in model.calls[0].prompt
    assert "Never push" in (await story.visible())[1], "and yet they are there again"


def test_s12_without_a_session_a_long_shadow_prompt_is_not_taken_for_the_summary() -> None:
    said = [{"role": ("user", "assistant")[n % 2], "content": long(f"m{n}")} for n in range(10)]
    more = [{"role": ("user", "assistant")[n % 2], "content": long(f"n{n}")} for n in range(6)]
    prompt = "Please tell me once more, in your own words, what it is that we have been talking about until now."
    strategy = RecursiveSummary(2, 1, shadow_prompt=prompt, verify=False)
    first = compact(said, budget=10**6, trigger=always, strategy=strategy, summarizer=ScriptedModel("The harbour."))
    model = ScriptedModel("The ships.")
    second = compact(first.messages + more, budget=10**6, trigger=always, strategy=strategy, summarizer=model)
    assert "The harbour." in model.calls[0].prompt
    assert prompt not in model.calls[0].prompt
    assert [bare(message["content"]) for message in second.messages[:2]] == [prompt, "The ships."]


async def test_s12_a_tools_name_arguments_and_response_are_told(story: Story) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find_berth", "arguments": '{"ship": "Aurora"}'}}
    await tell(story, "u1")
    await story.service.append(story.id, {"role": "assistant", "content": None, "tool_calls": [call]}, id="call")
    answer = {"role": "tool", "tool_call_id": "c1", "content": "berth 17 is free"}
    await story.service.append(story.id, answer, id="answer")
    await tell(story, "a1", "u2", "a2")
    model = ScriptedModel(SUMMARY)
    result = await compacted(story, RecursiveSummary(2, 1), model)
    assert result.removed == 4
    for told in ("find_berth", '"ship"', "Aurora", "berth 17 is free"):
        assert told in model.calls[0].prompt
