"""`holdfast search` and `holdfast read`: find events again, archived or not, and read them in full."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..io.text import printable
from ..messages import decode_all
from ..recall import BlockingRecall, SearchResults
from ..recall.search import KINDS, ROLES
from ..sessions import BlockingSessionService, SessionService
from ..sessions.message_list import store_history
from ..sessions.session_ids import shorten_ids
from ..stores import Hit, MemoryStore
from ..transcripts import import_transcript
from . import options
from .console import grid, make_console, print_blocks, show_progress, unwrapped_line
from .options import CountType, NameChoice
from .output import echo, echo_json
from .sources import Source, is_example, name_file_in_errors, open_source
from .stores import StoreLocation, find_store


class OpenedRecall(msgspec.Struct, frozen=True):
    """An opened store or file, and how to name it in a command."""

    recall: BlockingRecall
    name: str
    session: str | None
    """The session to search; None means all sessions of the store."""
    is_store: bool
    short_ids: Mapping[str, str]
    """Ids of the store's sessions as a person reads them."""

    def arguments(self, session: str | None) -> str:
        """File and session as command-line arguments, for a command to copy."""
        chosen = ["--session", self.short_ids.get(session, session)] if self.is_store and session else []
        return shlex.join([self.name, *chosen])


@contextmanager
def open_recall(name: str, session: str | None, *, single_session: bool = False) -> Iterator[OpenedRecall]:
    """Opens a store or a file; `single_session` requires one session of a store to be chosen."""
    location = named_store(name)
    if location is not None:
        with location.open() as sessions:
            chosen = session or location.session_id
            if single_session or chosen is not None:
                chosen = location.choose_session(sessions, session).id
            short = shorten_ids(record.id for record in sessions.list())
            yield OpenedRecall(BlockingRecall(sessions, chosen), location.path, chosen, True, short)
        return
    source = open_source(name, session=session, whole=True)
    with BlockingSessionService(MemoryStore()) as sessions:
        id = sessions.call(lambda service: load_source(service, source))
        yield OpenedRecall(BlockingRecall(sessions, id), source.name, id, False, {})


def named_store(name: str) -> StoreLocation | None:
    return None if name == "-" or is_example(name) else find_store(name)


async def load_source(service: SessionService, source: Source) -> str:
    """Loads a file into the service as a temporary session; returns its id."""
    transcript, id = source.transcript, source.id or source.name
    assert transcript is not None
    with name_file_in_errors(source):
        if transcript.kind != "messages":
            return (await import_transcript(service, transcript, id)).id
        messages, format = decode_all(transcript.messages, transcript.format)
    return await store_history(service.store, messages, format, session_id=id)


NOTHING_FOUND = 1


@click.command("search")
@click.argument("query")
@options.file_argument
@options.session_option
@click.option(
    "--kind", type=NameChoice("kind", KINDS), metavar="NAME", help=f"Only events of this kind: {', '.join(KINDS)}."
)
@click.option(
    "--role", type=NameChoice("role", ROLES), metavar="NAME", help=f"Only messages of this role: {', '.join(ROLES)}."
)
@click.option("--tool", metavar="NAME", help="Only calls of this tool, and their results.")
@click.option("--lane", metavar="NAME", help="Only this sub-agent's lane; '' is the root lane.")
@click.option(
    "--since", metavar="WHEN", help="Start as a date, a time (UTC) or an age: 2026-03-01, 2026-03-01T12:30, 3d."
)
@click.option("--until", metavar="WHEN", help="End, in the same forms.")
@click.option("--archived", is_flag=True, help="Only events that a compaction archived.")
@click.option("--limit", type=CountType(), default=10, show_default=True, help="Number of hits to list.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Number of hits to skip.")
@options.json_option
def search_command(query: str, file: str, session: str | None, limit: int, as_json: bool, **filters: Any) -> int:
    """Find events that contain every word of QUERY, best match first.

    FILE is a Holdfast store, a session of Claude Code, Codex, pi or OpenCode, or any file of messages. Words match
    in any order and inside longer words; QUERY has no special syntax. The exit code is 1 if nothing was found.
    """
    filters["archived"] = filters["archived"] or None
    with open_recall(file, session, single_session=bool(filters["archived"])) as opened:
        with show_progress("searching"):
            found = opened.recall.search(query, limit=limit, **filters)
        if as_json:
            echo_json(_search_json(query, found))
        else:
            print_hits(make_console(), query, found, opened, _active_filters({"session": session, **filters}))
    return 0 if found.hits else NOTHING_FOUND


