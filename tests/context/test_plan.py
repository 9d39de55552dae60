"""Plans: the next context, made by one change after another (H1, H6)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import KeepLedger, MemoryStore, PruneToolResults, SessionService, SlidingWindow, Summary, compact
from holdfast.context import Plan, Request
from holdfast.errors import InvalidInput
from holdfast.messages import Message, Replace, decode_all, framed_message, is_note
from holdfast.models import ScriptedModel
from holdfast.strategies import KeepUserMessages
from holdfast.summaries import AsUser, FreeText
from holdfast.tokens import estimator_for
from holdfast.triggers import always
from sized import Messages, assistant, request_for, result, round_of, user

HISTORY: Messages = [
    user(10, "one"),
    *round_of("a", 500),
    assistant(10),
    user(10, "two"),
    *round_of("b", 300),
    assistant(10),
    user(10, "three"),
]
NOTE, NEWER = framed_message("Earlier, the depths were read."), framed_message("Later, too.")


def texts(plan: Plan) -> list[str]:
    return [message.text.rstrip(".")[:5] or "tool" for message in plan.messages]


class CountingEstimator:
    """Counts its measurements."""

    name = "counting"

    def __init__(self) -> None:
        self.measured: list[Message] = []

    def measure(self, message: Message) -> int:
        self.measured.append(message)
        return estimator_for("chars/4").measure(message)

    def measure_text(self, text: str) -> int:
        return estimator_for("chars/4").measure_text(text)

    def tokens(self, units: int) -> int:
        return units


def test_request_starts_from_the_context_as_it_is() -> None:
    request = request_for(HISTORY)
    assert request.plan.view is request.view
    assert (list(request.plan.messages), request.plan.tokens) == (request.messages, request.tokens)
    assert not (request.plan.changed or request.plan.archived or request.plan.archives)


def test_changes_compose_by_being_called_one_after_the_other() -> None:
    plan = request_for(HISTORY).plan
    once = plan.edit({2: {0: "short"}}).archive(4).show([NOTE])
    twice = plan.edit({2: {0: "long"}, 6: {0: "cut"}}).archive(1).edit({1: {0: "short"}})
    twice = twice.archive(1).archive(2).show([NEWER]).show([NOTE])
    assert once.archived == twice.archived == (0, 1, 2, 3)
    assert [m.text for m in once.messages if not m.results] == [m.text for m in twice.messages if not m.results]
    assert (list(once.edited), list(twice.edited)) == ([], [6])


def test_next_stage_counts_messages_from_the_cut() -> None:
    request = request_for(HISTORY)
    later = request.at(request.plan.archive(4))
    assert later.messages == request.messages[4:]
    assert later.plan.archive(4).archived == tuple(range(8))
    assert later.tokens == request.tokens - 524 == request.at(later.plan).tokens


def test_plan_measures_only_messages_that_are_new_or_edited() -> None:
    estimator = CountingEstimator()
    request = request_for(HISTORY * 20, estimator=estimator)
    assert request.tokens == sum(map(estimator.measure, request.messages))
    estimator.measured.clear()
    plan = request.plan.edit({130: {0: "short"}}).archive(100).show([NOTE])
    tokens = request.at(plan.archive(20)).tokens
    assert [message.text or "tool" for message in estimator.measured].count(NOTE.text) <= 2
    assert len(estimator.measured) <= 3, "the edited message, and the note in both contexts"
    assert tokens == sum(map(estimator.measure, plan.archive(20).messages))


def test_edits_of_one_message_add_up() -> None:
    two: Messages = [
        user(10),
        {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "read", "input": {}} for i in "ab"]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": i, "content": f"result {i}"} for i in "ab"],
        },
        assistant(10),
        user(10),
    ]
    plan = request_for(two, format="anthropic").plan.edit({2: {0: "x"}}).edit({2: {1: "y"}})
    assert [part.text for part in plan.view.messages[2].results] == ["x", "y"]
    first, second = (("content", index, "content") for index in (0, 1))
    assert {at: message.edits for at, message in plan.edited.items()} == {
        2: (Replace(first, "x"), Replace(second, "y"))
    }


@pytest.mark.parametrize("wrong", [lambda plan: plan.archive(10), lambda plan: plan.archive(-1)])
def test_cut_must_be_one_of_the_context(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="messages that do not exist: there are 9"):
        wrong(request_for(HISTORY).plan)


def test_edit_must_be_of_a_message_of_the_context() -> None:
    with pytest.raises(InvalidInput, match="messages that do not exist: there are 5"):
        request_for(HISTORY).plan.archive(4).edit({5: {0: None}})


def test_message_kept_before_the_cut_lies_before_it() -> None:
    with pytest.raises(InvalidInput, match="cannot keep a later one"):
        request_for(HISTORY).plan.archive(2, [4])


# -- order (H6) ---------------------------------------------------------------------------------------------------


def test_h6_new_notes_take_the_place_of_the_old() -> None:
    plan = request_for(HISTORY).plan.archive(8, [0, 4], notes_last=True).show([NOTE])
    later = Request(plan.view).plan
    assert texts(plan)[:3] == ["one", "two", NOTE.text[:5]]
    assert texts(later.show([NEWER]))[:3] == ["one", "two", NEWER.text[:5]]
    assert texts(later.edit({0: {0: "3"}}))[:3] == ["one", "two", NOTE.text[:5]]


def test_h6_new_notes_come_first_where_the_old_ones_did() -> None:
    plan = request_for(HISTORY).plan.archive(8, [0, 4]).show([NOTE])
    assert texts(plan)[:3] == [NOTE.text[:5], "one", "two"]
    assert texts(Request(plan.view).plan.show([NEWER]))[:3] == [NEWER.text[:5], "one", "two"]


def test_h6_answered_user_message_returns_where_its_notes_are_dropped() -> None:
    request = request_for([*HISTORY, assistant(10)])
    plan = request.plan.archive(10).archive_answered().show([NOTE])
    assert texts(plan) == [NOTE.text[:5]]
    assert texts(plan.show([])) == ["three"]


CODEX = Summary(KeepUserMessages(2_000), FreeText(), AsUser(), verify=False)


def codex_rounds() -> tuple[Messages, Messages]:
    first = [message for name in "abcd" for message in (user(300, name), *round_of(name, 900), assistant(40))]
    return first, [user(20, "next"), *round_of("e", 2_000), assistant(10), user(20, "last")]


@pytest.mark.parametrize(
    ("strategy", "stays"),
    [(PruneToolResults(0, 0), [0, 1, 2, 3, 4]), (SlidingWindow(4), [0, 1, 2, 4])],
    ids=["prune", "window, which archives the turn that is over"],
)
def test_h6_compaction_after_codex_leaves_its_user_messages_before_the_summary(strategy: Any, stays: list[int]) -> None:
    first, more = codex_rounds()
    options: dict[str, Any] = {"estimator": "chars/4", "budget": 10_000, "trigger": always}
    done = compact(first, strategy=CODEX, summarizer=ScriptedModel("A summary."), **options)
    assert [is_note(message) for message in decoded(done.messages)] == [False] * 4 + [True]
    after = compact([*first, *more], strategy=strategy, previous=done.checkpoint, **options)
    assert after.outcome == "compacted"
    assert after.messages[: len(stays)] == [done.messages[place] for place in stays]


@pytest.mark.anyio
async def test_h6_prune_after_codex_leaves_the_prefix_in_a_session() -> None:
    first, more = codex_rounds()
    async with SessionService(MemoryStore(), estimator="chars/4", summarizer=ScriptedModel("A summary.")) as service:
        await service.create(id="s")
        await service.append("s", first)
        await service.compact("s", always, CODEX)
        before = list(await service.context("s"))
        await service.append("s", more)
        assert (await service.compact("s", always, PruneToolResults(0, 0))).outcome == "compacted"
        assert list(await service.context("s"))[:5] == before
        assert await service.verify("s") == []


def test_ledger_after_codex_takes_the_place_of_its_summary() -> None:
    first, more = codex_rounds()
    options: dict[str, Any] = {"estimator": "chars/4", "budget": 10_000, "trigger": always}
    done = compact(first, strategy=CODEX, summarizer=ScriptedModel("A summary."), **options)
    after = compact([*first, *more, result("e", 10)], strategy=KeepLedger(1_500), previous=done.checkpoint, **options)
    assert after.messages[:2] == done.messages[:2]


def decoded(messages: Any) -> list[Message]:
    return decode_all(messages, "openai-chat")[0]
