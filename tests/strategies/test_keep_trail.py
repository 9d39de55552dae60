"""The trail that follows a summary: the newest steps with long results cut (H1, H3)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import histories
from holdfast import CompactionResult, Outcome, StructuredSummary, check, compact
from holdfast.context import Plan
from holdfast.errors import InvalidLimit
from holdfast.models import ScriptedModel
from holdfast.strategies import KeepRecent, KeepTrail
from holdfast.triggers import always
from sized import Messages, request_for

_CUT = re.compile(r"\[cut: ([\d,]+)\]")
SUMMARY = "## Goal\nMend the harbour.\n## Current State\nBerth 11 is next."


def step(number: int, lines: int = 60) -> Messages:
    """A call and its long result."""
    text = "\n".join(f"berth_{number} row {row} mooring_{number}_{row}" for row in range(lines))
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": f'{{"berth": {number}}}'}}
    return [
        {"role": "assistant", "content": f"Now berth {number}.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": text},
    ]


def work(steps: int = 40) -> Messages:
    return [{"role": "user", "content": "Mend every berth."}, *(one for number in range(steps) for one in step(number))]


def summarized(messages: Messages, keep: Any = None, **options: Any) -> CompactionResult:
    settings: dict[str, Any] = {"budget": 16_000, "target": 8_000, "trigger": always, "estimator": "chars/4"}
    model = ScriptedModel(SUMMARY, repeat=True)
    return compact(messages, strategy=StructuredSummary(keep), summarizer=model, **settings | options)


def results_of(result: CompactionResult) -> list[str]:
    return [message["content"] for message in result.messages if message["role"] == "tool"]


def test_trail_after_a_summary_reaches_further_than_whole_messages() -> None:
    trail, whole = summarized(work()), summarized(work(), KeepRecent())
    assert trail.outcome is whole.outcome is Outcome.COMPACTED
    assert len(results_of(trail)) > 1.5 * len(results_of(whole))
    assert max(trail.tokens_after, whole.tokens_after) <= 8_000


def test_newest_results_stay_whole_and_older_ones_cite_their_message() -> None:
    messages = work()
    shown = results_of(summarized(messages))
    cut = [bool(_CUT.match(text)) for text in shown]
    assert cut == sorted(cut, reverse=True) and True in cut and False in cut
    for text in shown:
        if mark := _CUT.match(text):
            whole = messages[int(mark[1].replace(",", "")) - 1]["content"]
            assert text.partition("\n")[2] in whole and len(text) < len(whole)


def test_summary_says_what_a_cut_mark_means_and_the_summarizer_does_not_see_it_again() -> None:
    first = summarized(work())
    note = next(message["content"] for message in first.messages if "Mend the harbour." in str(message["content"]))
    assert "Results that begin with a cut mark show selected lines of the message it names." in note
    model = ScriptedModel(SUMMARY, repeat=True)
    messages = [*first.messages, *(one for number in range(40, 80) for one in step(number))]
    options: dict[str, Any] = {"budget": 16_000, "target": 8_000, "trigger": always, "estimator": "chars/4"}
    second = compact(messages, strategy=StructuredSummary(), summarizer=model, **options)
    assert second.outcome is Outcome.COMPACTED
    assert model.calls and not any("begin with a cut mark" in call.prompt for call in model.calls)


def test_summarizer_reads_what_the_trail_does_not_show() -> None:
    model = ScriptedModel(SUMMARY, repeat=True)
    options: dict[str, Any] = {"budget": 16_000, "target": 8_000, "trigger": always, "estimator": "chars/4"}
    result = compact(work(), strategy=StructuredSummary(), summarizer=model, **options)
    cut = [int(mark[1]) for text in results_of(result) if (mark := _CUT.match(text))]
    prompts = "\n".join(call.prompt for call in model.calls)
    assert cut and all(f"Now berth {(number - 3) // 2}." in prompts for number in cut)


def test_hidden_lines_are_carried_to_the_next_round() -> None:
    first = summarized(work())
    hidden = next(text for text in results_of(first) if _CUT.match(text))
    number = int(_CUT.match(hidden)[1])  # type: ignore[index]
    assert first.checkpoint is not None and first.checkpoint.carry.ledger is not None
    lines = [line[0] for line in first.checkpoint.carry.ledger["lines"] if line[3] == number]
    assert lines and not set(lines) & set(hidden.splitlines())


@given(messages=histories.wire("openai-chat"), target=st.integers(50, 3_000))
def test_trail_of_random_history_is_valid_and_within_its_room(messages: Messages, target: int) -> None:
    result = summarized(messages, target=target, budget=10**6, format="openai-chat")
    assert check(result.messages, "openai-chat") == []
    plan = KeepTrail(500)(request_for(messages, format="openai-chat"))
    assert not isinstance(plan, Plan) or all(index >= plan.cut for index in plan.edited)


def test_limit_must_be_positive() -> None:
    with pytest.raises(InvalidLimit):
        KeepTrail(0)
