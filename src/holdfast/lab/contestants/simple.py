"""Rules of a few lines that anybody could write: what every compaction must beat. Each leaves one block of text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from ...messages import Message, Text, ToolCall, ToolResult, user
from ..reading import texts, values
from .contestant import Compacted, Compacting, Contestant, Job, Stopwatch
from .fitting import end_of, fits, most, start_of

OMITTED = "[omitted]"
CUT_AT = 200
Rule = Callable[[Sequence[Message], Job], str]


def tail_window(messages: Sequence[Message], job: Job) -> str:
    return end_of(_whole(messages), job.budget, job.estimator)


def head_and_tail(messages: Sequence[Message], job: Job) -> str:
    whole, half = _whole(messages), (job.budget - 1) // 2
    return start_of(whole, half, job.estimator) + "\n" + end_of(whole, half, job.estimator)


def masking(keep: int) -> Rule:
    """Old tool results go, the newest few stay; of what is left, the end."""

    def rule(messages: Sequence[Message], job: Job) -> str:
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
                        yield from values(part)

        return end_of("\n".join(pieces()), job.budget, job.estimator)

    return rule


def cut_results(messages: Sequence[Message], job: Job) -> str:
    """Every tool result and argument loses all but its beginning; of what is left, the end."""

    def pieces() -> Iterator[str]:
        for message in messages:
            for part in message.parts:
                if isinstance(part, ToolResult):
                    yield part.text[:CUT_AT]
                elif isinstance(part, Text):
                    yield part.text
                elif isinstance(part, ToolCall):
                    yield from (value[:CUT_AT] for value in values(part))

    return end_of("\n".join(pieces()), job.budget, job.estimator)


def random_lines(messages: Sequence[Message], job: Job) -> str:
    """Chance, the same each time: what any choice of lines must beat."""
    lines = _whole(messages).splitlines()
    order = list(range(len(lines)))
    random.Random(0).shuffle(order)  # noqa: S311

    def chosen(count: int) -> str:
        return "\n".join(lines[place] for place in sorted(order[:count]))

    return chosen(most(len(lines), lambda count: fits(chosen(count), job.budget, job.estimator)))


def _whole(messages: Sequence[Message]) -> str:
    return "\n".join(text for message in messages for text in texts(message))


def by_rule(rule: Rule) -> Compacting:
    """In a row, a rule reads its own last output before what is new."""

    def compact(new: Sequence[Message], job: Job, previous: Compacted | None) -> Compacted:
        messages = [*(previous.messages if previous else ()), *new]
        watch = Stopwatch()
        text = rule(messages, job)
        return Compacted([user(text)], watch.seconds)

    return compact


SIMPLE = (
    Contestant("tail window", "simple", by_rule(tail_window), "the end of the text"),
    Contestant("head and tail", "simple", by_rule(head_and_tail), "its start and its end, half each"),
    Contestant(
        "mask, keep 10", "simple", by_rule(masking(10)), "tool results but the newest 10 left out, then the end"
    ),
    Contestant("mask, keep 3", "simple", by_rule(masking(3)), "tool results but the newest 3 left out, then the end"),
    Contestant(
        "cut results", "simple", by_rule(cut_results), "results and arguments cut at 200 characters, then the end"
    ),
    Contestant("random lines", "simple", by_rule(random_lines), "lines by chance"),
)
