"""Hooks around the compaction of a plain list: the same as around a session's (G7, H7)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Hooks, Outcome, SlidingWindow, acompact, compact
from holdfast.hooks import BeforeCompaction, Instructions, Veto
from holdfast.models import ScriptedModel
from sized import assistant, user

TALK = [user(500), assistant(500)] * 10


def test_g7_hook_of_a_list_may_veto() -> None:
    seen: list[BeforeCompaction] = []

    def refuse(before: BeforeCompaction) -> Veto:
        seen.append(before)
        return Veto("not during a release")

    result = compact(TALK, budget=4_000, estimator="chars/4", hooks=Hooks(before=refuse))
    assert (result.outcome, result.why) == (Outcome.VETOED, "not during a release")
    assert result.messages == TALK
    assert [(before.tokens, before.budget, before.origin) for before in seen] == [(10_000, 4_000, "auto")]


@pytest.mark.anyio
async def test_g7_hooks_of_a_list_may_instruct_and_replace_and_receive_the_result() -> None:
    model, after = ScriptedModel("They looked after the piers.", repeat=True), []

    async def note(completed: Any, result: Any) -> None:
        after.append((completed.tokens_after, result.outcome))

    hooks = Hooks(before=lambda before: Instructions("Name every pier."), after=note)
    result = await acompact(TALK, budget=4_000, estimator="chars/4", summarizer=model, hooks=hooks)
    assert "Name every pier." in model.calls[0].prompt
    assert after == [(result.tokens_after, Outcome.COMPACTED)]
    replaced = await acompact(TALK, budget=4_000, estimator="chars/4", hooks=Hooks(before=lambda _: SlidingWindow(2)))
    assert list(replaced.messages) == TALK[-2:]


def test_hooks_of_a_list_do_not_run_while_nothing_is_due() -> None:
    started: list[Any] = []
    result = compact(
        TALK, budget=40_000, estimator="chars/4", hooks=Hooks(before=started.append, listen=started.append)
    )
    assert (result.outcome, started) == (Outcome.NOT_NEEDED, [])
