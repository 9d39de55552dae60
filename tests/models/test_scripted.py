"""ScriptedModel."""

from __future__ import annotations

import anyio

from holdfast.models import ScriptedModel
from holdfast.models.calls import Failure, ModelCall, Reply


def ask(model: ScriptedModel, prompt: str = "p") -> tuple[Reply | Failure, list[str]]:
    deltas: list[str] = []
    return anyio.run(model, ModelCall(prompt), deltas.append), deltas


def test_scripted_model_answers_in_order_and_records_calls() -> None:
    failure = Failure("overflow", "too long")
    model = ScriptedModel(["one", Reply("two", "length"), failure, lambda call: call.prompt.upper()])
    answers = [ask(model, prompt)[0] for prompt in "abcd"]
    assert answers == [Reply("one", model="scripted"), Reply("two", "length"), failure, Reply("D", model="scripted")]
    assert [call.prompt for call in model.calls] == ["a", "b", "c", "d"]


def test_scripted_model_exhausted_fails_or_repeats() -> None:
    assert ask(ScriptedModel([]))[0] == Failure("request", "The script has 0 answers; this was call 1.")
    model = ScriptedModel("same", repeat=True)
    assert [ask(model)[0].text for _ in range(3)] == ["same"] * 3  # type: ignore[union-attr]


def test_scripted_model_streams_in_pieces() -> None:
    assert ask(ScriptedModel("abcdefgh"))[1] == ["ab", "cd", "ef", "gh"]
    assert ask(ScriptedModel("abc", pieces=1))[1] == ["abc"]
    assert ask(ScriptedModel(""))[1] == []


def test_scripted_model_can_be_cancelled_between_pieces() -> None:
    deltas: list[str] = []

    async def stop() -> None:
        with anyio.CancelScope() as scope:
            await ScriptedModel("abcdefgh")(ModelCall("p"), lambda piece: (deltas.append(piece), scope.cancel())[0])

    anyio.run(stop)
    assert deltas == ["ab"]
