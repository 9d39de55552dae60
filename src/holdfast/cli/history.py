"""`holdfast restore`, `undo`, `fork` and `redact`: change, branch or erase the context of a session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ..context.references import reference
from ..errors import InvalidInput
from ..io.text import printable
from ..recall import Recall
from ..sessions import BlockingSessionService
from ..sessions.live import Context
from ..sessions.session_ids import shorten_id
from . import options
from .console import show_progress
from .output import echo, echo_json
from .sources import is_example, require_file
from .stores import StoreLocation, find_store


@contextmanager
def _open_session(file: str, session: str | None) -> Iterator[tuple[BlockingSessionService, StoreLocation, str]]:
    """Opens a store and chooses a session; raises InvalidInput for any other kind of file."""
    location = None if file == "-" or is_example(file) else find_store(file)
    if location is None:
        if file != "-" and not is_example(file):
            require_file(file)
        raise InvalidInput(f"{file} is not a Holdfast store: import it first with holdfast import.")
    with location.open() as sessions:
        yield sessions, location, location.choose_session(sessions, session).id


def _find_event(sessions: BlockingSessionService, session: str, written: str) -> tuple[str, str]:
    """The id and the reference of one event."""
    event = sessions.call(lambda service: Recall(service, session).find_event(written))
    return event.id, reference(event)


def _print_result(facts: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        echo_json(facts)
    else:
        echo(printable(text))


def _short(sessions: BlockingSessionService, session: str) -> str:
    return sessions.call(lambda service: shorten_id(service, session))


def _size(context: Context) -> str:
    return f"{len(context):,} messages, {context.tokens:,} tokens"


@click.command("restore")
@click.argument("ref", metavar="REF")
@options.file_argument
@options.session_option
@options.json_option
def restore_command(ref: str, file: str, session: str | None, as_json: bool) -> None:
    """Bring the archived message REF back into the context of a stored session.

    A quoted copy with its source is appended to the session; nothing before it changes. REF is an event number as
    `#12` or 12, or an event id; FILE is a Holdfast store. Messages that exceed the model's window are refused.
    """
    with _open_session(file, session) as (sessions, location, chosen):
        event_id, number = _find_event(sessions, chosen, ref)
        before = sessions.context(chosen).tokens
        copy = sessions.restore(chosen, event_id)
        after = sessions.context(chosen).tokens
        facts = {
            "store": location.path,
            "session": chosen,
            "ref": number,
            "copy": reference(copy),
            "id": copy.id,
            "tokens_before": before,
            "tokens_after": after,
        }
        name = _short(sessions, chosen)
        text = f"Restored {number} of session {name} as {reference(copy)}: {before:,} → {after:,} tokens."
        _print_result(facts, text, as_json=as_json)


@click.command("undo")
@options.file_argument
@options.session_option
@options.json_option
def undo_command(file: str, session: str | None, as_json: bool) -> None:
    """Undo the last compaction of a stored session.

    The context before it is back, followed by everything appended since. FILE is a Holdfast store. Repeat it to undo
    earlier compactions.
    """
    with _open_session(file, session) as (sessions, location, chosen):
        before = sessions.context(chosen).tokens
        checkpoint = sessions.undo(chosen)
        context = sessions.context(chosen)
        facts = {
            "store": location.path,
            "session": chosen,
            "checkpoint": checkpoint,
            "round": sessions.round(chosen),
            "messages": len(context),
            "tokens_before": before,
            "tokens_after": context.tokens,
        }
        text = f"Undid the last compaction of session {_short(sessions, chosen)}: {_size(context)}."
        _print_result(facts, text, as_json=as_json)


@click.command("fork")
@options.file_argument
@options.session_option
@click.option("--at", metavar="REF", help="Last event to include, as #12 or an event id; default: the newest.")
@click.option("--id", metavar="ID", help="Id of the new session; default: a generated one.")
@options.json_option
def fork_command(file: str, session: str | None, at: str | None, id: str | None, as_json: bool) -> None:
    """Create a session from a stored one, up to an event.

    The new session has the context that the old one had right after that event, so one from before a compaction is
    uncompacted. The old session does not change. FILE is a Holdfast store.
    """
    with _open_session(file, session) as (sessions, location, chosen):
        event_id = None if at is None else _find_event(sessions, chosen, at)[0]
        record = sessions.fork(chosen, event_id, id=id)
        context = sessions.context(record.id)
        facts = {
            "store": location.path,
            "session": record.id,
            "parent": chosen,
            "at": f"#{record.parent_seq}",
            "messages": len(context),
            "tokens": context.tokens,
        }
        new, old = _short(sessions, record.id), _short(sessions, chosen)
        text = f"Created session {new} from {old} up to #{record.parent_seq}: {_size(context)}."
        _print_result(facts, text, as_json=as_json)


TEXT_LEFT = 1


@click.command("redact")
@click.argument("ref", metavar="REF")
@options.file_argument
@options.session_option
@options.json_option
def redact_command(ref: str, file: str, session: str | None, as_json: bool) -> int:
    """Remove a message, or a text such as a password, for good.

    REF is a message as `#12`, 12 or its event id, or `-`: then the text is read from standard input, where no list of
    processes shows it. FILE is a Holdfast store. Forks, copies, summaries and the search index are reached, too. The
    exit code is 1 if something is left; each place is listed.
    """
    text = sys.stdin.buffer.read().decode(errors="replace").rstrip("\r\n") if ref == "-" else None
    with _open_session(file, session) as (sessions, location, chosen), show_progress("redacting"):
        if text is None:
            event_id, what = _find_event(sessions, chosen, ref)
            done = sessions.redact(chosen, event_id)
        else:
            what, done = "The text", sessions.redact_text(chosen, text)
        name = _short(sessions, chosen)
    facts = {"store": location.path, "session": chosen, "ok": not done.left, "events": done.events, "left": done.left}
    counted = f"{done.events:,} event{'s' if done.events != 1 else ''}"
    lines = [f"{what} was removed from {counted} of session {name} and those that share it."]
    lines += [f"It is left in {place}" for place in done.left]
    _print_result(facts, "\n".join(lines), as_json=as_json)
    return TEXT_LEFT if done.left else 0
