"""Any function from text to text is a model."""

from __future__ import annotations

import threading
import time
from typing import Any

import anyio
import pytest

from holdfast.calls import Failure, ModelCall, Reply
from holdfast.models import FunctionModel, model_for

CALL = ModelCall("the history", "be brief")


def ask(function: Any) -> Any:
    return anyio.run(FunctionModel(function), CALL, lambda _: None)


def test_a_blocking_function_runs_in_a_thread_and_gets_system_and_prompt() -> None:
    seen: list[Any] = []

    def summarize(text: str) -> str:
        seen.append((text, threading.current_thread() is threading.main_thread()))
        return "short"

    heard: list[str] = []
    model = model_for(summarize)
    assert anyio.run(model, CALL, heard.append) == Reply("short", model="function:summarize")
    assert seen == [("be brief\n\nthe history", False)]
    assert heard == ["short"]


def test_an_async_function_and_what_returns_something_to_await() -> None:
    async def summarize(text: str) -> str:
        return text.upper()

    class Summarizer:
        async def __call__(self, text: str) -> str:
            return "object"

    assert ask(summarize).text == "BE BRIEF\n\nTHE HISTORY"
    assert ask(lambda text: summarize(text)).text == "BE BRIEF\n\nTHE HISTORY"
    assert ask(Summarizer()).text == "object"


@pytest.mark.parametrize(
    ("problem", "kind"),
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
def test_what_it_raises_is_a_failure(problem: Exception, kind: str) -> None:
    def fail(_: str) -> str:
        raise problem

    async def afail(_: str) -> str:
        raise problem

    functions = [fail] if isinstance(problem, StopIteration) else [fail, afail]
    for function in functions:
        answer = ask(function)
        assert isinstance(answer, Failure)
        assert answer.kind == kind
        assert "down" in answer.why


@pytest.mark.parametrize("said", [None, 7, b"bytes", ["list"]])
def test_what_is_no_string_is_a_failure(said: Any) -> None:
    answer = ask(lambda _: said)
    assert answer.kind == "request"
    assert type(said).__name__ in answer.why


def test_a_blocking_function_is_left_behind_when_the_call_is_cancelled() -> None:
    go_on = threading.Event()

    async def leave() -> float:
        began = time.perf_counter()
        with anyio.move_on_after(0.05):
            await FunctionModel(lambda _: str(go_on.wait(5)))(CALL, lambda _: None)
        return time.perf_counter() - began

    async def main() -> float:
        took = await leave()
        go_on.set()
        return took

    assert anyio.run(main) < 1
