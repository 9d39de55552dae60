"""Patience with an agent's model: tried again where that may help and nothing was shown, and never for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from holdfast.calls import Delta, Failure, Limits, StepCall, StepReply
from holdfast.models import ScriptedAgentModel, Waiting, persistently

pytestmark = pytest.mark.anyio
CALL = StepCall([{"role": "user", "content": "Go on."}])
CUT = Failure("transport", "cut")
QUICK = Limits(backoff=0.001, timeout=5)


async def persist(model: Any, limits: Limits = QUICK) -> tuple[Any, list[Delta], list[Waiting]]:
    heard: list[Delta] = []
    waits: list[Waiting] = []
    return await persistently(model, CALL, limits, heard.append, waits.append), heard, waits


async def test_what_may_pass_is_tried_again_and_the_waits_are_told() -> None:
    model = ScriptedAgentModel([Failure("transport", "busy", 0.002), Failure("timeout", "slow"), "third"])
    answer, heard, waits = await persist(model)
    assert answer.text == "third" == "".join(delta.text for delta in heard)
    assert [(wait.why, wait.attempt) for wait in waits] == [("busy", 1), ("slow", 2)]
    assert waits[0].seconds == 0.002


@pytest.mark.parametrize("kind", ["auth", "overflow", "media", "request"])
async def test_what_will_not_pass_is_not(kind: Any) -> None:
    model = ScriptedAgentModel([Failure(kind), "second"])
    answer, _, waits = await persist(model)
    assert (answer, waits, len(model.steps)) == (Failure(kind), [], 1)


async def test_attempts_and_waits_are_bounded() -> None:
    model = ScriptedAgentModel(Failure("transport"), repeat=True)
    assert (await persist(model, Limits(attempts=4, backoff=0)))[0] == Failure("transport")
    assert len(model.steps) == 4
    patient = ScriptedAgentModel([Failure("transport", retry_after=90.0), "never"])
    assert (await persist(patient))[0].retry_after == 90.0 and len(patient.steps) == 1


class Shaky:
    """Says a piece or two, and breaks off; the next time, it does not."""

    name, format = "shaky", "openai-chat"

    def __init__(self, *first: Delta, every: float = 0.0, ends: StepReply | Failure = CUT) -> None:
        self.first, self.every, self.ends, self.asked = first, every, ends, 0

    async def step(self, call: StepCall, on_delta: Callable[[Delta], None]) -> StepReply | Failure:
        self.asked += 1
        for delta in self.first:
            await anyio.sleep(self.every)
            on_delta(delta)
        return self.ends if self.asked == 1 else StepReply((), "whole")


@pytest.mark.parametrize("kind", ["text", "reasoning", "call"])
async def test_once_something_was_shown_it_is_not_said_again(kind: Any) -> None:
    answer, heard, waits = await persist(Shaky(Delta(kind, "I lo")))
    assert (answer, heard, waits) == (CUT, [Delta(kind, "I lo")], [])


async def test_a_sign_of_life_is_nothing_that_was_shown() -> None:
    model = Shaky(Delta("call", ""))
    answer, heard, _ = await persist(model)
    assert (answer.text, heard, model.asked) == ("whole", [], 2)


async def test_every_sign_of_life_renews_its_time() -> None:
    """A long file, written as a call's arguments, is heard as nothing but signs of life."""
    slow = Shaky(*[Delta("call", "")] * 6, every=0.05, ends=StepReply((), "written"))
    assert (await persist(slow, Limits(timeout=0.15, attempts=1)))[0].text == "written"
    silent = Shaky(Delta("text", "late"), every=1)
    answer, _, _ = await persist(silent, Limits(timeout=0.05, attempts=1))
    assert (answer.kind, answer.why) == ("timeout", "no sign of life for 0.05 s")


async def test_all_of_it_together_has_a_limit() -> None:
    endless = Shaky(*[Delta("text", "on and ")] * 1_000, every=0.01)
    answer, heard, _ = await persist(endless, Limits(timeout=5, deadline=0.1))
    assert (answer.kind, answer.why) == ("timeout", "all of it took over 0.1 s") and heard


async def test_a_model_that_raises_is_a_failure_without_its_secrets() -> None:
    def broken(_: StepCall) -> str:
        raise RuntimeError("no luck with sk-abcdefgh12345678")

    answer, _, _ = await persist(ScriptedAgentModel(broken))
    assert answer.kind == "request" and "no luck" in answer.why and "sk-abc" not in answer.why


async def test_it_can_be_left_while_it_waits() -> None:
    model = ScriptedAgentModel(Failure("transport", retry_after=50.0), repeat=True)
    with anyio.CancelScope() as scope:
        await persistently(model, CALL, QUICK, lambda _: None, lambda _: scope.cancel())
    assert scope.cancelled_caught and len(model.steps) == 1
