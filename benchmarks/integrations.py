"""What the hook of an integration costs when nothing is to be compacted, beside the framework's own step.

A step is one call of the model and one of a tool, in the framework's own agent loop, against a local server that
answers at once. Both are CPU time of the process, with the server's part in a step, so that other work on the machine
does not count.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.measure import Options, Ratio
from holdfast.integrations.conversation import AgentConversation

TESTS = Path(__file__).resolve().parent.parent / "tests"
LOGS, WINDOW = 60, 1_000_000
ROUNDS = 3
AIM = 0.01
CONVERSIONS = {"Strands": ("strands", "_whole_list", "_to_send")}
"""What an integration does for each request before and after the conversation itself, by its module."""


def run(options: Options) -> Iterator[Ratio]:
    sys.path.insert(0, str(TESTS))
    warnings.simplefilter("ignore")
    for name, agent in import_module("tests.integrations.agents").AGENTS.items():
        if agent.installed:
            hook, step = min(_measure(name, agent) for _ in range(1 if options.quick else ROUNDS))
            yield Ratio(
                f"hook, {name}",
                "the hook when nothing is due / the rest of a step",
                hook / step,
                AIM,
                "at most",
                {"hook": hook, "step": step},
            )


def _measure(name: str, agent: Any) -> tuple[float, float]:
    """Seconds of the hook and of the rest in one step, without the first: it loads the tokenizer."""
    task = import_module("tests.integrations.harbour_task")
    with task.Harbour(task.HarbourTask(LOGS, WINDOW)) as server, _timed(name) as (hooks, starts):
        agent.with_holdfast(server, window=WINDOW)
    steps = len(hooks) - 1
    whole = starts[-1] - starts[1]
    spent = sum(hooks[1:-1])
    return spent / (steps - 1), (whole - spent) / (steps - 1)


@contextmanager
def _timed(name: str) -> Iterator[tuple[list[float], list[float]]]:
    """Records how long each preparation of a request took, and when it began."""
    blocking, asynchronous = AgentConversation.prepare, AgentConversation.aprepare
    hooks: list[float] = []
    starts: list[float] = []
    converting = [0.0]

    def prepare(self: AgentConversation, messages: Any) -> list[Any]:
        starts.append(time.process_time())
        sent = blocking(self, messages)
        hooks.append(time.process_time() - starts[-1])
        return sent

    async def aprepare(self: AgentConversation, messages: Any) -> list[Any]:
        starts.append(time.process_time())
        sent = await asynchronous(self, messages)
        hooks.append(time.process_time() - starts[-1])
        return sent

    def timed(convert: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            started = time.process_time()
            converted = convert(*given)
            converting.append(time.process_time() - started)
            return converted

        return run

    with ExitStack() as patches:
        patches.enter_context(patch.object(AgentConversation, "prepare", prepare))
        patches.enter_context(patch.object(AgentConversation, "aprepare", aprepare))
        module, *functions = CONVERSIONS.get(name, ("conversation",))
        owner = import_module(f"holdfast.integrations.{module}")
        for function in functions:
            patches.enter_context(patch.object(owner, function, timed(getattr(owner, function))))
        yield hooks, starts
        hooks[:] = [hook + sum(converting) / len(hooks) for hook in hooks]
