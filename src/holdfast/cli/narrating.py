"""What an agent does, in lines on stderr: for somebody who only wants its answer on stdout."""

from __future__ import annotations

import click

from ..agent.events import AgentEvent, Problem, Retrying, SessionChanged, ToolFinished, ToolStarted
from ..anatomy import first_line, printable
from ..chat import problem_in
from ..hooks import ACCURACY, CompactionCompleted, CompactionStarted


def narrate(event: AgentEvent) -> None:
    """A line for what a person who waits would like to know; nothing for the rest."""
    if (line := _line(event)) is not None:
        click.echo(printable(" ".join(line.split())), err=True)


def _line(event: AgentEvent) -> str | None:
    match event:
        case SessionChanged():
            return f"session {event.session}"
        case ToolStarted():
            return f"{event.name} {event.summary}"
        case ToolFinished(is_error=True):
            return f"{event.name}: {first_line(event.text)}"
        case Retrying():
            return f"no answer ({event.why}): asking again in {event.seconds:.0f} s"
        case CompactionStarted():
            return f"compacting {event.tokens:,} tokens"
        case CompactionCompleted():
            return f"compacted: {event.tokens_before:,} → {event.tokens_after:,} tokens. {ACCURACY}"
        case Problem():
            return event.error
    problem = problem_in(event)
    return None if problem is None else problem.error
