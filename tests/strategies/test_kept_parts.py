"""What stays beside a summary: the newest tokens, nothing, or the user's own words (P2, P4, P7, P20, P21)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import (
    AsUser,
    CompactionResult,
    FreeText,
    KeepNothing,
    KeepRecent,
    KeepUserMessages,
    ModelCall,
    Outcome,
    ScriptedModel,
    StructuredSummary,
    Summary,
    always,
    compact,
)
from holdfast.errors import InvalidLimit
from holdfast.messages import is_framed
from holdfast.messages import user as said_by_user
from holdfast.strategies.tail import KEEP_TOKENS
from holdfast.view import Plan, Skip
from sized import Json, Messages, calls, request_for, result, round_of, said, user


def turns(count: int, tokens: int = 1_000) -> Messages:
    """Turns of a user message of 10 tokens and a reply; each turn of so many tokens."""
    return [message for number in range(count) for message in (user(10, f"u{number}x"), said(tokens - 10))]


def planned(strategy: Any, messages: Messages, **options: Any) -> Plan:
    plan = strategy(request_for(messages, **options))
    assert isinstance(plan, Plan), plan
    return plan


def skipped(strategy: Any, messages: Messages, **options: Any) -> Outcome:
    answer = strategy(request_for(messages, **options))
    assert isinstance(answer, Skip), answer
    return answer.outcome


def wrote(told: str, keep: Any, **more: Any) -> tuple[Summary, ScriptedModel]:
    options: dict[str, Any] = {"verify": False, "last_resort": "unchanged"}
    return Summary(keep, FreeText(), AsUser(), **options | more), ScriptedModel(told, repeat=True)


def run(messages: Messages, keep: Any, told: str = "they talked", **more: Any) -> CompactionResult:
    strategy, model = wrote(told, keep)
    options: dict[str, Any] = {"budget": 10**6, "trigger": always, "estimator": "chars/4"}
    return compact(messages, strategy=strategy, summarizer=model, **options | more)


def name_of(message: Json) -> str:
    return str(message["content"]).split(".")[0].split()[0]


def is_ours(message: Json) -> bool:
    return is_framed(said_by_user(str(message["content"])))


# -- the newest tokens ----------------------------------------------------------------------------------------------


def test_p2_the_newest_20_000_tokens_stay() -> None:
    assert KEEP_TOKENS == 20_000
    assert planned(KeepRecent(), turns(50)).cut == 60, "twenty turns of a thousand tokens"


@pytest.mark.parametrize(("tokens", "first"), [(4_000, 46), (4_009, 46), (3_999, 47), (1_000, 49), (4_990, 46)])
def test_p4_walking_back_to_so_many_tokens_and_then_forward_to_a_user_message(tokens: int, first: int) -> None:
    """A reply whose question would not fit goes with its question."""
    assert planned(KeepRecent(tokens), turns(50)).cut == 2 * first


def test_p2_a_newest_turn_that_is_too_large_is_split_and_its_user_message_stays() -> None:
    loop = [message for number in range(10) for message in round_of(f"c{number}", 500)]
    messages = [*turns(3), user(10, "mend"), *loop]
    result = run(messages, KeepRecent(1_100))
    assert [message for message in result.messages if message in messages] == [messages[6], *messages[-4:]]


def test_what_is_all_within_the_tokens_is_left_alone() -> None:
    assert skipped(KeepRecent(), turns(3)) is Outcome.NOTHING_TO_COMPACT


@pytest.mark.parametrize(("target", "kept"), [(None, 20), (100_000, 20), (20_010, 8), (20_009, 7), (5_010, 2), (10, 0)])
def test_never_more_is_kept_than_the_target_leaves(target: int | None, kept: int) -> None:
    """Two fifths of what the newest user message leaves, which stays in any case; the rest is for the summary."""
    assert planned(KeepRecent(), turns(50), target=target).cut == 2 * (50 - kept)


def test_the_summarys_own_limit_is_what_its_tail_has_to_leave_room_in() -> None:
    """No message is kept by the tail and then dropped for want of room: it would be in neither part."""
    model = ScriptedModel("### Completed Work\n- None\n\n### Key Technical Decisions\n- all was said\n")
    messages = turns(80, 400)
    strategy = StructuredSummary(max_tokens=5_000, verify=False)
    result = compact(messages, budget=30_000, strategy=strategy, summarizer=model, estimator="chars/4")
    assert (result.outcome, result.strategy) == (Outcome.COMPACTED, "structured summary")
    assert result.tokens_after <= 5_000
    told = model.calls[0].prompt + str(result.messages)
    assert [name_of(message) for message in messages[::2] if name_of(message) not in told] == []


def test_p7_with_fresh_only_nothing_is_kept_twice() -> None:
    """Pi's second compaction: "3 kept" = a6, u7, a7 and snaps forward to u7, a7."""
    first = run(turns(10), KeepRecent(3_000, fresh_only=True))
    assert [name_of(message) for message in first.kept[::2]] == ["u7x", "u8x", "u9x"]
    more = [user(10, "u10x"), said(500)]
    for fresh, kept in ((True, ["u10x"]), (False, ["u8x", "u9x", "u10x"])):
        again = run(first.messages + more, KeepRecent(3_000, fresh_only=fresh), previous=first.checkpoint)
        assert [name_of(message) for message in again.messages if message in turns(10) + more][::2] == kept


