"""H2: what holds for `repair` whatever comes in, on random histories and on every small one."""

from __future__ import annotations

import copy
import json
from itertools import product

import pytest
from boundary_wire import PROFILES, SMALL, Messages, mended
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast import check
from holdfast.boundaries import find_problems, repair
from holdfast.messages import decode_all, profile_for
from judge import bound_thinking, judge

thorough = settings(max_examples=min(150, settings().max_examples))
each_profile = pytest.mark.parametrize("profile", PROFILES)


@each_profile
@given(data=st.data())
@thorough
def test_the_result_passes_check_and_the_judge(profile: str, data: st.DataObject) -> None:
    messages = data.draw(histories.wire(profile, broken=True))
    repaired = mended(messages, profile)
    assert check(repaired, profile) == []
    assert judge(repaired, profile) == []


@each_profile
@given(data=st.data())
@thorough
def test_repairing_twice_is_repairing_once(profile: str, data: st.DataObject) -> None:
    once = mended(data.draw(histories.wire(profile, broken=True)), profile)
    assert mended(once, profile) == once


@each_profile
@given(data=st.data())
@thorough
def test_neutral_messages_are_a_fixpoint_too(profile: str, data: st.DataObject) -> None:
    rules = profile_for(profile)
    once = repair(decode_all(data.draw(histories.wire(profile, broken=True)), profile)[0], rules)
    assert find_problems(once, rules) == []
    assert list(map(id, repair(once, rules))) == list(map(id, once))


@each_profile
@given(data=st.data())
@thorough
def test_the_same_input_gives_the_same_bytes(profile: str, data: st.DataObject) -> None:
    messages = data.draw(histories.wire(profile, broken=True))
    untouched = copy.deepcopy(messages)
    first, second = mended(messages, profile), mended(copy.deepcopy(messages), profile)
    assert json.dumps(first) == json.dumps(second)
    assert messages == untouched


@each_profile
@given(data=st.data())
@thorough
def test_a_valid_history_comes_back_as_the_very_same_objects(profile: str, data: st.DataObject) -> None:
    rules = profile_for(profile)
    decoded, _ = decode_all(data.draw(histories.wire(profile)), profile)
    if not find_problems(decoded, rules):
        assert list(map(id, repair(decoded, rules))) == list(map(id, decoded))


@each_profile
@given(data=st.data())
@thorough
def test_every_call_that_came_in_is_still_there_with_its_own_result(profile: str, data: st.DataObject) -> None:
    """H1: repair adds answers and leaves out what answers nothing, but drops no call and invents no result."""
    decoded, _ = decode_all(data.draw(histories.wire(profile, broken=True)), profile)
    repaired = repair(decoded, profile_for(profile))
    made = [(call.name, call.json) for message in decoded for call in message.calls]
    assert [(call.name, call.json) for message in repaired for call in message.calls] == made
    given_results = [result.content for message in decoded for result in message.results]
    shown = [result for message in repaired for result in message.results]
    assert all(result.content in given_results or "interrupted" in result.text for result in shown)


@given(messages=histories.wire("anthropic", broken=True))
@thorough
def test_a4_thinking_that_stays_still_verifies(messages: Messages) -> None:
    assert bound_thinking(messages, mended(messages, "anthropic")) == []


@each_profile
def test_every_history_of_up_to_three_messages_is_mended_for_good(profile: str) -> None:
    for length in (1, 2, 3):
        for some in product(SMALL[profile], repeat=length):
            repaired = mended(list(some), profile)
            assert check(repaired, profile) == []
            assert judge(repaired, profile) == []
            assert mended(repaired, profile) == repaired