def _active_filters(filters: dict[str, Any]) -> list[str]:
    """Options that restrict the search."""
    return [f"--{name}" for name, value in filters.items() if value not in (None, 0)]


def _search_json(query: str, found: SearchResults) -> dict[str, Any]:
    return {"query": query, "hits": [_hit_json(hit) for hit in found.hits], "next": found.next}


def _hit_json(hit: Hit) -> dict[str, Any]:
    return {
        "session": hit.session_id,
        "ref": hit.reference,
        "id": hit.event.id,
        "kind": hit.event.kind,
        "role": hit.role,
        "tools": hit.tools,
        "lane": hit.event.lane,
        "time": hit.event.time or None,
        "archived": hit.archived,
        "snippet": hit.snippet,
    }


_ROLE_STYLES = {"system": "magenta", "user": "green", "assistant": "cyan", "tool": "yellow"}


def print_hits(
    console: Console, query: str, found: SearchResults, opened: OpenedRecall, filters: Sequence[str]
) -> None:
    if not found.hits:
        print_blocks(
            console,
            [unwrapped_line(opened.name, "bold"), Text("nothing found", "bright_black")],
            Text(f"No event contains every word of {printable(query)!r}{_no_hits_advice(filters)}"),
        )
        return
    first = found.hits[0]
    more = f"more: --offset {found.next}" if found.more else "no more"
    session = opened.session or first.session_id
    print_blocks(
        console,
        [unwrapped_line(opened.name, "bold"), Text(f"{len(found.hits):,} found, {more}", "bright_black")],
        *(_hit_block(hit, query, opened) for hit in found.hits),
        unwrapped_line(f"Read one: holdfast read '{first.reference}' {opened.arguments(session)}"),
    )


def _no_hits_advice(filters: Sequence[str]) -> str:
    if filters:
        return f" with these filters ({', '.join(filters)}): leave some out, or try fewer words."
    return ": try fewer words, or parts of them."


def _hit_block(hit: Hit, query: str, opened: OpenedRecall) -> Table:
    """A headline for the event, then the matching snippet."""
    about = Text(hit.reference, "bold").append("  ")
    about.append(hit.role or hit.event.kind, f"not bold {_ROLE_STYLES.get(hit.role or '', 'blue')}")
    for text in (
        printable(" ".join(hit.tools)),
        printable(hit.event.time[:16].replace("T", " ")),
        f"lane {printable(hit.event.lane)}" if hit.event.lane else "",
        f"session {printable(opened.short_ids.get(hit.session_id, hit.session_id))}"
        if opened.is_store and opened.session is None
        else "",
        "archived" if hit.archived else "",
    ):
        about.append(f"  {text}" if text else "", "not bold bright_black")
    table = grid("rest")
    table.columns[0].no_wrap = False
    table.add_row(about)
    table.add_row(_highlight(printable(hit.snippet), query))
    return table


def _highlight(snippet: str, query: str) -> Text:
    text = Text(snippet)
    words = sorted(query.split(), key=len, reverse=True)
    text.highlight_regex(re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE), "bold")
    return text


@click.command("read")
@click.argument("reference", metavar="REF")
@options.file_argument
@options.session_option
@click.option(
    "--tokens", type=CountType(), default=10_000, show_default=True, help="Maximum number of tokens to print."
)
@options.json_option
def read_command(reference: str, file: str, session: str | None, tokens: int, as_json: bool) -> None:
    """Print the events that REF refers to, archived or not.

    REF is an event number as `#12` or 12, a range 12-20, an offset in an event 12@4000, or an event id. FILE is
    anything that `holdfast search` takes.
    """
    with open_recall(file, session, single_session=True) as opened:
        with show_progress("reading"):
            passage = opened.recall.read(reference, max_tokens=tokens)
        if as_json:
            facts = {
                "text": passage.text,
                "events": [event.id for event in passage.events],
                "next": passage.next,
                "tokens": passage.tokens,
            }
            echo_json(facts)
            return
        echo("\n".join(map(printable, passage.text.split("\n"))))
        if passage.next:
            echo(f"\nTo continue: holdfast read '{passage.next}' {opened.arguments(opened.session)}")
