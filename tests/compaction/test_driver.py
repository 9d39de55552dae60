"""One driver runs all work that asks a model: in order, patiently, within limits, and it can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from holdfast.calls import Answer, Failure, Limits, ModelCall, Notice, Reply, Steps
from holdfast.compaction import Abort, Meter, drive, replay, without_model
from holdfast.models import ScriptedModel
from holdfast.tokens import Usage

QUICK = Limits(backoff=0.001, timeout=5)


def asking(*batches: int) -> Steps[list[str]]:
    """Asks so many questions at a time, and returns what was answered."""
    heard: list[str] = []
    for count in batches:
        answers = yield tuple(ModelCall(f"question {len(heard) + place}") for place in range(count))
        heard += [answer.text if isinstance(answer, Reply) else answer.kind for answer in answers]
    return heard


def run(work: Steps[Any], model: Any, limits: Limits = QUICK, **more: Any) -> Any:
    return anyio.run(lambda: drive(work, model, limits, **more))


def test_answers_come_back_in_the_order_of_the_calls() -> None:
    model = ScriptedModel(lambda call: call.prompt.upper(), repeat=True)
    assert run(asking(1, 3), model) == ["QUESTION 0", "QUESTION 1", "QUESTION 2", "QUESTION 3"]


def test_work_that_asks_nothing_needs_no_model() -> None:
    assert run(asking(), None) == [] == without_model(asking())


def test_without_a_model_nobody_answers() -> None:
    assert run(asking(2), None) == ["no_model"] * 2 == without_model(asking(2))


def test_replay_is_the_whole_test_double() -> None:
    assert replay(asking(1, 2), ["one", Reply("two")]) == ["one", "two", "no_model"]


def test_what_may_pass_is_tried_again_and_what_may_not_is_not() -> None:
    shaky = ScriptedModel([Failure("transport"), Failure("timeout"), "third"])
    assert run(asking(1), shaky) == ["third"]
    for kind in ("auth", "overflow", "media", "request"):
        model = ScriptedModel([Failure(kind), "second"])  # type: ignore[arg-type]
        assert run(asking(1), model) == [kind] and len(model.calls) == 1


def test_attempts_are_bounded() -> None:
    model = ScriptedModel(Failure("transport"), repeat=True)
    assert run(asking(1), model, Limits(attempts=4, backoff=0)) == ["transport"]
    assert len(model.calls) == 4


def test_a_provider_that_asks_for_too_long_a_wait_has_failed() -> None:
    model = ScriptedModel([Failure("transport", retry_after=9_000.0), "never"])
    assert run(asking(1), model) == ["transport"]


def test_the_wait_that_a_provider_asks_for_is_kept() -> None:
    heard: list[Notice] = []
    model = ScriptedModel([Failure("transport", retry_after=0.02), "second"])
    run(asking(1), model, notify=heard.append)
    assert [notice.seconds for notice in heard if notice.kind == "waiting"] == [0.02]


def test_calls_are_bounded() -> None:
    model = ScriptedModel("yes", repeat=True)
    assert run(asking(1, 1, 1), model, Limits(max_calls=2)) == ["yes", "yes", "call_budget"]


class Slow:
    """Says nothing, or a word now and then."""

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


def test_silence_has_a_limit_and_every_word_renews_it() -> None:
    once = Limits(timeout=0.15, attempts=1)
    assert run(asking(1), Slow(), once) == ["timeout"]
    assert run(asking(1), Slow(words=6), once) == ["word " * 6]


def test_all_of_it_together_has_a_limit() -> None:
    assert run(asking(1, 1), Slow(words=1_000), Limits(deadline=0.2, timeout=5)) == ["timeout", "timeout"]


def test_progress_is_told() -> None:
    heard: list[Notice] = []
    run(asking(1), ScriptedModel("a summary"), notify=heard.append)
    assert [notice.kind for notice in heard if notice.kind != "delta"] == ["calling", "answered"]
    assert "".join(notice.text for notice in heard if notice.kind == "delta") == "a summary"


def test_usage_is_metered_of_every_reply() -> None:
    meter = Meter()
    run(asking(1, 1), ScriptedModel([Reply("a", usage=Usage(5, 2)), Reply("b", usage=Usage(7, 1))]), meter=meter)
    assert (meter.calls, meter.usage) == (2, [Usage(5, 2), Usage(7, 1)])


def test_a_model_that_raises_is_a_failure_like_any_other() -> None:
    class Broken:
        name = "broken"

        async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
            raise RuntimeError("no luck with sk-abcdefgh12345678")

    def work() -> Steps[Answer]:
        (answer,) = yield (ModelCall("?"),)
        return answer

    answer = run(work(), Broken())
    assert answer.kind == "request" and "no luck" in answer.why and "sk-abc" not in answer.why


def test_cancelling_closes_the_work() -> None:
    closed = threading.Event()

    def work() -> Steps[None]:
        try:
            yield (ModelCall("?"),)
        finally:
            closed.set()

    async def main() -> None:
        with anyio.move_on_after(0.1):
            await drive(work(), Slow(), QUICK)

    anyio.run(main)
    assert closed.is_set()


def test_an_abort_from_another_thread_is_heard_at_once() -> None:
    abort, model = Abort(), Slow()

    async def main() -> bool:
        with abort.scope() as scope:
            await drive(asking(1), model, QUICK)
        return scope.cancelled_caught

    caller = threading.Thread(target=lambda: (model.started.wait(), abort()))
    caller.start()
    assert anyio.run(main)
    caller.join()


def test_an_abort_that_came_before_is_heard_too() -> None:
    abort, model = Abort(), ScriptedModel("never")
    abort()

    async def main() -> None:
        with abort.scope():
            await drive(asking(1), model, QUICK)

    anyio.run(main)
    assert model.calls == []


@pytest.mark.parametrize(
    "wrong", [{"timeout": 0}, {"deadline": -1}, {"attempts": 0}, {"max_calls": 0}, {"concurrency": 0}, {"backoff": -1}]
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)


def test_a_listener_that_breaks_does_not_break_the_work() -> None:
    """L11"""

    def breaks(notice: Notice) -> None:
        raise RuntimeError("no telephone")

    assert run(asking(1), ScriptedModel("a summary"), notify=breaks) == ["a summary"]
