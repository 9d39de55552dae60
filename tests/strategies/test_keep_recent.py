"""Tails kept next to a summary: newest tokens, nothing, or user messages (P2, P4, P7, P20, P21)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import CompactionResult, Outcome, StructuredSummary, Summary, compact
from holdfast.context import Plan, Skip
from holdfast.errors import InvalidLimit
from holdfast.messages import is_framed
from holdfast.messages import user as user_message
from holdfast.models import ModelCall, ScriptedModel
from holdfast.strategies import KeepNothing, KeepRecent, KeepUserMessages
from holdfast.strategies.windows import KEEP_TOKENS
from holdfast.summaries import AsUser, FreeText
from holdfast.triggers import always
from sized import Json, Messages, assistant, calls, request_for, result, round_of, user


def turns(count: int, tokens: int = 1_000) -> Messages:
    """Turns of `tokens` tokens: a user message of 10 tokens and a reply."""
    return [message for number in range(count) for message in (user(10, f"u{number}x"), assistant(tokens - 10))]


def planned(strategy: Any, messages: Messages, **options: Any) -> Plan:
    plan = strategy(request_for(messages, **options))
    assert isinstance(plan, Plan), plan
    return plan


def skipped(strategy: Any, messages: Messages, **options: Any) -> Outcome:
    answer = strategy(request_for(messages, **options))
    assert isinstance(answer, Skip), answer
    return answer.outcome


def wrote(text: str, keep: Any, **more: Any) -> tuple[Summary, ScriptedModel]:
    options: dict[str, Any] = {"verify": False, "last_resort": "unchanged"}
    return Summary(keep, FreeText(), AsUser(), **options | more), ScriptedModel(text, repeat=True)


def run(messages: Messages, keep: Any, text: str = "they talked", **more: Any) -> CompactionResult:
    strategy, model = wrote(text, keep)
    options: dict[str, Any] = {"budget": 10**6, "trigger": always, "estimator": "chars/4"}
    return compact(messages, strategy=strategy, summarizer=model, **options | more)


def name_of(message: Json) -> str:
    return str(message["content"]).split(".")[0].split()[0]


def is_ours(message: Json) -> bool:
    return is_framed(user_message(str(message["content"])))


# -- the newest tokens ----------------------------------------------------------------------------------------------


def test_p2_keep_recent_keeps_20_000_tokens_by_default() -> None:
    assert KEEP_TOKENS == 20_000
    assert planned(KeepRecent(), turns(50)).cut == 60, "twenty turns of a thousand tokens"


@pytest.mark.parametrize(("tokens", "first"), [(4_000, 46), (4_009, 46), (3_999, 47), (1_000, 49), (4_990, 46)])
def test_p4_keep_recent_snaps_forward_to_a_user_message(tokens: int, first: int) -> None:
    """A reply is archived with its question if the question does not fit."""
    assert planned(KeepRecent(tokens), turns(50)).cut == 2 * first


def test_p2_newest_turn_too_large_is_split_after_its_user_message() -> None:
    loop = [message for number in range(10) for message in round_of(f"c{number}", 500)]
    messages = [*turns(3), user(10, "mend"), *loop]
    result = run(messages, KeepRecent(1_100))
    assert [message for message in result.messages if message in messages] == [messages[6], *messages[-4:]]


def test_keep_recent_within_limit_skips() -> None:
    assert skipped(KeepRecent(), turns(3)) is Outcome.NOTHING_TO_COMPACT


@pytest.mark.parametrize(("target", "kept"), [(None, 20), (100_000, 20), (20_010, 8), (20_009, 7), (5_010, 2), (10, 0)])
def test_keep_recent_never_exceeds_room_of_target(target: int | None, kept: int) -> None:
    """Two fifths of the room left by the newest user message; the rest is for the summary."""
    assert planned(KeepRecent(), turns(50), target=target).cut == 2 * (50 - kept)


def test_summary_limit_bounds_its_tail() -> None:
    """No message is kept by the tail and then dropped for lack of room: it would be in neither part."""
    model = ScriptedModel("### Completed Work\n- None\n\n### Key Technical Decisions\n- all was said\n")
    messages = turns(80, 400)
    strategy = StructuredSummary(max_tokens=5_000, verify=False)
    result = compact(messages, budget=30_000, strategy=strategy, summarizer=model, estimator="chars/4")
    assert (result.outcome, result.strategy) == (Outcome.COMPACTED, "structured summary")
    assert result.tokens_after <= 5_000
    text = model.calls[0].prompt + str(result.messages)
    assert [name_of(message) for message in messages[::2] if name_of(message) not in text] == []


def test_p7_fresh_only_keeps_nothing_twice() -> None:
    """Pi's second compaction: "3 kept" = a6, u7, a7 and snaps forward to u7, a7."""
    first = run(turns(10), KeepRecent(3_000, fresh_only=True))
    assert [name_of(event.message) for event in first.kept[::2]] == ["u7x", "u8x", "u9x"]
    more = [user(10, "u10x"), assistant(500)]
    for fresh, kept in ((True, ["u10x"]), (False, ["u8x", "u9x", "u10x"])):
        again = run(first.messages + more, KeepRecent(3_000, fresh_only=fresh), previous=first.checkpoint)
        assert [name_of(message) for message in again.messages if message in turns(10) + more][::2] == kept