@pytest.mark.parametrize("tokens", [0, -1, 1.5, True])
@pytest.mark.parametrize("keep", [KeepRecent, KeepUserMessages])
def test_limits_are_whole_numbers_above_nothing(keep: Any, tokens: Any) -> None:
    with pytest.raises(InvalidLimit, match="keep_tokens must be a whole number of at least 1"):
        keep(tokens)


SIZES = st.lists(st.tuples(st.integers(10, 60), st.integers(10, 400)), min_size=1, max_size=14)


@given(SIZES, st.integers(1, 2_000), st.none() | st.integers(1, 3_000))
@settings(max_examples=min(100, settings().max_examples))
def test_a_recent_tail_begins_with_a_turn_and_is_the_longest_that_fits(
    sizes: list[tuple[int, int]], tokens: int, target: int | None
) -> None:
    messages = [message for asked, told in sizes for message in (user(asked, "u"), said(told))]
    request = request_for(messages, target=target)
    plan = KeepRecent(tokens)(request)
    if isinstance(plan, Plan):
        most = tokens if target is None else min(tokens, max(0, int((target - sizes[-1][0]) * (1 - 0.6))))
        kept = [sum(map(sum, sizes[turn:])) for turn in range(len(sizes))]
        whole = [2 * turn for turn, size in enumerate(kept) if size <= most]
        assert plan.cut == (whole[0] if whole else len(messages) - (sizes[-1][1] <= most))


# -- nothing --------------------------------------------------------------------------------------------------------


def test_p20_all_of_it_goes_but_the_newest_of_what_the_user_said() -> None:
    messages = turns(5)
    result = run(messages, KeepNothing())
    assert [message for message in result.messages if message in messages] == [messages[8]]
    assert len(result.messages) == 2


def test_p20_a_loop_that_is_still_running_stays() -> None:
    loop = [user(10, "mend"), *round_of("c1", 50), calls("c2", "c3"), result("c2", 50), result("c3", 50)]
    messages = [*turns(5), *loop]
    after = run(messages, KeepNothing())
    assert [message for message in after.messages if message in messages] == [loop[0], *loop[3:]]


def test_p20_an_answered_loop_does_not() -> None:
    messages = [*turns(5), user(10, "mend"), *round_of("c1", 50), said(20)]
    after = run(messages, KeepNothing())
    assert [message for message in after.messages if message in messages] == [messages[10]]


@pytest.mark.parametrize("messages", [[], [user(10)], [user(10), *round_of("c1", 50)]], ids=["none", "one", "a loop"])
def test_p20_where_nothing_may_go_it_says_so(messages: Messages) -> None:
    assert skipped(KeepNothing(), messages) is Outcome.NOTHING_TO_COMPACT


# -- the user's words -----------------------------------------------------------------------------------------------


def questions(count: int, tokens: int, start: int = 0) -> Messages:
    return [message for number in range(start, start + count) for message in (user(tokens, f"u{number}x"), said(300))]


