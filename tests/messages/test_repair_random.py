"""H2: properties of `repair` on random histories and on every small one."""

from __future__ import annotations

import copy
import json
from itertools import product

import pytest
from boundary_wire import PROFILES, SMALL, Messages
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast import check
from holdfast.messages import decode_all, find_problems, repair, repair_messages, rules_for
from judge import bound_thinking, judge

thorough = settings(max_examples=min(150, settings().max_examples))
each_profile = pytest.mark.parametrize("profile", PROFILES)


@each_profile
@given(data=st.data())
@thorough
def test_repair_result_passes_check_and_judge(profile: str, data: st.DataObject) -> None:
    messages = data.draw(histories.wire(profile, broken=True))
    repaired = repair(messages, profile)
    assert check(repaired, profile) == []
    assert judge(repaired, profile) == []


@each_profile
@given(data=st.data())
@thorough
def test_repair_is_idempotent(profile: str, data: st.DataObject) -> None:
    once = repair(data.draw(histories.wire(profile, broken=True)), profile)
    assert repair(once, profile) == once


@each_profile
@given(data=st.data())
@thorough
def test_repair_neutral_messages_is_idempotent(profile: str, data: st.DataObject) -> None:
    rules = rules_for(profile)
    once = repair_messages(decode_all(data.draw(histories.wire(profile, broken=True)), profile)[0], rules)
    assert find_problems(once, rules) == []
    assert list(map(id, repair_messages(once, rules))) == list(map(id, once))


@each_profile
@given(data=st.data())
@thorough
def test_repair_is_deterministic(profile: str, data: st.DataObject) -> None:
    messages = data.draw(histories.wire(profile, broken=True))
    untouched = copy.deepcopy(messages)
    first, second = repair(messages, profile), repair(copy.deepcopy(messages), profile)
    assert json.dumps(first) == json.dumps(second)
    assert messages == untouched


@each_profile
@given(data=st.data())
@thorough
def test_repair_valid_history_gives_same_objects(profile: str, data: st.DataObject) -> None:
    rules = rules_for(profile)
    decoded, _ = decode_all(data.draw(histories.wire(profile)), profile)
    if not find_problems(decoded, rules):
        assert list(map(id, repair_messages(decoded, rules))) == list(map(id, decoded))


@each_profile
@given(data=st.data())
@thorough
def test_repair_keeps_every_call_with_its_result(profile: str, data: st.DataObject) -> None:
    """H1: repair adds error results and drops orphan results, but drops no call and invents no result."""
    decoded, _ = decode_all(data.draw(histories.wire(profile, broken=True)), profile)
    repaired = repair_messages(decoded, rules_for(profile))
    made = [(call.name, call.arguments_json) for message in decoded for call in message.calls]
    assert [(call.name, call.arguments_json) for message in repaired for call in message.calls] == made
    given_results = [result.content for message in decoded for result in message.results]
    shown = [result for message in repaired for result in message.results]
    assert all(result.content in given_results or "interrupted" in result.text for result in shown)


@given(messages=histories.wire("anthropic", broken=True))
@thorough
def test_a4_repair_kept_reasoning_still_verifies(messages: Messages) -> None:
    assert bound_thinking(messages, repair(messages, "anthropic")) == []


@each_profile
def test_repair_all_short_histories_are_valid_and_stable(profile: str) -> None:
    for length in (1, 2, 3):
        for some in product(SMALL[profile], repeat=length):
            repaired = repair(list(some), profile)
            assert check(repaired, profile) == []
            assert judge(repaired, profile) == []
            assert repair(repaired, profile) == repaired