@pytest.mark.parametrize("tokens", [0, -1, 1.5, True])
@pytest.mark.parametrize("keep", [KeepRecent, KeepUserMessages])
def test_limits_must_be_whole_positive_numbers(keep: Any, tokens: Any) -> None:
    with pytest.raises(InvalidLimit, match="keep_tokens must be a whole number of at least 1"):
        keep(tokens)


SIZES = st.lists(st.tuples(st.integers(10, 60), st.integers(10, 400)), min_size=1, max_size=14)


@given(SIZES, st.integers(1, 2_000), st.none() | st.integers(1, 3_000))
@settings(max_examples=min(100, settings().max_examples))
def test_keep_recent_is_the_longest_tail_that_starts_at_a_turn(
    sizes: list[tuple[int, int]], tokens: int, target: int | None
) -> None:
    messages = [message for asked, text in sizes for message in (user(asked, "u"), assistant(text))]
    request = request_for(messages, target=target)
    plan = KeepRecent(tokens)(request)
    if isinstance(plan, Plan):
        most = tokens if target is None else min(tokens, max(0, int((target - sizes[-1][0]) * (1 - 0.6))))
        kept = [sum(map(sum, sizes[turn:])) for turn in range(len(sizes))]
        whole = [2 * turn for turn, size in enumerate(kept) if size <= most]
        assert plan.cut == (whole[0] if whole else len(messages) - (sizes[-1][1] <= most))


# -- nothing --------------------------------------------------------------------------------------------------------


def test_p20_keep_nothing_keeps_newest_user_message() -> None:
    messages = turns(5)
    result = run(messages, KeepNothing())
    assert [message for message in result.messages if message in messages] == [messages[8]]
    assert len(result.messages) == 2


def test_p20_keep_nothing_keeps_unfinished_loop() -> None:
    loop = [user(10, "mend"), *round_of("c1", 50), calls("c2", "c3"), result("c2", 50), result("c3", 50)]
    messages = [*turns(5), *loop]
    after = run(messages, KeepNothing())
    assert [message for message in after.messages if message in messages] == [loop[0], *loop[3:]]


def test_p20_keep_nothing_archives_answered_loop() -> None:
    messages = [*turns(5), user(10, "mend"), *round_of("c1", 50), assistant(20)]
    after = run(messages, KeepNothing())
    assert [message for message in after.messages if message in messages] == [messages[10]]