def test_p21_the_newest_of_the_users_messages_stay_up_to_20_000_tokens() -> None:
    plan = planned(KeepUserMessages(), questions(50, 1_000))
    assert (plan.cut, plan.preamble) == (100, tuple(range(60, 100, 2)))


@pytest.mark.parametrize(("tokens", "kept"), [(3_000, 3), (2_999, 2), (1, 0), (10**6, 10)])
def test_p21_newest_first_and_never_over_a_gap(tokens: int, kept: int) -> None:
    plan = planned(KeepUserMessages(tokens), questions(10, 1_000))
    assert plan.preamble == tuple(range(20 - 2 * kept, 20, 2))


def test_p21_a_large_one_ends_the_walk() -> None:
    """A smaller one before it is not brought forward."""
    messages = [*questions(2, 100), user(5_000, "large"), said(10), *questions(2, 100)]
    assert planned(KeepUserMessages(1_000), messages).preamble == (6, 8)


def test_p21_the_summary_stands_behind_them() -> None:
    messages = questions(10, 500)
    after = run(messages, KeepUserMessages(2_000))
    assert after.messages[:-1] == messages[12::2]
    assert is_ours(after.messages[-1])


def test_p21_a_running_loop_stands_behind_the_summary() -> None:
    messages = [*questions(6, 500), user(10, "mend"), *round_of("c1", 50)]
    after = run(messages, KeepUserMessages(2_000))
    assert [is_ours(message) if message.get("content") else False for message in after.messages[-3:]] == [
        True,
        False,
        False,
    ]
    assert after.messages[-2:] == messages[-2:]


def test_p21_at_most_half_of_what_the_target_leaves() -> None:
    plan = planned(KeepUserMessages(), questions(50, 1_000), target=9_000)
    assert 3 <= len(plan.preamble) <= 4


def rounds(count: int) -> list[tuple[Messages, Messages]]:
    """After each round, what the user had said and what of it still stands."""
    history, found = questions(10, 500), []
    after = run(history, KeepUserMessages(2_000))
    for round in range(1, count + 1):
        more = questions(3, 500, start=10 * round)
        history += more
        after = run(after.messages + more, KeepUserMessages(2_000), "they talked on", previous=after.checkpoint)
        assert sum(map(is_ours, after.messages)) == 1
        said_so = [message for message in history if message["role"] == "user"]
        found.append((said_so, [message for message in after.messages if not is_ours(message)]))
    return found


def test_p21_what_an_earlier_round_kept_counts_too_and_is_forgotten_when_it_is_too_much() -> None:
    """So there are never more than so many tokens of them, however many rounds there were."""
    for said_so, kept in rounds(4):
        assert len(kept) == 4
        assert kept[-3:] == said_so[-3:]
        assert kept[0] in said_so[-5:]


def test_p21_they_are_the_newest_without_a_gap_in_every_round() -> None:
    for said_so, kept in rounds(4):
        assert kept == said_so[-4:]


def test_p21_where_every_message_is_the_users_and_fits_nobody_is_asked() -> None:
    model = ScriptedModel("never asked")
    strategy, _ = wrote("", KeepUserMessages())
    messages = [user(100, f"u{number}x") for number in range(9)]
    after = compact(messages, budget=10**6, trigger=always, strategy=strategy, summarizer=model, estimator="chars/4")
    assert (after.outcome, model.calls, after.messages) == (Outcome.NOTHING_TO_COMPACT, [], messages)


def test_p21_the_newest_message_does_not_take_the_summarys_room_twice() -> None:
    """It is kept as the newest, and as one of the user's: it is there once, and counted once."""
    asked: list[int] = []

    def answers(call: ModelCall) -> str:
        asked.append(int(call.prompt.rpartition("at most ")[2].split()[0].replace(",", "")))
        return "they talked"

    strategy, _ = wrote("", KeepUserMessages())
    for newest in (100, 4_000):
        messages = [*turns(60), user(newest, "newest")]
        options: dict[str, Any] = {"budget": 20_000, "strategy": strategy, "estimator": "chars/4"}
        after = compact(messages, summarizer=ScriptedModel(answers), **options)
        assert after.outcome is Outcome.COMPACTED
    assert asked[0] - asked[1] < 0.6 * 0.8 * 4_200
