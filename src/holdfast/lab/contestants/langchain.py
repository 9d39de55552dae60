"""LangChain's trimming and clearing: the released packages, on LangChain messages.

`trim_messages` starts on a human or AI message: its usual `start_on="human"` would leave nothing of a long tool
loop. `ClearToolUsesEdit` has no token limit, so its result is trimmed to the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import convert_to_openai_messages

from ...messages import Message, Text, ToolResult
from ...tokens import Estimator
from .base import CompactFunction, Contestant, ContestantResult, ContestantTask, Stopwatch, result_from_payloads

FORMAT = "openai-chat"
LangChainCounter = Callable[[Sequence[Any]], int]
MessageListEdit = Callable[[list[Any], LangChainCounter, int], list[Any]]


def _contestant_function(edit: MessageListEdit) -> CompactFunction:
    def run(new: Sequence[Message], task: ContestantTask, previous: ContestantResult | None) -> ContestantResult:
        pairs = list(_to_langchain([*(previous.messages if previous else ()), *new]))
        count = _make_counter(pairs, task.estimator)
        watch = Stopwatch()
        left = edit([theirs for theirs, _ in pairs], count, task.budget)
        seconds = watch.seconds
        return result_from_payloads(convert_to_openai_messages(left), FORMAT, seconds)

    return run


def _to_langchain(messages: Sequence[Message]) -> Iterator[tuple[Any, Message]]:
    """LangChain messages paired with ours; several tool results become several messages."""
    for message in messages:
        for result in message.results:
            yield ToolMessage(result.text, tool_call_id=result.call_id), Message("tool", (result,))
        rest = message.with_parts(tuple(part for part in message.parts if not isinstance(part, ToolResult)))
        calls = [{"name": call.name, "args": call.arguments_dict, "id": call.id} for call in rest.calls]
        if rest.role == "assistant" and (rest.text or calls):
            yield AIMessage(rest.text, tool_calls=calls), rest
        elif rest.role != "assistant" and rest.text:
            yield (SystemMessage if rest.role == "system" else HumanMessage)(rest.text), rest


def _make_counter(pairs: Sequence[tuple[Any, Message]], estimator: Estimator) -> LangChainCounter:
    """Token counter for LangChain messages: measures each once, and again if its content was replaced."""
    units: dict[str, tuple[Any, int]] = {}
    for place, (theirs, message) in enumerate(pairs):
        theirs.id = str(place)
        units[theirs.id] = (theirs.content, estimator.measure(message))

    def of(theirs: Any) -> int:
        content, size = units[theirs.id]
        if theirs.content == content:
            return size
        return estimator.measure(Message("tool", (ToolResult("", (Text(str(theirs.content)),)),)))

    return lambda messages: estimator.tokens(sum(map(of, messages)))


def _trim(messages: list[Any], count: LangChainCounter, budget: int) -> list[Any]:
    left: list[Any] = trim_messages(
        messages, max_tokens=budget, token_counter=count, strategy="last", start_on=("human", "ai"), include_system=True
    )
    return left


def _clear(messages: list[Any], count: LangChainCounter, budget: int) -> list[Any]:
    ClearToolUsesEdit(trigger=budget).apply(messages, count_tokens=count)
    return _trim(messages, count, budget)


LANGCHAIN = (
    Contestant(
        "LangChain trim", "peer", _contestant_function(_trim), "langchain_core.messages.trim_messages, strategy last"
    ),
    Contestant(
        "LangChain clear",
        "peer",
        _contestant_function(_clear),
        "langchain ClearToolUsesEdit, keep 3, then trim_messages, since clearing has no limit",
    ),
)
