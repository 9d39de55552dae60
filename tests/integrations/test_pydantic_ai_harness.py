"""A defect of the compaction in Pydantic AI's harness, and the same history with Holdfast."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pydantic_ai_harness")

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness.compaction import SlidingWindowCompaction

from holdfast import check, compact


def test_result_that_comes_late_is_not_lost() -> None:
    """The harness looks for the call of a result among five messages, and the core drops a result without a call."""
    history: list[Any] = [
        ModelRequest([UserPromptPart("Survey the harbour.")]),
        ModelResponse([ToolCallPart("survey", {}, "S")]),
    ]
    for number in range(8):
        question, answer = f"Meanwhile, what does log {number} say?", f"Log {number}: " + "calm sea, no ships. " * 40
        history += [ModelRequest([UserPromptPart(question)]), ModelResponse([TextPart(answer)])]
    history += [
        ModelRequest([ToolReturnPart("survey", "It is 97 feet deep.", "S")]),
        ModelResponse([TextPart("Done.")]),
    ]
    sent: list[Any] = []

    def answer_with(messages: list[Any], info: Any) -> ModelResponse:
        sent.extend(messages)
        return ModelResponse([TextPart("97 feet.")])

    theirs = SlidingWindowCompaction(max_messages=10, keep_messages=6)
    Agent(FunctionModel(answer_with), capabilities=[theirs]).run_sync("How deep is it?", message_history=history)
    assert len(sent) < len(history) and "97 feet" not in str(sent)

    asked = [*history, ModelRequest([UserPromptPart("How deep is it?")])]
    result = compact(asked, budget=1_500)
    assert result.outcome == "compacted" and "97 feet" in str(result.messages)
    assert check(result.messages, "pydantic_ai") == []
