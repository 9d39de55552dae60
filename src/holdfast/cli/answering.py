"""A chat without a terminal: one answer as text, or everything that happens as JSON lines (P11).

Nobody can be asked here, so what would change something is refused unless --yes was given.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing

import click

from ..agent.events import AgentEvent, Problem, Tell
from ..agent.tools import Permission, Question, always_yes
from ..anatomy import printable
from ..chat import Answered, Chat, Turns, open_chat, problem_in
from ..errors import InvalidInput
from ..lines import STANDARD_INPUT, Incoming, Outgoing, TooLong, incoming_from, lines_of
from ..signals import stopped_by_signals
from .conversing import Opening
from .narrating import narrate

DONE, FAILED = 0, 1


async def answer(opened: Opening, prompt: str) -> int:
    """One prompt: the answer goes to stdout, all else to stderr."""
    turns, answered = Turns(), Answered("", "aborted")

    def tell(event: AgentEvent) -> None:
        turns.hear(event)
        narrate(event)

    async with _chat(opened, tell) as chat, stopped_by_signals(lambda: turns.stop(chat)) as stopped:
        answered = await turns.ask(chat, prompt)
    if answered.status in ("done", "max_tokens"):
        click.echo(_shown(answered.text))
    if answered.status != "done":
        click.echo(f"holdfast: {_ending(answered)}", err=True)
    return stopped.code or (DONE if answered.status == "done" else FAILED)


async def tell_events(opened: Opening, prompt: str | None) -> int:
    """Every event as a line of JSON, until all is answered: the prompt, or each line of stdin in its turn."""
    out, turns = Outgoing(sys.stdout.buffer), Turns()
    good = True

    def tell(event: AgentEvent) -> None:
        turns.hear(event)
        out.send(event)
        if (problem := problem_in(event)) is not None:
            out.send(problem)

    async with _chat(opened, tell) as chat, out.writing():
        if prompt is not None:
            async with stopped_by_signals(lambda: turns.stop(chat)) as stopped:
                good = (await turns.ask(chat, prompt)).status == "done"
        else:
            async with incoming_from(STANDARD_INPUT) as incoming:

                def stop() -> None:
                    incoming.end()
                    turns.stop(chat)

                async with stopped_by_signals(stop) as stopped, aclosing(_prompts(incoming, out)) as prompts:
                    async for text in prompts:
                        good = (await turns.ask(chat, text)).status == "done"
                        if not good:
                            break
    if out.broken:
        raise BrokenPipeError
    return stopped.code or (DONE if good else FAILED)


async def _prompts(incoming: Incoming, out: Outgoing) -> AsyncGenerator[str]:
    async for line in lines_of(incoming):
        if isinstance(line, TooLong):
            out.send(Problem("A line is too long to be a prompt: it was passed over."))
        elif text := line.decode(errors="replace").strip():
            yield text


def _chat(opened: Opening, tell: Tell) -> AbstractAsyncContextManager[Chat]:
    approve = always_yes if opened.yes else _nobody
    return open_chat(opened.settings, folder=opened.folder, tell=tell, approve=approve, session=opened.session)


async def _nobody(question: Question) -> Permission:
    raise InvalidInput(
        "Nobody can be asked here, so nothing may be changed: say what should be done instead. Whoever started this "
        "can allow changes with --yes."
    )


def _ending(answered: Answered) -> str:
    return f"{answered.status.replace('_', ' ')}: {answered.why or 'no reason was given'}"


def _shown(text: str) -> str:
    """As the model wrote it; on a terminal, without what would move its cursor."""
    if not sys.stdout.isatty():
        return text
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))
