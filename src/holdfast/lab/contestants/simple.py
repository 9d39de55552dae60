"""Trivial baselines that every compaction must beat. Each returns one block of text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from ...messages import Message, Text, ToolCall, ToolResult, user
from ..text import argument_values, plain_text
from .base import (
    CompactFunction,
    Contestant,
    ContestantResult,
    ContestantTask,
    Stopwatch,
    fits,
    fitting_head,
    fitting_tail,
    largest_allowed,
)

OMITTED = "[omitted]"
TextRule = Callable[[Sequence[Message], ContestantTask], str]


def tail_window(messages: Sequence[Message], task: ContestantTask) -> str:
    return fitting_tail(_full_text(messages), task.budget, task.estimator)


def head_and_tail(messages: Sequence[Message], task: ContestantTask) -> str:
    whole, half = _full_text(messages), (task.budget - 1) // 2
    return fitting_head(whole, half, task.estimator) + "\n" + fitting_tail(whole, half, task.estimator)


def mask_results(keep: int) -> TextRule:
    """Masks all but the newest tool results, then keeps the tail."""

    def rule(messages: Sequence[Message], task: ContestantTask) -> str:
        old = sum(len(message.results) for message in messages) - keep

        def pieces() -> Iterator[str]:
            seen = 0
            for message in messages:
                for part in message.parts:
                    if isinstance(part, ToolResult):
                        seen += 1
                        yield part.text if seen > old else OMITTED
                    elif isinstance(part, Text):
                        yield part.text
                    elif isinstance(part, ToolCall):
                        yield part.name
                        yield from argument_values(part)

        return fitting_tail("\n".join(pieces()), task.budget, task.estimator)

    return rule


def cut_results(results: int, arguments: int | None = None) -> TextRule:
    """Truncates every tool result, and every argument if a limit is given, then keeps the tail."""

    def rule(messages: Sequence[Message], task: ContestantTask) -> str:
        pieces = (plain_text(message, results, arguments) for message in messages)
        return fitting_tail("\n".join(pieces), task.budget, task.estimator)

    return rule


def random_lines(messages: Sequence[Message], task: ContestantTask) -> str:
    """Random lines with a fixed seed: the baseline for any selection of lines."""
    lines = _full_text(messages).splitlines()
    order = list(range(len(lines)))
    random.Random(0).shuffle(order)  # noqa: S311

    def chosen(count: int) -> str:
        return "\n".join(lines[place] for place in sorted(order[:count]))

    return chosen(largest_allowed(len(lines), lambda count: fits(chosen(count), task.budget, task.estimator)))


def _full_text(messages: Sequence[Message]) -> str:
    return "\n".join(map(plain_text, messages))


def from_rule(rule: TextRule) -> CompactFunction:
    """Wraps a text rule; in later rounds it reads its previous output before the new messages."""

    def compact(new: Sequence[Message], task: ContestantTask, previous: ContestantResult | None) -> ContestantResult:
        messages = [*(previous.messages if previous else ()), *new]
        watch = Stopwatch()
        text = rule(messages, task)
        return ContestantResult([user(text)], watch.seconds)

    return compact


SIMPLE = (
    Contestant("tail window", "simple", from_rule(tail_window), "the end of the text"),
    Contestant("head and tail", "simple", from_rule(head_and_tail), "its start and its end, half each"),
    Contestant(
        "mask, keep 10",
        "simple",
        from_rule(mask_results(10)),
        "all but the newest 10 tool results masked, then the end",
    ),
    Contestant(
        "mask, keep 3", "simple", from_rule(mask_results(3)), "all but the newest 3 tool results masked, then the end"
    ),
    Contestant(
        "cut results",
        "simple",
        from_rule(cut_results(200, arguments=200)),
        "results and arguments cut at 200 characters, then the end",
    ),
    *(
        Contestant(
            f"results at {limit}",
            "simple",
            from_rule(cut_results(limit)),
            f"every result cut at {limit} characters, calls whole, then the end",
        )
        for limit in (150, 400)
    ),
    Contestant("random lines", "simple", from_rule(random_lines), "random lines"),
)
