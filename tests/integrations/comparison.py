"""Runs the task of eighty tool calls in every framework, with Holdfast and with the framework's own means.

Usage: python -m tests.integrations.comparison [NAME …] [--write]

Prints the table of docs/integrations.md; `--write` puts it there. Frameworks that are not installed are left out, and
their rows in the file stay as they are.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.integrations.agents import AGENTS
from tests.integrations.harbour_task import ANSWER, ENDLESS, LOST, SMALL, WHOLE, Harbour, HarbourTask

from holdfast.hooks.events import CompactionCompleted

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
HEAD = "| framework | means | outcome | tool calls | requests | for summaries | too long | invalid |"


@dataclass
class TaskRun:
    """One run of the task, and what the provider saw of it."""

    outcome: str
    calls: int
    requests: int
    summaries: int
    overflows: int
    invalid: list[str]
    compactions: int = 0

    @property
    def finished(self) -> bool:
        return self.outcome == "finished"

    def row(self, framework: str, means: str) -> str:
        figures = (self.calls, self.requests, self.summaries, self.overflows, len(self.invalid))
        return f"| {framework} | {means} | {self.outcome} | {' | '.join(map(str, figures))} |"


def run_task(agent: Callable[[Harbour], str], task: HarbourTask = SMALL) -> TaskRun:
    """Runs an agent on the task; an exception is an outcome."""
    with Harbour(task) as server:
        model = server.model
        try:
            answer = agent(server)
        except Exception as problem:
            answer, outcome = "", f"fails: {type(problem).__name__}"
        else:
            outcome = _outcome(answer)
        return TaskRun(outcome, model.calls, model.requests, model.summaries, server.overflowed, server.refused)


def run_with_holdfast(name: str, task: HarbourTask = SMALL, **options: Any) -> TaskRun:
    """Runs a framework on the task with Holdfast, and counts the compactions."""
    seen: list[object] = []
    options = {"window": task.window, "listen": seen.append} | options
    run = run_task(lambda server: AGENTS[name].with_holdfast(server, **options), task)
    run.compactions = sum(isinstance(event, CompactionCompleted) for event in seen)
    return run


def _outcome(answer: str) -> str:
    if ANSWER in answer:
        return "finished"
    if LOST in answer:
        return "loses the task"
    return "goes in circles" if ENDLESS in answer else "wrong answer"


def rows_of(name: str) -> list[str]:
    """Returns the rows of one framework."""
    framework = f"{name} {AGENTS[name].version}"
    ours = run_with_holdfast(name, WHOLE)
    rows = [ours.row(framework, f"**Holdfast**, {ours.compactions} compactions")]
    return rows + [run_task(agent, WHOLE).row(framework, means) for means, agent in AGENTS[name].own.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="frameworks; default: all that are installed")
    parser.add_argument("--write", action="store_true", help="write the rows into docs/integrations.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    if unknown := set(options.names) - AGENTS.keys():
        parser.error(f"unknown frameworks: {', '.join(sorted(unknown))}; known: {', '.join(AGENTS)}")
    print(HEAD, re.sub(r"[^|]+", " --- ", HEAD), sep="\n")
    for name in options.names or [name for name, agent in AGENTS.items() if agent.installed]:
        rows = rows_of(name)
        print(*rows, sep="\n", flush=True)
        if options.write:
            write_rows(name, rows)
    return 0


def write_rows(name: str, rows: list[str]) -> None:
    """Replaces the rows of a framework in the table of the page; new ones come last."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = lines.index(HEAD) + 2
    end = next((index for index in range(first, len(lines)) if not lines[index].startswith("|")), len(lines))
    table = lines[first:end]
    own = [index for index, line in enumerate(table) if line.startswith(f"| {name} ")]
    place = own[0] if own else len(table)
    others = [line for line in table if not line.startswith(f"| {name} ")]
    lines[first:end] = others[:place] + rows + others[place:]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
