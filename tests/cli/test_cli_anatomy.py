"""The breakdown of tokens: every token is counted once, in the right place."""

from __future__ import annotations

from typing import Any

import pytest
from cli_files import FORMATS, conversation
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import PROFILES, wire
from holdfast.anatomy import Anatomy, anatomy, side_by_side
from holdfast.cli.options import ESTIMATORS
from holdfast.compaction import beside
from holdfast.messages import decode_all, framed
from holdfast.tokens import estimator_for

CHARS = estimator_for("chars/4")


def taken_apart(messages: list[Any], estimator: str = "chars/4", **beside: Any) -> Anatomy:
    return anatomy(decode_all(messages)[0], estimator_for(estimator), **beside)


@settings(deadline=None)
@given(data=st.data(), profile=st.sampled_from(PROFILES), name=st.sampled_from(ESTIMATORS), broken=st.booleans())
def test_shares_add_up_to_what_the_estimator_says_of_the_whole(
    data: st.DataObject, profile: str, name: str, broken: bool
) -> None:
    messages, _ = decode_all(data.draw(wire(profile, broken)), profile)
    estimator = estimator_for(name)
    system, tools = "Be brief.", [{"name": "look"}]
    units = sum(map(estimator.measure, messages)) + sum(map(estimator.measure_text, beside(system, tools)))
    found = anatomy(messages, estimator, system, tools)
    assert found.tokens == estimator.tokens(units)
    assert sum(share.tokens for share in found.shares) == found.tokens
    assert found.messages == len(messages)


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_story_has_the_same_parts_in_every_format(format: str) -> None:
    messages, _ = decode_all(conversation(format, 40), format)
    found = anatomy(messages, CHARS)
    kinds = {share.kind: share for share in found.shares}
    assert kinds["user"].count == len(found.turns) == 10
    assert (kinds["tool"].label, kinds["tool"].count) == ("look", 10)
    assert 0 < kinds["tool"].calls < kinds["tool"].tokens
    assert [result.tool for result in found.results] == ["look"] * 10
    assert found.results[0].line.startswith("Berth")


def test_what_stands_beside_the_messages_is_counted() -> None:
    found = taken_apart([{"role": "user", "content": "hi"}], system="x" * 40, tools=[{"name": "look"}])
    assert [(share.kind, share.tokens) for share in found.shares] == [("system", 10), ("tools", 5), ("user", 3)]


def test_a_system_message_counts_as_system() -> None:
    found = taken_apart([{"role": "system", "content": "x" * 40}, {"role": "user", "content": "hi"}])
    assert [share.kind for share in found.shares] == ["system", "user"]
    assert found.turns[0].index == 1


def test_our_own_notes_are_told_from_the_users_words() -> None:
    messages = [framed("12 messages left out"), *decode_all([{"role": "user", "content": "go on"}])[0]]
    found = anatomy(messages, CHARS)
    assert [share.kind for share in found.shares] == ["note", "user"]
    assert [turn.index for turn in found.turns] == [1]


def test_the_largest_turn_and_the_largest_results_come_first() -> None:
    messages = conversation("openai-chat", 12)
    messages[6]["content"] = "found it\n" * 500
    found = taken_apart(messages)
    assert found.largest_turn is not None
    assert (found.largest_turn.number, found.largest_turn.index) == (2, 4)
    assert (found.results[0].index, found.results[0].line) == (6, "found it")
    sizes = [result.tokens for result in found.results]
    assert sizes == sorted(sizes, reverse=True)


def test_nothing_at_all() -> None:
    found = anatomy([], CHARS)
    assert (found.tokens, found.shares, found.largest_turn) == (0, (), None)


def tools(*names: str) -> Anatomy:
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for i, name in enumerate(names)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x" * 40} for call in calls]
    return taken_apart([{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": calls}, *results])


def test_rows_hold_both_sides_and_small_tools_go_together() -> None:
    before, after = tools("a", "b", "c", "d"), tools("a", "d", "e")
    rows = side_by_side(before, after, most=4)
    assert [row[0].label for row in rows] == ["user", "a", "b", "3 other tools"]
    for side, whole in enumerate((before, after)):
        assert sum(row[side].tokens for row in rows) == whole.tokens
    assert rows[2][1].tokens == 0
    assert len(side_by_side(before, after, most=10)) == 6
