"""LangChain's trimming and clearing: the real packages, on real LangChain messages.

`trim_messages` starts on a human or AI message: with its usual `start_on="human"`, a long tool loop would leave
nothing at all. `ClearToolUsesEdit` clears results and knows no limit, so what it leaves is trimmed to the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import convert_to_openai_messages

from ...messages import Message, Text, ToolResult
from ...tokens import Estimator
from .contestant import Compacted, Compacting, Contestant, Job, Stopwatch, from_payloads

FORMAT = "openai-chat"
Counter = Callable[[Sequence[Any]], int]
Edit = Callable[[list[Any], Counter, int], list[Any]]


def _by(edit: Edit) -> Compacting:
    def run(new: Sequence[Message], job: Job, previous: Compacted | None) -> Compacted:
        pairs = list(_converted([*(previous.messages if previous else ()), *new]))
        count = _counter(pairs, job.estimator)
        watch = Stopwatch()
        left = edit([theirs for theirs, _ in pairs], count, job.budget)
        seconds = watch.seconds
        return from_payloads(convert_to_openai_messages(left), FORMAT, seconds)

    return run


def _converted(messages: Sequence[Message]) -> Iterator[tuple[Any, Message]]:
    """LangChain's messages, each with ours; a message with several tool results becomes as many."""
    for message in messages:
        for result in message.results:
            yield ToolMessage(result.text, tool_call_id=result.call_id), Message("tool", (result,))
        rest = message.with_parts(tuple(part for part in message.parts if not isinstance(part, ToolResult)))
        calls = [{"name": call.name, "args": call.object, "id": call.id} for call in rest.calls]
        if rest.role == "assistant" and (rest.text or calls):
            yield AIMessage(rest.text, tool_calls=calls), rest
        elif rest.role != "assistant" and rest.text:
            yield (SystemMessage if rest.role == "system" else HumanMessage)(rest.text), rest


def _counter(pairs: Sequence[tuple[Any, Message]], estimator: Estimator) -> Counter:
    """The lab's ruler for LangChain's messages: each is measured once, and again if its content was replaced."""
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


def _trim(messages: list[Any], count: Counter, budget: int) -> list[Any]:
    left: list[Any] = trim_messages(
        messages, max_tokens=budget, token_counter=count, strategy="last", start_on=("human", "ai"), include_system=True
    )
    return left


def _clear(messages: list[Any], count: Counter, budget: int) -> list[Any]:
    ClearToolUsesEdit(trigger=budget).apply(messages, count_tokens=count)
    return _trim(messages, count, budget)


LANGCHAIN = (
    Contestant("LangChain trim", "peer", _by(_trim), "langchain_core.messages.trim_messages, strategy last"),
    Contestant(
        "LangChain clear",
        "peer",
        _by(_clear),
        "langchain ClearToolUsesEdit, keep 3, then trim_messages: clearing knows no limit",
    ),
)
