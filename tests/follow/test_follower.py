"""`Follower.match` against a plain comparison of two lists: grown, edited anywhere, truncated, changed by clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import histories
from client_lists import aider_requests
from holdfast.follow import ChainedIds, Follower, GivenList
from holdfast.follow.digest import stable_form
from holdfast.messages import Json

PROFILES = st.sampled_from(histories.PROFILES)
EDITED: Json = {"role": "user", "content": "edited"}


def common(log: Sequence[Json], messages: Sequence[Json]) -> int:
    """The reference without reminders: compares one message after the other."""
    pairs = zip(map(stable_form, log), map(stable_form, messages), strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(log), len(messages)))


def common_with_reminder(log: Sequence[Json], messages: Sequence[Json]) -> tuple[int, int]:
    """The reference for lists of texts: how many of the list are known, and how many of the log that are."""
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    newest = users[-1] if users else 0
    end = messages[newest]["content"] if messages else ""
    ends_reminded = len(messages) > 1 and messages[-2]["role"] == "user" and messages[-1]["role"] != "assistant"
    known = logged = 0
    while known < len(messages) and logged < len(log):
        own, given = log[logged], messages[known]
        moved = own["content"][len(given["content"]) :]
        is_longer = own["role"] == given["role"] == "user" and own["content"] == given["content"] + moved
        if own == given or (is_longer and known < newest and moved[:1] == "\n" and end.endswith(moved)):
            known, logged = known + 1, logged + 1
        elif known and ends_reminded and own == messages[-1]:
            logged += 1
        else:
            break
    return known, logged


def changed_by_client(message: Json, change: int) -> Json:
    """The message as a client may send it later."""
    content = message.get("content")
    if change % 4 == 1 and isinstance(content, str) and "type" not in message:
        return message | {"content": [{"type": "text", "text": content, "cache_control": {"type": "ephemeral"}}]}
    if change % 4 == 2:
        return message | {"cache_control": {"type": "ephemeral"}, "annotations": None}
    if change % 4 == 3 and isinstance(content, list):
        return message | {"content": [block | {"signature_of_nobody": None} for block in content]}
    return dict(reversed(message.items()))


@st.composite
def edited_lists(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """A list, and what it became: grown, truncated or edited anywhere, with changes that clients make."""
    history: list[Json] = draw(PROFILES.flatmap(histories.wire))
    at = draw(st.integers(0, len(history)))
    later = draw(
        st.sampled_from(
            (
                history,
                history[:at],
                [*history, EDITED],
                [*history[:at], EDITED, *history[at:]],
                [*history[:at], *history[at + 1 :]],
                [*history[:at], EDITED],
            )
        )
    )
    changes = draw(st.lists(st.integers(0, 7), min_size=len(later), max_size=len(later)))
    return history, [changed_by_client(message, change) for message, change in zip(later, changes, strict=True)]


@given(lists=edited_lists())
def test_l12_match_is_the_common_beginning(lists: tuple[list[Json], list[Json]]) -> None:
    log, later = lists
    match = Follower(ChainedIds(log)).match(GivenList(later))
    assert match.known == len(match.ids)
    if later and log and log[-1] in later[-1:]:  # the end may have been left behind: compared below
        assert match.known >= common(log, later)
    else:
        assert (match.known, match.logged) == (common(log, later), common(log, later))


@given(lists=edited_lists(), data=st.data())
def test_beginning_that_is_not_passed_matches_as_if_it_were(
    lists: tuple[list[Json], list[Json]], data: st.DataObject
) -> None:
    log, later = Follower(ChainedIds(lists[0])), lists[1]
    whole = log.match(GivenList(later))
    at = data.draw(st.integers(0, common(lists[0], later)))
    rest = log.match(GivenList(later[at:], log.ids[:at]))
    assert (rest.known + at, rest.logged, [*log.ids[:at], *rest.ids]) == (whole.known, whole.logged, [*whole.ids])


@given(history=PROFILES.flatmap(histories.wire), steps=st.lists(st.integers(0, 4), max_size=10))
def test_list_that_grows_has_the_ids_of_the_whole(history: list[Json], steps: list[int]) -> None:
    log, length = Follower(), 0
    for step in [*steps, len(history)]:
        length = min(len(history), length + step)
        given_list = GivenList(history[:length])
        match = log.match(given_list)
        assert match.logged == match.known == len(log.ids)
        log.ids += log.new_ids(given_list, match.known)
    assert log.ids == list(ChainedIds(history))


WORDS = st.sampled_from(("Mend the pier.", "Be brief.", "Aye.\n\nBe brief.", "Be brief.\n\nAye."))
TEXTS = st.lists(
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(("user", "assistant")), WORDS),
    max_size=6,
)


@given(log=TEXTS, later=TEXTS, data=st.data())
def test_match_with_a_moved_reminder_is_what_comparing_texts_finds(
    log: list[Json], later: list[Json], data: st.DataObject
) -> None:
    later = log[: data.draw(st.integers(0, len(log)))] + later
    match = Follower(ChainedIds(log)).match(GivenList(later))
    assert (match.known, match.logged) == common_with_reminder(log, later)


@given(
    asked=st.lists(st.text("ab\n", min_size=1, max_size=6), min_size=1, max_size=6),
    rules=st.text("ab\n", min_size=1, max_size=8),
    reminder=st.sampled_from(("user", "sys")),
)
def test_conversation_with_a_moved_reminder_is_one_log_of_what_was_sent(
    asked: list[str], rules: str, reminder: Any
) -> None:
    log, logged = Follower(), list[Json]()
    for request in aider_requests(asked, reminder, rules=rules, examples=[]):
        given_list = GivenList(request[1:])
        match = log.match(given_list)
        assert match.logged == len(log.ids)
        log.ids += log.new_ids(given_list, match.known)
        logged += request[1 + match.known :]
        assert log.ids == list(ChainedIds(logged)), "the ids are those of what the log has"
    replies = [message for message in logged if message["role"] == "assistant"]
    assert len(replies) == len(asked) - 1
    again = Follower(ChainedIds(logged)).match(given_list)
    assert again.logged == len(log.ids), "another process recognises it too"
