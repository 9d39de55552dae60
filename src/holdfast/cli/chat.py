"""`holdfast chat`: an agent to talk to, in a terminal, or in a pipe for its answer or for all that happens (P11)."""

from __future__ import annotations

import select
import sys
from typing import Any

import anyio
import click

from ..errors import InvalidInput
from . import conversing
from .names import OneOf

PATIENCE = 3.0
"""Seconds in which something must come down a pipe if there is a prompt already: some are open and never speak."""


@click.command("chat")
@click.argument("prompt", required=False)
@click.option("--print", "plain", is_flag=True, help="Answer one prompt: only the answer goes to stdout.")
@click.option("--mode", type=OneOf("mode", ("json",)), metavar="NAME", help="json: all that happens, one event a line.")
@conversing.options
def command(prompt: str | None, plain: bool, mode: str | None, **given: Any) -> int:
    """Talk to an agent that works in a folder and keeps itself inside its model's window.

    It reads and searches by itself, and asks before it changes a file or runs a command. Without a terminal use
    --print or --mode json, with a PROMPT or with one on standard input; nothing is changed there without --yes.
    With --print both may be given: what is piped in must begin to come within 3 seconds.
    """
    if plain and mode:
        raise click.UsageError("--print gives the answer alone and --mode json all that happens: use one of them.")
    if plain or mode:
        from .answering import answer, tell_events

        opened = conversing.opening(**given)
        return anyio.run(answer, opened, _whole(prompt)) if plain else anyio.run(tell_events, opened, prompt)
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise InvalidInput("This is no terminal: use --print for an answer, --mode json for events, or holdfast rpc.")
    from ..terminal import run_terminal

    opened = conversing.opening(**given)
    return run_terminal(opened.settings, folder=opened.folder, session=opened.session, yes=opened.yes, prompt=prompt)


def _whole(prompt: str | None) -> str:
    """What was given on the command line, and what was piped in behind it."""
    text = "\n\n".join(filter(None, ((prompt or "").strip(), _piped(waits=not prompt).strip())))
    if not text:
        raise click.UsageError("There is nothing to answer: give a PROMPT, or pipe one in.")
    return text


def _piped(*, waits: bool) -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if not waits and not _speaks():
        click.echo(f"holdfast: nothing was piped in within {PATIENCE:.0f} s: going on without it.", err=True)
        return ""
    return sys.stdin.buffer.read().decode(errors="replace")


def _speaks() -> bool:
    """Is there something on standard input, or its end?"""
    try:
        return bool(select.select([sys.stdin], [], [], PATIENCE)[0])
    except (OSError, ValueError):  # nothing that can be asked
        return True