@pytest.mark.parametrize("messages", [[], [user(10)], [user(10), *round_of("c1", 50)]], ids=["none", "one", "a loop"])
def test_p20_keep_nothing_without_archivable_messages_skips(messages: Messages) -> None:
    assert skipped(KeepNothing(), messages) is Outcome.NOTHING_TO_COMPACT


# -- the user's words -----------------------------------------------------------------------------------------------


def questions(count: int, tokens: int, start: int = 0) -> Messages:
    return [
        message for number in range(start, start + count) for message in (user(tokens, f"u{number}x"), assistant(300))
    ]


def test_p21_keep_user_messages_keeps_20_000_tokens_by_default() -> None:
    plan = planned(KeepUserMessages(), questions(50, 1_000))
    assert (plan.cut, sorted(plan.kept)) == (100, list(range(60, 100, 2)))


@pytest.mark.parametrize(("tokens", "kept"), [(3_000, 3), (2_999, 2), (1, 0), (10**6, 10)])
def test_p21_keep_user_messages_has_no_gaps(tokens: int, kept: int) -> None:
    plan = planned(KeepUserMessages(tokens), questions(10, 1_000))
    assert sorted(plan.kept) == list(range(20 - 2 * max(1, kept), 20, 2)), "the newest one always stays"


def test_p21_large_user_message_ends_the_kept_range() -> None:
    """A smaller one before it is not kept."""
    messages = [*questions(2, 100), user(5_000, "large"), assistant(10), *questions(2, 100)]
    assert planned(KeepUserMessages(1_000), messages).kept == {6, 8}


def test_p21_summary_follows_the_user_messages() -> None:
    messages = questions(10, 500)
    after = run(messages, KeepUserMessages(2_000))
    assert after.messages[:-1] == messages[12::2]
    assert is_ours(after.messages[-1])


def test_p21_unfinished_loop_follows_the_summary() -> None:
    messages = [*questions(6, 500), user(10, "mend"), *round_of("c1", 50)]
    after = run(messages, KeepUserMessages(2_000))
    assert [is_ours(message) if message.get("content") else False for message in after.messages[-3:]] == [
        True,
        False,
        False,
    ]
    assert after.messages[-2:] == messages[-2:]


def test_p21_user_messages_take_at_most_half_of_the_target() -> None:
    plan = planned(KeepUserMessages(), questions(50, 1_000), target=9_000)
    assert 3 <= len(plan.kept) <= 4


def rounds(count: int) -> list[tuple[Messages, Messages]]:
    """After each round, all user messages and those still visible."""
    history, found = questions(10, 500), []
    after = run(history, KeepUserMessages(2_000))
    for round in range(1, count + 1):
        more = questions(3, 500, start=10 * round)
        history += more
        after = run(after.messages + more, KeepUserMessages(2_000), "they talked on", previous=after.checkpoint)
        assert sum(map(is_ours, after.messages)) == 1
        users = [message for message in history if message["role"] == "user"]
        found.append((users, [message for message in after.messages if not is_ours(message)]))
    return found


def test_p21_messages_kept_earlier_count_and_are_dropped_when_too_large() -> None:
    """Their total stays within the limit after any number of rounds."""
    for users, kept in rounds(4):
        assert len(kept) == 4
        assert kept[-3:] == users[-3:]
        assert kept[0] in users[-5:]


def test_p21_kept_user_messages_are_the_newest_in_every_round() -> None:
    for users, kept in rounds(4):
        assert kept == users[-4:]


def test_p21_user_messages_only_asks_no_model() -> None:
    model = ScriptedModel("never asked")
    strategy, _ = wrote("", KeepUserMessages())
    messages = [user(100, f"u{number}x") for number in range(9)]
    after = compact(messages, budget=10**6, trigger=always, strategy=strategy, summarizer=model, estimator="chars/4")
    assert (after.outcome, model.calls, after.messages) == (Outcome.NOTHING_TO_COMPACT, [], messages)


def test_p21_newest_message_is_counted_once() -> None:
    """It is kept both as newest and as user message, but appears and counts once."""
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
