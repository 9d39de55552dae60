"""L5, W3, G4: keep the newest messages, moving BACK over tool results, with the documents' own examples."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_table import PROFILES, Messages

import histories
from holdfast import Outcome, compact
from holdfast.context import Plan, Skip
from holdfast.errors import InvalidLimit
from holdfast.messages import Links, decode_all, framed_message, repair_messages, rules_for
from holdfast.strategies import KeepFraction, KeepLast
from holdfast.triggers import always
from sized import Json, calls, request_for, result

SYSTEM: Json = {"role": "system", "content": "You are an agent."}


def ask(text: str) -> Json:
    return {"role": "user", "content": text}


def say(text: str) -> Json:
    return {"role": "assistant", "content": text}


def rounds(first: int, last: int) -> Messages:
    """A call at each even index and its result at the next one."""
    return [
        message
        for place in range(first, last, 2)
        for message in (calls(f"c{place}") | {"content": f"step {place}"}, result(f"c{place}", 20))
    ]


def cut_of(strategy: Any, messages: Messages, **options: Any) -> int:
    plan = strategy(request_for(messages, **options))
    assert isinstance(plan, Plan)
    return plan.cut


def kept(strategy: Any, messages: Messages) -> Messages:
    return list(compact(messages, budget=10**9, trigger=always, strategy=strategy).messages)


FLASHCARDS = [
    SYSTEM,
    ask("Build a flashcard app"),
    *rounds(2, 46),
    say("All tests pass"),
    ask("Add AI integration"),
    *rounds(48, 50),
]


def test_l5_fifty_messages_keep_ten() -> None:
    """The layer document's picture: [0] stays, [1]-[39] go, [40]-[49] stay."""
    assert len(FLASHCARDS) == 50
    assert cut_of(KeepLast(), FLASHCARDS) == 40
    assert kept(KeepLast(10), FLASHCARDS) == [SYSTEM, *FLASHCARDS[40:]]


@pytest.mark.parametrize(
    ("keep", "cut"),
    [(9, 40), (10, 40), (11, 38), (12, 38), (4, 46), (3, 47), (2, 48), (1, 48), (48, 2), (47, 2), (46, 4)],
)
def test_l5_boundary_moves_back_over_tool_messages(keep: int, cut: int) -> None:
    assert cut_of(KeepLast(keep), FLASHCARDS) == cut


def test_l5_newest_user_message_outside_the_tail_is_kept() -> None:
    assert kept(KeepLast(2), FLASHCARDS) == [SYSTEM, *FLASHCARDS[47:]]


def test_l5_system_message_at_the_start_is_kept_once() -> None:
    messages = [SYSTEM, ask("one"), say("two"), SYSTEM, ask("three"), say("four")]
    assert kept(KeepLast(2), messages) == [SYSTEM, *messages[-2:]]


def test_l5_previous_summary_is_kept() -> None:
    summary = ask(framed_message("## Session Summary (Compaction Round 1)").text)
    messages = [SYSTEM, summary, *FLASHCARDS[2:]]
    assert kept(KeepLast(10), messages) == [SYSTEM, summary, *messages[40:]]


@pytest.mark.parametrize("count", [0, 1, 10, 11])
def test_l5_at_most_keep_plus_one_messages_are_unchanged(count: int) -> None:
    messages = [ask(f"{number}") for number in range(count)]
    assert KeepLast(10)(request_for(messages)) == Skip(Outcome.NOTHING_TO_COMPACT, "there are at most 11 messages")


def test_l5_from_twelve_messages_ten_are_kept() -> None:
    messages = [ask(f"{number}") for number in range(12)]
    assert kept(KeepLast(10), messages) == messages[2:]


WORKSTREAM = [ask("one"), say("two"), ask("three"), *rounds(4, 8), say("eight"), ask("nine"), say("ten")]


def test_w3_last_six_messages_stay_verbatim() -> None:
    assert cut_of(KeepLast(6), [ask(f"{number}") for number in range(20)]) == 14


