"""`holdfast chat`: chat with an agent in a terminal, or through a pipe as plain text or JSON events."""

from __future__ import annotations

import select
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any

import anyio
import click
import msgspec

from ..agent.events import (
    AgentEvent,
    Attached,
    ErrorEvent,
    EventListener,
    Retrying,
    ToolFinished,
    ToolStarted,
)
from ..agent.tools import Mode, Permission, PermissionRequest, Sandbox, approve_all
from ..agent.tools.permissions import NOT_TRUSTED
from ..chat import Chat, PromptResult, PromptRunner, compaction_error_event
from ..chat.open_chat import open_chat
from ..chat.state import without_choices
from ..errors import InvalidInput
from ..hooks import ACCURACY_NOTICE, CompactionCompleted, CompactionFailed, CompactionStarted
from ..io.processes import stop_on_signals
from ..io.streams import STANDARD_INPUT, InputStream, JsonLinesWriter, OversizedLine, read_descriptor, split_lines
from ..io.text import first_line, printable
from ..sessions.session_ids import shorten_id
from ..settings import Settings, load_settings
from .options import NameChoice, chat_options
from .output import echo, echo_error
from .trust import ask_for_trust

CHOOSE_SESSION = ""
"""Value of --resume without an ID."""


class ChatArguments(msgspec.Struct, frozen=True):
    """Resolved options of a chat."""

    settings: Settings
    folder: str
    session: str | None
    yes: bool
    mode: Mode = "ask"
    sandbox: Sandbox | None = None
    choose: bool = False
    """True if the user chooses a session from a list."""


def load_chat_arguments(
    *,
    folder: str,
    session: str | None,
    newest: bool,
    yes: bool,
    trust: bool,
    permission_mode: Mode,
    sandbox: str | None,
    no_auto_compact: bool,
    no_project_instructions: bool,
    resume: str | None = None,
    screen: bool = False,
    **flags: Any,
) -> ChatArguments:
    """Merges the options into the settings; prints notes on the settings to stderr. A `screen` can show a list."""
    if (session is not None) + newest + (resume is not None) > 1:
        raise click.UsageError("--session, --resume and --continue exclude each other: use one of them.")
    choose = resume == CHOOSE_SESSION
    if choose and not screen:
        raise InvalidInput(
            "--resume without an ID opens a list, which needs a terminal: name a session, as in --resume ID "
            "(holdfast inspect STORE lists them), or use --continue for the one last used in this folder."
        )
    session = session if choose else session or resume
    flags["compaction.enabled"] = False if no_auto_compact else None
    flags["project_instructions"] = False if no_project_instructions else None
    if screen and not trust:
        ask_for_trust(Path(folder))
    settings = load_settings(folder, flags, trust=trust)
    for note in settings.notes:
        echo_error(note)
    if newest:
        from ..chat.open_chat import newest_session

        session = anyio.run(newest_session, settings, folder)
    confined = None if sandbox is None else Sandbox(network=sandbox == "network")
    return ChatArguments(settings, folder, session, yes, permission_mode, confined, choose)


PIPE_TIMEOUT = 3.0
"""Seconds to wait for piped input when a PROMPT is given: some pipes stay open and never send anything."""


@click.command("chat")
@click.argument("prompt", required=False)
@click.option("--print", "plain", is_flag=True, help="Answer one prompt: print only the answer to stdout.")
@click.option(
    "--mode", type=NameChoice("mode", ("json",)), metavar="NAME", help="json: print every event as a JSON line."
)
@click.option(
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value=CHOOSE_SESSION,
    help="Continue this session; without an ID, choose one from a list.",
)
@chat_options
def chat_command(prompt: str | None, plain: bool, mode: str | None, **options: Any) -> int:
    """Chat with an agent that works in a folder and keeps itself inside its model's window.

    The agent reads and searches freely, and asks before it changes a file or runs a command. Without a terminal, use
    --print or --mode json with a PROMPT or with standard input; changes are then refused without --yes. --print
    accepts a PROMPT and piped input together; the pipe must start sending within 3 seconds.
    """
    if plain and mode:
        raise click.UsageError("--print and --mode json exclude each other: use one of them.")
    if plain or mode:
        arguments = load_chat_arguments(**options)
        if plain:
            return anyio.run(print_answer, arguments, _read_prompt(prompt))
        return anyio.run(print_events, arguments, prompt)
    screen = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if not screen and options["resume"] != CHOOSE_SESSION:
        raise InvalidInput("Not a terminal: use --print for an answer, --mode json for events, or holdfast rpc.")
    from ..chat.terminal import run_terminal

    arguments = load_chat_arguments(**options, screen=screen)
    return run_terminal(
        arguments.settings,
        folder=arguments.folder,
        session=arguments.session,
        yes=arguments.yes,
        prompt=prompt,
        choose=arguments.choose,
        mode=arguments.mode,
        sandbox=arguments.sandbox,
    )


def _read_prompt(prompt: str | None) -> str:
    """Return the PROMPT argument followed by piped input."""
    text = "\n\n".join(filter(None, ((prompt or "").strip(), _read_pipe(wait=not prompt).strip())))
    if not text:
        raise click.UsageError("There is no prompt: give a PROMPT argument or pipe one in.")
    return text


