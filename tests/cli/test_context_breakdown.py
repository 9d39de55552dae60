"""Token breakdown: every token is counted once, in the right place."""

from __future__ import annotations

from typing import Any

import pytest
from cli_files import FORMATS, conversation
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import PROFILES, wire
from holdfast.cli.options import estimator_names
from holdfast.compaction.breakdown import ContextBreakdown, align_shares, break_down
from holdfast.messages import decode_all, framed_message
from holdfast.tokens import ReportedUsage, estimator_for
from holdfast.tokens.estimators import prompt_overhead

CHARS = estimator_for("chars/4")


def breakdown_of(messages: list[Any], estimator: str = "chars/4", **overhead: Any) -> ContextBreakdown:
    return break_down(decode_all(messages)[0], estimator_for(estimator), **overhead)


@settings(deadline=None)
@given(data=st.data(), profile=st.sampled_from(PROFILES), name=st.sampled_from(estimator_names()), broken=st.booleans())
def test_breakdown_shares_add_up_to_total(data: st.DataObject, profile: str, name: str, broken: bool) -> None:
    messages, _ = decode_all(data.draw(wire(profile, broken)), profile)
    estimator = estimator_for(name)
    system, tools = "Be brief.", [{"name": "look"}]
    units = sum(map(estimator.measure, messages)) + sum(map(estimator.measure_text, prompt_overhead(system, tools)))
    found = break_down(messages, estimator, system, tools)
    assert found.tokens == estimator.tokens(units)
    assert sum(share.tokens for share in found.shares) == found.tokens
    assert found.messages == len(messages)


@pytest.mark.parametrize("format", FORMATS)
def test_breakdown_is_equal_in_every_format(format: str) -> None:
    messages, _ = decode_all(conversation(format, 40), format)
    found = break_down(messages, CHARS)
    kinds = {share.kind: share for share in found.shares}
    assert kinds["user"].count == len(found.turns) == 10
    assert (kinds["tool"].label, kinds["tool"].count) == ("look", 10)
    assert 0 < kinds["tool"].calls < kinds["tool"].tokens
    assert [result.tool for result in found.results] == ["look"] * 10
    assert found.results[0].line.startswith("Berth")


def test_breakdown_counts_system_prompt_and_tools() -> None:
    found = breakdown_of([{"role": "user", "content": "hi"}], system="x" * 40, tools=[{"name": "look"}])
    assert [(share.kind, share.tokens) for share in found.shares] == [("system", 10), ("tools", 5), ("user", 3)]


def test_breakdown_system_message_counts_as_system() -> None:
    found = breakdown_of([{"role": "system", "content": "x" * 40}, {"role": "user", "content": "hi"}])
    assert [share.kind for share in found.shares] == ["system", "user"]
    assert found.turns[0].index == 1


def test_breakdown_separates_archive_notes_from_user_text() -> None:
    messages = [framed_message("12 messages left out"), *decode_all([{"role": "user", "content": "go on"}])[0]]
    found = break_down(messages, CHARS)
    assert [share.kind for share in found.shares] == ["note", "user"]
    assert [turn.index for turn in found.turns] == [1]


def test_breakdown_finds_largest_turn_and_results() -> None:
    messages = conversation("openai-chat", 12)
    messages[6]["content"] = "found it\n" * 500
    found = breakdown_of(messages)
    assert found.largest_turn is not None
    assert (found.largest_turn.number, found.largest_turn.index) == (2, 4)
    assert (found.results[0].index, found.results[0].line) == (6, "found it")
    sizes = [result.tokens for result in found.results]
    assert sizes == sorted(sizes, reverse=True)


def test_breakdown_of_empty_context_is_empty() -> None:
    found = break_down([], CHARS)
    assert (found.tokens, found.shares, found.largest_turn) == (0, (), None)


def tools(*names: str) -> ContextBreakdown:
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for i, name in enumerate(names)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x" * 40} for call in calls]
    return breakdown_of([{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": calls}, *results])


def test_align_shares_merges_small_tools() -> None:
    before, after = tools("a", "b", "c", "d"), tools("a", "d", "e")
    rows = align_shares(before, after, most=4)
    assert [row[0].label for row in rows] == ["user", "a", "b", "3 other tools"]
    for side, whole in enumerate((before, after)):
        assert sum(row[side].tokens for row in rows) == whole.tokens
    assert rows[2][1].tokens == 0
    assert len(align_shares(before, after, most=10)) == 6


def turns_of(*sizes: int) -> list[dict[str, str]]:
    """Turns of a user message and a reply of so many characters each."""
    return [{"role": role, "content": "x" * size} for size in sizes for role in ("user", "assistant")]


def test_p3_turn_tokens_are_the_difference_of_consecutive_reports() -> None:
    """By characters the second turn is the largest, by the provider's count the third."""
    reports = (ReportedUsage(5_000, 2), ReportedUsage(5_300, 4), ReportedUsage(9_000, 6))
    found = break_down(decode_all(turns_of(40, 4_000, 400, 80))[0], CHARS, reports=reports)
    assert [turn.tokens for turn in found.turns] == [24, 300, 3_700, 44]
    assert found.largest_turn is not None and found.largest_turn.number == 3


def test_p3_turns_between_two_distant_reports_share_the_difference_by_estimate() -> None:
    reports = (ReportedUsage(1_000, 2), ReportedUsage(4_000, 6))
    found = break_down(decode_all(turns_of(40, 390, 190))[0], CHARS, reports=reports)
    assert sum(turn.tokens for turn in found.turns[1:]) == 3_000
    assert found.turns[1].tokens == pytest.approx(2_000, abs=10)


def test_p3_reply_stored_in_several_messages_reports_once() -> None:
    messages = [*turns_of(40), {"role": "user", "content": "x"}, *[{"role": "assistant", "content": "y"}] * 3]
    reports = (ReportedUsage(1_000, 2), *(ReportedUsage(1_700, covers) for covers in (4, 5, 6)))
    assert break_down(decode_all(messages)[0], CHARS, reports=reports).turns[1].tokens == 700


@pytest.mark.parametrize(("second", "compacted_at"), [(900, ()), (1_000, ()), (8_000, (3,))])
def test_p3_turn_with_a_compaction_or_a_smaller_report_is_estimated(second: int, compacted_at: tuple[int, ...]) -> None:
    reports = (ReportedUsage(1_000, 2), ReportedUsage(second, 4))
    messages = decode_all(turns_of(40, 400))[0]
    found = break_down(messages, CHARS, reports=reports, compacted_at=compacted_at)
    assert found.turns == break_down(messages, CHARS).turns