def test_w3_tail_of_six_moves_back_over_a_tool_result() -> None:
    assert WORKSTREAM[-6]["role"] == "tool"
    assert kept(KeepLast(6), WORKSTREAM) == WORKSTREAM[-7:]


def test_w3_tail_moves_back_over_all_results_of_one_turn() -> None:
    batch = [calls("a", "b", "c"), result("a", 20), result("b", 20), result("c", 20)]
    messages = [ask("one"), say("two"), ask("go"), *batch, say("done"), ask("and?"), say("yes"), ask("well?")]
    for keep in (5, 6, 7, 8):
        assert cut_of(KeepLast(keep), messages) == 3


REFACTOR = [
    ask("Help me refactor"),
    *rounds(1, 3),
    ask("Now fix the bug"),
    *rounds(4, 6),
    ask("Also add tests"),
    *rounds(7, 9),
    ask("Run the tests"),
    *rounds(10, 12),
    ask("Now deploy"),
    say("I'll push to git"),
]


def test_g4_split_matches_the_documents_picture() -> None:
    """Goat's picture: of the messages [0]-[13], floor(0.4 * 14) = 5 stay, from [9] "Run the tests" on."""
    assert len(REFACTOR) == 14
    assert cut_of(KeepFraction(), REFACTOR) == 9
    assert kept(KeepFraction(), REFACTOR) == REFACTOR[9:]


def test_g4_split_pair_moves_back_into_the_kept_part() -> None:
    """Goat's other example: nine messages, three to keep; of eleven, the fourth last is a result."""
    nine = [ask("0"), *rounds(1, 3), ask("3"), say("4"), ask("5"), *rounds(6, 8), say("8")]
    eleven = [*nine, ask("9"), say("10")]
    assert (len(nine), cut_of(KeepFraction(), nine)) == (9, 6)
    assert (eleven[-4]["role"], cut_of(KeepFraction(), eleven)) == ("tool", 6)


@pytest.mark.parametrize(
    ("count", "keep"),
    [(2, 1), (3, 1), (4, 1), (5, 2), (9, 3), (10, 4), (20, 8), (100, 40)],
)
def test_g4_keeps_floor_of_two_fifths_but_at_least_one(count: int, keep: int) -> None:
    messages = [ask(f"{number}") for number in range(count)]
    assert cut_of(KeepFraction(), messages) == count - keep


def test_g4_single_message_is_unchanged() -> None:
    answer = KeepFraction()(request_for([ask("hi")]))
    assert isinstance(answer, Skip)
    assert answer.outcome is Outcome.NOTHING_TO_COMPACT


@pytest.mark.parametrize("part", [0, 1, -0.4, 40, float("nan")])
def test_g4_part_must_be_between_zero_and_one(part: float) -> None:
    with pytest.raises(InvalidLimit, match="between 0 and 1"):
        KeepFraction(part)


@pytest.mark.parametrize("keep", [0, -1, 1.5, True])
def test_l5_keep_must_be_a_whole_positive_number(keep: Any) -> None:
    with pytest.raises(InvalidLimit, match="keep must be a whole number of at least 1"):
        KeepLast(keep)


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data(), keep=st.integers(1, 12))
@settings(max_examples=min(60, settings().max_examples))
def test_keep_last_is_the_shortest_legal_tail_of_at_least_n(profile: str, data: st.DataObject, keep: int) -> None:
    decoded, _ = decode_all(data.draw(histories.wire(profile, broken=True)), profile)
    messages = repair_messages(decoded, rules_for(profile))
    request = request_for(messages, format=profile)
    plan = KeepLast(keep)(request)
    if isinstance(plan, Plan):
        wanted = min(len(messages) - keep, request.plan.last_cut)  # unread results stay (H10)
        assert plan.cut == max(filter(Links(messages).is_legal_cut, range(wanted + 1)))
