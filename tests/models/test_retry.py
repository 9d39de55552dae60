"""step_with_retry: retries, timeouts and deadline of an agent's step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from holdfast.models import RetryWait, ScriptedAgentModel, step_with_retry
from holdfast.models.calls import Failure, Limits, ReplyDelta, StepCall, StepReply, retry_limits
from virtual_time import run_in_virtual_time

pytestmark = pytest.mark.anyio
CALL = StepCall([{"role": "user", "content": "Go on."}])
CUT = Failure("transport", "cut")
QUICK = Limits(backoff=0.001, timeout=60)


async def run_step(model: Any, limits: Limits = QUICK) -> tuple[Any, list[ReplyDelta], list[RetryWait]]:
    deltas: list[ReplyDelta] = []
    waits: list[RetryWait] = []
    return await step_with_retry(model, CALL, limits, deltas.append, waits.append), deltas, waits


async def test_step_with_retry_transient_failure_is_retried_and_reported() -> None:
    model = ScriptedAgentModel([Failure("transport", "busy", 0.002), Failure("timeout", "slow"), "third"])
    answer, deltas, waits = await run_step(model)
    assert answer.text == "third" == "".join(delta.text for delta in deltas)
    assert [(wait.why, wait.attempt) for wait in waits] == [("busy", 1), ("slow", 2)]
    assert waits[0].seconds == 0.002


@pytest.mark.parametrize("kind", ["auth", "overflow", "media", "request"])
async def test_step_with_retry_permanent_failure_is_not_retried(kind: Any) -> None:
    model = ScriptedAgentModel([Failure(kind), "second"])
    answer, _, waits = await run_step(model)
    assert (answer, waits, len(model.steps)) == (Failure(kind), [], 1)


async def test_step_with_retry_attempts_and_waits_are_bounded() -> None:
    model = ScriptedAgentModel(Failure("transport"), repeat=True)
    assert (await run_step(model, Limits(attempts=4, backoff=0)))[0] == Failure("transport")
    assert len(model.steps) == 4
    waiting = ScriptedAgentModel([Failure("transport", retry_after=90.0), "never"])
    assert (await run_step(waiting))[0].retry_after == 90.0 and len(waiting.steps) == 1


class UnreliableModel:
    """Sends some deltas and fails at the first attempt; succeeds at the next."""

    name, format = "shaky", "openai-chat"

    def __init__(self, *first: ReplyDelta, every: float = 0.0, ends: StepReply | Failure = CUT) -> None:
        self.first, self.every, self.ends, self.attempts = first, every, ends, 0

    async def step(self, call: StepCall, on_delta: Callable[[ReplyDelta], None]) -> StepReply | Failure:
        self.attempts += 1
        for delta in self.first:
            await anyio.sleep(self.every)
            on_delta(delta)
        return self.ends if self.attempts == 1 else StepReply((), "whole")


@pytest.mark.parametrize("kind", ["text", "reasoning", "call"])
async def test_step_with_retry_asks_again_after_a_reply_that_broke_off(kind: Any) -> None:
    answer, deltas, waits = await run_step(UnreliableModel(ReplyDelta(kind, "I lo")))
    assert (answer.text, deltas) == ("whole", [ReplyDelta(kind, "I lo")] * 2)
    assert [(wait.why, wait.streamed) for wait in waits] == [("cut", 4)]


async def test_step_with_retry_empty_delta_does_not_prevent_retry() -> None:
    model = UnreliableModel(ReplyDelta("call", ""))
    answer, deltas, _ = await run_step(model)
    assert (answer.text, deltas, model.attempts) == ("whole", [], 2)


def test_step_with_retry_every_delta_restarts_the_timeout() -> None:
    """Long call arguments are streamed as empty deltas."""
    slow = UnreliableModel(*[ReplyDelta("call", "")] * 6, every=50, ends=StepReply((), "written"))
    limits = Limits(timeout=60, attempts=1)
    assert run_in_virtual_time(run_step, slow, limits)[0].text == "written"
    silent = UnreliableModel(ReplyDelta("text", "late"), every=70)
    answer, _, _ = run_in_virtual_time(run_step, silent, limits)
    assert (answer.kind, answer.why) == ("timeout", "no data for 60 s")


def test_step_with_retry_lasts_for_minutes_from_the_first_failure() -> None:
    """Waits grow to half a minute; a reply may take longer than the deadline."""
    dead = ScriptedAgentModel(Failure("transport", "down"), repeat=True)
    answer, _, waits = run_in_virtual_time(run_step, dead, retry_limits(600))
    assert answer == Failure("transport", "down") and 20 <= len(waits) <= 40
    assert max(wait.seconds for wait in waits) <= 30 and 540 < sum(wait.seconds for wait in waits) < 600
    asked = ScriptedAgentModel([Failure("transport", "busy", 300.0), "third"])
    assert run_in_virtual_time(run_step, asked, retry_limits(600))[0].text == "third"
    slow = UnreliableModel(*[ReplyDelta("text", "on and ")] * 1_000, every=1)
    assert run_in_virtual_time(run_step, slow, retry_limits(90))[0].text == "whole"


async def test_step_with_retry_exception_is_a_failure_without_secrets() -> None:
    def broken(_: StepCall) -> str:
        raise RuntimeError("no luck with sk-abcdefgh12345678")

    answer, _, _ = await run_step(ScriptedAgentModel(broken))
    assert answer.kind == "request" and "no luck" in answer.why and "sk-abc" not in answer.why


async def test_step_with_retry_can_be_cancelled_while_waiting() -> None:
    model = ScriptedAgentModel(Failure("transport", retry_after=50.0), repeat=True)
    with anyio.CancelScope() as scope:
        await step_with_retry(model, CALL, QUICK, lambda _: None, lambda _: scope.cancel())
    assert scope.cancelled_caught and len(model.steps) == 1
