"""S14, P4: a cut moves forward to a user message; never an empty window, never half a pair.

u is the user's message, a the assistant's words, c a call, C two calls at once, t a tool's result, s a
system message: all of exactly ten tokens by the chars/4 rule.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategy_table import Messages

from holdfast import CompactionResult, KeepLedger, Outcome, SlidingWindow, TokenWindow, TurnWindow, check, compact
from holdfast.triggers import always
from sized import Json, result


def messages_for(letters: str) -> Messages:
    """A message of ten tokens for each letter; results belong to the calls before them, oldest first."""
    messages: Messages = []
    waiting: list[str] = []
    for place, letter in enumerate(letters.split()):
        label = f"{letter}{place}"
        if letter in "cC":
            names = [f"{label}-{number}" for number in range(2 if letter == "C" else 1)]
            waiting += names
            messages.append(_call_message(*names))
        elif letter == "t":
            messages.append(result(waiting.pop(0), 10))
        else:
            role = {"u": "user", "a": "assistant", "s": "system"}[letter]
            messages.append({"role": role, "content": label.ljust(32, ".")})
    return messages


def _call_message(*names: str) -> Json:
    """One call: 2 + 1 + 7 tokens; two: 2 + 2 * (1 + 3)."""
    text = "{" + '"n":"'.ljust({1: 25, 2: 9}[len(names)], "x") + '"}'
    made = [{"id": id, "type": "function", "function": {"name": "read", "arguments": text}} for id in names]
    return {"role": "assistant", "content": None, "tool_calls": made}


def window(messages: Messages, strategy: Any) -> CompactionResult:
    return compact(messages, budget=10**9, estimator="chars/4", trigger=always, strategy=strategy)


def shown(letters: str, strategy: Any) -> str:
    """The letters that are left, each with its index."""
    messages = messages_for(letters)
    places = {json.dumps(message): place for place, message in enumerate(messages)}
    left = [places[json.dumps(message)] for message in window(messages, strategy).messages]
    return " ".join(f"{letters.split()[place]}{place}" for place in left)


@pytest.mark.parametrize("letters", ["u", "a", "s u", "u c t a", "u C t t a"])
def test_fixture_message_has_ten_tokens(letters: str) -> None:
    request = window(messages_for(letters), TokenWindow(10**6))
    assert request.tokens_before == 10 * len(letters.split())


TOKENS: dict[str, tuple[str, int, str]] = {
    "two whole turns fit": ("u a u a u a", 40, "u2 a3 u4 a5"),
    "a cut inside a turn moves forward to the next": ("u a u a u a", 39, "u4 a5"),
    "forward over tool messages too": ("u c t a u a", 50, "u4 a5"),
    "the newest turn just fits": ("u a u a", 20, "u2 a3"),
    "ends in the user: one message is left": ("u a u a u", 10, "u4"),
    "ends in the user, who said too much": ("u a u a u", 5, "u4"),
    "ends in the assistant: the user's message and the newest words": ("u a a a a", 30, "u0 a3 a4"),
    "ends in the assistant: the user's message alone would fit": ("u a a a a", 10, "u0"),
    "ends in the assistant: tool pairs stay whole": ("u c t c t a", 30, "u0 a5"),
    "ends in the assistant: one pair more fits": ("u c t c t a", 40, "u0 c3 t4 a5"),
    "ends in results: the running round stays whatever it costs": ("u c t c t", 10, "u0 c3 t4"),
    "ends in results: one round more fits": ("u c t c t", 50, "u0 c1 t2 c3 t4"),
    "ends in results of parallel calls": ("u c t C t t", 10, "u0 C3 t4 t5"),
    "ends in results and a system message behind them": ("u c t c t s", 10, "u0 c3 t4 s5"),
    "ends in a call that waits": ("u a c t c", 10, "u0 c4"),
    "ends in one of two that waits": ("u a c t C t", 10, "u0 C4 t5"),
    "an earlier turn goes before the newest is split": ("u a u c t c t a", 40, "u2 c5 t6 a7"),
    "no user at all: the newest words": ("a a a", 10, "a2"),
    "no user at all: as many as fit": ("a a a", 20, "a1 a2"),
    "no user at all: the running round": ("a c t c t", 10, "c3 t4"),
    "no user at all: not even that fits": ("a a a", 5, "a2"),
    "a system message stays before the newest turn": ("s u a u a", 30, "s0 u3 a4"),
    "a system message and a turn that is split": ("s u c t c t a", 30, "s0 u1 a6"),
    "a system message stays where results before it go": ("u c t s a", 30, "s3 u0 a4"),
}


@pytest.mark.parametrize(("letters", "limit", "left"), TOKENS.values(), ids=TOKENS)
def test_token_window_snaps_to_turn(letters: str, limit: int, left: str) -> None:
    assert shown(letters, TokenWindow(limit)) == left


def test_system_message_after_newest_user_message_stays_with_it() -> None:
    question = {"role": "user", "content": "a long question " * 100}
    turn = [question, *messages_for("s a c t a")]
    assert window([*messages_for("u a " * 20), *turn], KeepLedger(700)).messages[-len(turn) :] == turn


EVENTS: dict[str, tuple[str, int, str]] = {
    "forward to the next turn": ("u a u a u a", 3, "u4 a5"),
    "the newest turn is split, its user message counts": ("u c t c t a", 4, "u0 c3 t4 a5"),
    "a pair that would be parted goes whole": ("u c t c t a", 3, "u0 a5"),
    "the running round stays": ("u c t c t", 1, "u0 c3 t4"),
    "one event, the user's": ("u a u", 1, "u2"),
    "one event in a turn that is over": ("u a a a", 1, "u0"),
    "no user at all": ("a a a", 2, "a1 a2"),
}


@pytest.mark.parametrize(("letters", "limit", "left"), EVENTS.values(), ids=EVENTS)
def test_sliding_window_snaps_to_turn(letters: str, limit: int, left: str) -> None:
    assert shown(letters, SlidingWindow(limit)) == left


TURNS: dict[str, tuple[str, int, str]] = {
    "whole turns, however long": ("u a u c t c t a", 1, "u2 c3 t4 c5 t6 a7"),
    "the preamble stays": ("a a u a u a", 1, "a0 a1 u4 a5"),
    "the newest turn has only begun": ("u a u", 1, "u2"),
}


@pytest.mark.parametrize(("letters", "limit", "left"), TURNS.values(), ids=TURNS)
def test_turn_window_snaps_to_turn(letters: str, limit: int, left: str) -> None:
    assert shown(letters, TurnWindow(limit)) == left


def test_window_that_cannot_fit_returns_smallest_valid_context() -> None:
    messages = messages_for("u a u c t c t")
    done = compact(messages, budget=20, estimator="chars/4", strategy=TokenWindow(20))
    assert done.outcome is Outcome.CANNOT_FIT
    assert done.messages == [messages[2], messages[5], {**messages[6], "content": "[cut: 7]"}]
    assert done.why == "the smallest valid context has 24 tokens, over the limit of 20"


TURNS_STRATEGY = st.lists(
    st.sampled_from(["u a", "u c t a", "u C t t a", "u c t c t a a", "a", "c t"]), min_size=1, max_size=8
)
ENDINGS = st.sampled_from(["", "u", "u a", "u c", "u C t", "u c t", "u c t c t"])


@given(scenes=TURNS_STRATEGY, ending=ENDINGS, limit=st.integers(1, 200), events=st.booleans())
def test_window_result_is_a_valid_suffix_with_newest_user_message(
    scenes: list[str], ending: str, limit: int, events: bool
) -> None:
    messages = messages_for(" ".join([*scenes, ending]))
    left = window(messages, SlidingWindow(max(1, limit // 10)) if events else TokenWindow(limit)).messages
    assert left
    assert check(left, "openai-chat") == []
    users = [message for message in messages if message["role"] == "user"]
    assert not users or users[-1] in left
    rest = left[1:] if left[0] == (users or [None])[-1] else left
    assert not rest or rest == messages[-len(rest) :]
