"""The driver: order of answers, retries, limits, metering, progress, abort."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from holdfast.compaction import Abort, Meter, drive, replay, without_model
from holdfast.models import ScriptedModel
from holdfast.models.calls import Answer, Failure, Limits, ModelCall, Notice, Reply, Steps
from holdfast.tokens import Usage
from virtual_time import run_in_virtual_time

QUICK = Limits(backoff=0.001, timeout=60)


def batches_of(*sizes: int) -> Steps[list[str]]:
    """Makes batches of so many calls, and returns the answers."""
    answered: list[str] = []
    for count in sizes:
        answers = yield tuple(ModelCall(f"question {len(answered) + place}") for place in range(count))
        answered += [answer.text if isinstance(answer, Reply) else answer.kind for answer in answers]
    return answered


def run(work: Steps[Any], model: Any, limits: Limits = QUICK, **more: Any) -> Any:
    return run_in_virtual_time(lambda: drive(work, model, limits, **more))


def test_answers_are_in_the_order_of_the_calls() -> None:
    model = ScriptedModel(lambda call: call.prompt.upper(), repeat=True)
    assert run(batches_of(1, 3), model) == ["QUESTION 0", "QUESTION 1", "QUESTION 2", "QUESTION 3"]


def test_work_without_calls_needs_no_model() -> None:
    assert run(batches_of(), None) == [] == without_model(batches_of())


def test_calls_without_a_model_fail_with_no_model() -> None:
    assert run(batches_of(2), None) == ["no_model"] * 2 == without_model(batches_of(2))


def test_replay_answers_then_fails_with_no_model() -> None:
    assert replay(batches_of(1, 2), ["one", Reply("two")]) == ["one", "two", "no_model"]


def test_transient_failures_are_retried_and_others_are_not() -> None:
    shaky = ScriptedModel([Failure("transport"), Failure("timeout"), "third"])
    assert run(batches_of(1), shaky) == ["third"]
    for kind in ("auth", "overflow", "media", "request"):
        model = ScriptedModel([Failure(kind), "second"])  # type: ignore[arg-type]
        assert run(batches_of(1), model) == [kind] and len(model.calls) == 1


def test_attempts_are_limited() -> None:
    model = ScriptedModel(Failure("transport"), repeat=True)
    assert run(batches_of(1), model, Limits(attempts=4, backoff=0)) == ["transport"]
    assert len(model.calls) == 4


def test_long_retry_after_fails_at_once() -> None:
    model = ScriptedModel([Failure("transport", retry_after=9_000.0), "never"])
    assert run(batches_of(1), model) == ["transport"]


def test_retry_after_is_respected() -> None:
    notices: list[Notice] = []
    model = ScriptedModel([Failure("transport", retry_after=0.02), "second"])
    run(batches_of(1), model, notify=notices.append)
    assert [notice.seconds for notice in notices if notice.kind == "waiting"] == [0.02]


def test_calls_are_limited() -> None:
    model = ScriptedModel("yes", repeat=True)
    assert run(batches_of(1, 1, 1), model, Limits(max_calls=2)) == ["yes", "yes", "call_budget"]


class Slow:
    """A model that sends nothing, or a word now and then."""

    name = "slow"

    def __init__(self, words: int = 0, every: float = 0.05) -> None:
        self.words, self.every, self.started = words, every, threading.Event()

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        self.started.set()
        for _ in range(self.words):
            await anyio.sleep(self.every)
            on_delta("word ")
        if not self.words:
            await anyio.sleep_forever()
        return Reply("word " * self.words)


def test_timeout_is_renewed_by_every_delta() -> None:
    once = Limits(timeout=60, attempts=1)
    assert run(batches_of(1), Slow(), once) == ["timeout"]
    assert run(batches_of(1), Slow(words=6, every=50), once) == ["word " * 6]


def test_deadline_limits_all_calls_together() -> None:
    assert run(batches_of(1, 1), Slow(words=1_000), Limits(deadline=20, timeout=5)) == ["timeout", "timeout"]


def test_progress_notices_are_sent() -> None:
    notices: list[Notice] = []
    run(batches_of(1), ScriptedModel("a summary"), notify=notices.append)
    assert [notice.kind for notice in notices if notice.kind != "delta"] == ["calling", "answered"]
    assert "".join(notice.text for notice in notices if notice.kind == "delta") == "a summary"


def test_meter_records_usage_of_every_reply() -> None:
    meter = Meter()
    run(batches_of(1, 1), ScriptedModel([Reply("a", usage=Usage(5, 2)), Reply("b", usage=Usage(7, 1))]), meter=meter)
    assert (meter.calls, meter.usage) == (2, [Usage(5, 2), Usage(7, 1)])


def test_model_exception_becomes_a_failure_without_secrets() -> None:
    class Broken:
        name = "broken"

        async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
            raise RuntimeError("no luck with sk-abcdefgh12345678")

    def work() -> Steps[Answer]:
        (answer,) = yield (ModelCall("?"),)
        return answer

    answer = run(work(), Broken())
    assert answer.kind == "request" and "no luck" in answer.why and "sk-abc" not in answer.why


def test_cancelling_closes_the_generator() -> None:
    closed = threading.Event()

    def work() -> Steps[None]:
        try:
            yield (ModelCall("?"),)
        finally:
            closed.set()

    async def main() -> None:
        model = Slow()
        async with anyio.create_task_group() as group:
            group.start_soon(drive, work(), model, QUICK)
            await anyio.to_thread.run_sync(model.started.wait)
            group.cancel_scope.cancel()

    anyio.run(main)
    assert closed.is_set()


def test_abort_from_another_thread_cancels() -> None:
    abort, model = Abort(), Slow()

    async def main() -> bool:
        with abort.scope() as scope:
            await drive(batches_of(1), model, QUICK)
        return scope.cancelled_caught

    caller = threading.Thread(target=lambda: (model.started.wait(), abort()))
    caller.start()
    assert anyio.run(main)
    caller.join()


def test_abort_before_the_start_cancels() -> None:
    abort, model = Abort(), ScriptedModel("never")
    abort()

    async def main() -> None:
        with abort.scope():
            await drive(batches_of(1), model, QUICK)

    anyio.run(main)
    assert model.calls == []


@pytest.mark.parametrize(
    "wrong", [{"timeout": 0}, {"deadline": -1}, {"attempts": 0}, {"max_calls": 0}, {"concurrency": 0}, {"backoff": -1}]
)
def test_invalid_limits_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)


def test_failing_progress_listener_does_not_break_the_work() -> None:
    """L11"""

    def failing(notice: Notice) -> None:
        raise RuntimeError("no terminal")

    assert run(batches_of(1), ScriptedModel("a summary"), notify=failing) == ["a summary"]
