"""Pruning before a summary: if it suffices no model is called; other parts of a message stay (P22)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import CompactionResult, Outcome, Pipeline, PruneToolResults, Summary, check, compact
from holdfast.models import ScriptedModel
from holdfast.strategies import CLEARED, KeepNothing
from holdfast.summaries import FreeText, as_assistant
from holdfast.triggers import always
from judge import judge
from sized import Json, Messages, assistant, calls, result, round_of, user

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def opencode(**more: Any) -> Pipeline:
    return Pipeline(
        PruneToolResults(protect=400, minimum=200, **more),
        Summary(KeepNothing(), FreeText(), as_assistant, verify=False, name="whole"),
    )


def run(messages: Messages, model: Any, strategy: Any = None, **more: Any) -> CompactionResult:
    options: dict[str, Any] = {"budget": 1_200, "estimator": "chars/4"}
    return compact(messages, strategy=strategy or opencode(), summarizer=model, **options | more)


def turns(*sizes: int) -> Messages:
    rounds = [message for place, size in enumerate(sizes) for message in round_of(f"c{place}", size)]
    return [user(30), *rounds, assistant(30), user(30)]


def test_p22_sufficient_pruning_asks_no_model() -> None:
    model = ScriptedModel("never asked")
    pruned = run(turns(500, 500, 320, 80), model)
    assert (pruned.outcome, pruned.strategy, model.calls) == (Outcome.COMPACTED, "pruning", [])
    assert [message["content"] == CLEARED for message in pruned.messages if message["role"] == "tool"] == [
        True, True, False, False,
    ]  # fmt: skip
    assert pruned.tokens_after <= 600, "down to the target, not to the budget"


def test_p22_insufficient_pruning_is_followed_by_summary() -> None:
    model = ScriptedModel("They read a good deal.")
    result = run([*turns(500, 500), assistant(800), user(30)], model)
    assert (result.outcome, result.strategy, len(model.calls)) == (Outcome.COMPACTED, "pruning+whole", 1)
    assert CLEARED in model.calls[0].prompt, "a cleared result stays cleared in the prompt"
    assert result.messages[-1] == user(30)


def test_pruning_that_would_grow_the_context_is_skipped() -> None:
    """(behaviour 19) The placeholder is longer than the result."""
    strategy = PruneToolResults(0, 0, placeholder="This result was cleared because it was old. " * 20)
    given = turns(20, 30, 40)
    pruned = run(given, None, strategy, trigger=always)
    assert (pruned.outcome, pruned.messages) == (Outcome.NOTHING_TO_COMPACT, given)


def test_pruning_in_a_pipeline_is_idempotent() -> None:
    """(behaviour 19) The second time there is nothing left to clear, with a checkpoint or without one."""
    given = turns(500, 500, 320, 80)
    once = run(given, ScriptedModel("never asked"))
    for again in (
        run(once.messages, None, PruneToolResults(400, 200), trigger=always),
        run(given, None, PruneToolResults(400, 200), trigger=always, previous=once.checkpoint),
    ):
        assert (again.outcome, again.messages) == (Outcome.NOTHING_TO_COMPACT, once.messages)


def test_exempt_tools_are_kept_in_a_pipeline() -> None:
    """(behaviour 19)"""
    skill = [calls("s", name="skill"), result("s", 200)]
    given = [user(30), *skill, *turns(500, 500, 320, 80)[1:]]
    pruned = run(given, ScriptedModel("never asked"), opencode(exempt=["skill"]), budget=1_500, target=900)
    assert pruned.outcome is Outcome.COMPACTED
    assert skill[1] in pruned.messages


def block(id: str, content: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


@pytest.mark.parametrize("sibling", [PICTURE, {"type": "text", "text": "and what of this?"}], ids=["picture", "text"])
def test_parts_next_to_cleared_result_are_kept(sibling: Json) -> None:
    """(behaviour 19) An image or user text in the same message does not belong to the result."""
    use = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    given: Messages = [
        user(30),
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [block("a", "x" * 4_000), sibling]},
        assistant(30),
        user(30),
    ]
    pruned = run(given, None, PruneToolResults(0, 200), trigger=always, format="anthropic")
    assert pruned.messages[2]["content"] == [block("a", CLEARED), sibling]
    assert check(pruned.messages, "anthropic") == judge(pruned.messages, "anthropic") == []


def test_p22_pruning_archives_no_message_of_a_summarized_turn() -> None:
    """P22: a prune moves no boundary. The previous round left the newest user message and a summary of its turn."""
    first = run(turns(500, 500, 320, 80), ScriptedModel("They read a good deal."), opencode().stages[1], trigger=always)
    assert first.messages[-1] == user(30)
    more = [assistant(20), user(40, "and now?"), *turns(500, 500, 320, 80)[1:]]
    given = first.messages + more[1:]
    pruned = run(given, ScriptedModel("never asked"), trigger=always, previous=first.checkpoint)
    assert (pruned.strategy, pruned.round) == ("pruning", 1)
    assert pruned.archived == []
    assert pruned.messages.count(user(30)) == given.count(user(30))