def _read_pipe(*, wait: bool) -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if not wait and not _stdin_ready():
        echo(f"holdfast: no piped input within {PIPE_TIMEOUT:.0f} s: continuing without it.", err=True)
        return ""
    return sys.stdin.buffer.read().decode(errors="replace")


def _stdin_ready() -> bool:
    """Wait up to PIPE_TIMEOUT for data or end of file on standard input."""
    try:
        return bool(select.select([sys.stdin], [], [], PIPE_TIMEOUT)[0])
    except (OSError, ValueError):  # select() does not work on it
        return True


def print_progress(event: AgentEvent, *, again: bool = False) -> None:
    """Prints a line for events a waiting person cares about; `again` after a compaction that failed."""
    if (line := _progress_line(event, again)) is not None:
        echo(printable(" ".join(line.split())), err=True)


def _progress_line(event: AgentEvent, again: bool) -> str | None:
    match event:
        case ToolStarted():
            return f"{event.name} {event.summary}"
        case ToolFinished(is_error=True):
            return f"{event.name}: {first_line(event.text)}"
        case Retrying():
            return event.line
        case CompactionStarted():
            return f"compacting {event.tokens:,} tokens{' again' * again}"
        case CompactionCompleted():
            at = " at the second attempt" * again
            return f"compacted{at}: {event.tokens_before:,} → {event.tokens_after:,} tokens. {ACCURACY_NOTICE}"
        case Attached(problems=problems) if problems:
            return " ".join(problems)
        case ErrorEvent():
            return event.error
    problem = compaction_error_event(event)
    return None if problem is None else problem.error


ANSWERED, ANSWER_FAILED = 0, 1


async def print_answer(arguments: ChatArguments, prompt: str) -> int:
    """Answers one prompt: the answer goes to stdout, progress and errors to stderr."""
    runner, answered = PromptRunner(), PromptResult("", "aborted")
    failed = False

    def on_event(event: AgentEvent) -> None:
        nonlocal failed
        runner.handle_event(event)
        print_progress(event, again=failed)
        failed = isinstance(event, CompactionFailed) or (failed and not isinstance(event, CompactionCompleted))

    async with _open_headless_chat(arguments, on_event) as chat, stop_on_signals(lambda: runner.abort(chat)) as stopped:
        echo(f"session {await shorten_id(chat.sessions, chat.record.id)}", err=True)
        for line in (*(f"project instructions: {file.summary}" for file in chat.instructions), *chat.notes):
            echo(printable(line), err=True)
        answered = await runner.run_prompt(chat, prompt)
    if answered.text or answered.status == "done":
        click.echo(_terminal_safe(answered.text))
    if answered.status != "done":
        echo_error(_failure_reason(answered))
    return stopped.exit_code or (ANSWERED if answered.status == "done" else ANSWER_FAILED)


async def print_events(arguments: ChatArguments, prompt: str | None) -> int:
    """Prints every event as a JSON line until the prompt, or each line of stdin in turn, is answered."""
    out, runner = JsonLinesWriter(sys.stdout.buffer), PromptRunner()
    good = True

    def on_event(event: AgentEvent) -> None:
        runner.handle_event(event)
        out.send(without_choices(event))
        if (problem := compaction_error_event(event)) is not None:
            out.send(problem)

    async with _open_headless_chat(arguments, on_event) as chat, out.running():
        if prompt is not None:
            async with stop_on_signals(lambda: runner.abort(chat)) as stopped:
                good = (await runner.run_prompt(chat, prompt)).status == "done"
        else:
            async with read_descriptor(STANDARD_INPUT) as incoming:

                def stop() -> None:
                    incoming.close()
                    runner.abort(chat)

                async with stop_on_signals(stop) as stopped, aclosing(_read_prompts(incoming, out)) as prompts:
                    async for text in prompts:
                        good = (await runner.run_prompt(chat, text)).status == "done"
                        if not good:
                            break
    return stopped.exit_code or (ANSWERED if good else ANSWER_FAILED)


async def _read_prompts(incoming: InputStream, out: JsonLinesWriter) -> AsyncGenerator[str]:
    async for line in split_lines(incoming):
        if isinstance(line, OversizedLine):
            out.send(ErrorEvent("Skipped a line that is too long to be a prompt."))
        elif text := line.decode(errors="replace").strip():
            yield text


def _open_headless_chat(arguments: ChatArguments, on_event: EventListener) -> AbstractAsyncContextManager[Chat]:
    approve = approve_all if arguments.yes else _refuse_changes
    return open_chat(
        arguments.settings,
        folder=arguments.folder,
        on_event=on_event,
        approve=approve,
        session=arguments.session,
        mode=arguments.mode,
        sandbox=arguments.sandbox,
    )


async def _refuse_changes(question: PermissionRequest) -> Permission:
    if question.about == NOT_TRUSTED:
        raise InvalidInput(
            "This folder is not trusted, and this chat cannot ask: nothing in it is read or changed. Say so; the user "
            "can trust it with holdfast trust, or once with --trust."
        )
    raise InvalidInput(
        "Changes are not allowed: this chat cannot ask for approval. Say what should be done instead; the user can "
        "allow changes with --yes."
    )


def _failure_reason(answered: PromptResult) -> str:
    return f"{answered.status.replace('_', ' ')}: {answered.why or 'no reason was given'}"


def _terminal_safe(text: str) -> str:
    """Strips control sequences if stdout is a terminal; else returns the text unchanged."""
    if not sys.stdout.isatty():
        return text
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))
