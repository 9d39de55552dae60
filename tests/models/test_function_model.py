"""FunctionModel: any function from text to text is a model."""

from __future__ import annotations

import threading
import time
from typing import Any

import anyio
import pytest

from holdfast.models import FunctionModel, resolve_model
from holdfast.models.calls import Failure, ModelCall, Reply

CALL = ModelCall("the history", "be brief")


def ask(function: Any) -> Any:
    return anyio.run(FunctionModel(function), CALL, lambda _: None)


def test_function_model_blocking_function_runs_in_a_thread() -> None:
    seen: list[Any] = []

    def summarize(text: str) -> str:
        seen.append((text, threading.current_thread() is threading.main_thread()))
        return "short"

    deltas: list[str] = []
    model = resolve_model(summarize)
    assert anyio.run(model, CALL, deltas.append) == Reply("short", model="function:summarize")
    assert seen == [("be brief\n\nthe history", False)]
    assert deltas == ["short"]


def test_function_model_async_functions_and_awaitables() -> None:
    async def summarize(text: str) -> str:
        return text.upper()

    class Summarizer:
        async def __call__(self, text: str) -> str:
            return "object"

    assert ask(summarize).text == "BE BRIEF\n\nTHE HISTORY"
    assert ask(lambda text: summarize(text)).text == "BE BRIEF\n\nTHE HISTORY"
    assert ask(Summarizer()).text == "object"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("down"), "transport"),
        (ConnectionError("down"), "transport"),
        (TimeoutError("slow, down"), "timeout"),
        (ValueError("down"), "request"),
        (TypeError("down"), "request"),
        (StopIteration("down"), "transport"),
        (RuntimeError("This model's maximum context length is 4096 tokens, down"), "overflow"),
    ],
)
def test_function_model_exception_is_a_failure(error: Exception, kind: str) -> None:
    def fail(_: str) -> str:
        raise error

    async def afail(_: str) -> str:
        raise error

    functions = [fail] if isinstance(error, StopIteration) else [fail, afail]
    for function in functions:
        answer = ask(function)
        assert isinstance(answer, Failure)
        assert answer.kind == kind
        assert "down" in answer.why


@pytest.mark.parametrize("returned", [None, 7, b"bytes", ["list"]])
def test_function_model_other_type_is_a_failure(returned: Any) -> None:
    answer = ask(lambda _: returned)
    assert answer.kind == "request"
    assert type(returned).__name__ in answer.why


def test_function_model_cancelled_call_abandons_the_thread() -> None:
    release = threading.Event()

    async def leave() -> float:
        began = time.perf_counter()
        with anyio.move_on_after(0.05):
            await FunctionModel(lambda _: str(release.wait(30)))(CALL, lambda _: None)
        return time.perf_counter() - began

    async def main() -> float:
        took = await leave()
        release.set()
        return took

    assert anyio.run(main) < 15
