"""What was asked for is whole: a result that no reply has followed is not cut while it fits at all (H10)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import KeepLedger, Outcome, Pipeline, PruneToolResults, SlidingWindow, TokenWindow, Truncate, TurnWindow
from holdfast import compact as compact_list
from holdfast.compaction.presets import PRESETS
from holdfast.context import Plan, Request
from holdfast.strategies import KeepFraction, KeepLast, KeepNothing, KeepRecent, KeepTrail, KeepUserMessages
from holdfast.triggers import always
from judge.unread import unread_results
from sized import Messages, assistant, calls, result, user

TASK = user(40, "Sound the basin. Never use feet.")
HISTORY: Messages = [TASK, assistant(400), *[user(60), assistant(400)] * 6, user(50, "Read all of it.")]
LOOP: Messages = [*HISTORY, calls("a", "b"), result("a", 900), result("b", 300)]
STRATEGIES: dict[str, Any] = {
    "ledger": KeepLedger(),
    "ledger with a limit of its own": KeepLedger(600),
    "tokens": TokenWindow(500),
    "sliding": SlidingWindow(2),
    "turns": TurnWindow(1),
    "truncate": Truncate(max_tokens=600),
    "last": KeepLast(2),
    "fraction": KeepFraction(0.1),
    "recent": KeepRecent(300),
    "trail": KeepTrail(300),
    "nothing": KeepNothing(),
    "user messages": KeepUserMessages(200),
    "pruned": Pipeline(PruneToolResults(0, 0), TokenWindow(500)),
}


def compact(messages: Messages, budget: int, **options: Any) -> Any:
    chosen: dict[str, Any] = {"estimator": "chars/4", "trigger": always, **options}
    return compact_list(messages, budget=budget, **chosen)


def whole(messages: Messages) -> list[str]:
    return unread_results(messages, "openai-chat")


@pytest.mark.parametrize("steered", [False, True], ids=["calls last", "words of the user after them"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_h10_unread_results_are_whole_with_every_strategy(name: str, steered: bool) -> None:
    messages = [*LOOP, user(20, "Only berth 7.")] if steered else LOOP
    done = compact(messages, 1_700, target=600, strategy=STRATEGIES[name])
    assert done.outcome is Outcome.COMPACTED and done.tokens_after <= 1_700
    assert whole(list(done.messages)) == whole(messages)


@pytest.mark.parametrize("name", PRESETS)
def test_h10_unread_results_are_whole_with_every_preset(name: str) -> None:
    done = compact_list(
        LOOP, preset=name, budget=2_600, trigger=always, summarizer=lambda prompt: "The basin was sounded."
    )
    assert whole(list(done.messages)) == whole(LOOP)


def test_h10_a_strategy_of_the_application_cannot_cut_them_either() -> None:
    def clear(request: Request) -> Plan:
        texts = {index: {0: "cleared"} for index, message in enumerate(request.messages) if message.role == "tool"}
        return request.plan.edit(texts).archive(len(request.messages))

    done = compact(LOOP, 1_700, strategy=clear)
    assert whole(list(done.messages)) == whole(LOOP)


def test_h10_task_and_rules_stay_with_results_that_just_fit() -> None:
    done = compact(LOOP, 1_600)
    assert whole(list(done.messages)) == whole(LOOP)
    page = str(done.messages[0]["content"])
    assert "Sound the basin." in page and "Never use feet." in page


def test_h10_result_that_does_not_fit_keeps_beginning_and_end_and_says_how_to_read_the_rest() -> None:
    text = "\n".join(f"berth {number} has {number % 40} feet" for number in range(900))
    messages = [*HISTORY, calls("a", "b"), result("a", 60), result("b", 10) | {"content": text}]
    done = compact(messages, 1_600)
    short, long = whole(list(done.messages))
    assert short == messages[-2]["content"], "the longest is cut first"
    assert long.startswith("[cut: 18]\nberth 0 has 0 feet\n") and long.endswith("berth 899 has 19 feet")
    assert " characters left out: ask for them in parts]" in long
    assert 1_300 <= done.tokens_after <= 1_600
    assert any("does not fit" in remark for remark in done.remarks)


def test_h10_with_recall_the_mark_names_the_tool() -> None:
    messages = [*HISTORY, calls("a"), result("a", 3_000)]
    tools = [{"type": "function", "function": {"name": "recall_read", "parameters": {"type": "object"}}}]
    (shown,) = whole(list(compact(messages, 1_600, tools=tools).messages))
    assert "characters left out: recall_read #17 shows them]" in shown


def test_h10_call_that_does_not_fit_is_archived_with_its_result() -> None:
    messages = [*HISTORY, calls("a", arguments='{"text": "' + "x" * 12_000 + '"}'), result("a", 20)]
    done = compact(messages, 1_600)
    assert done.outcome is Outcome.COMPACTED and done.tokens_after <= 1_600


def test_h10_read_results_are_cut_as_before() -> None:
    done = compact([*LOOP, assistant(20), user(20)], 1_700, target=600)
    assert done.tokens_after <= 600 and whole(list(done.messages)) == []
