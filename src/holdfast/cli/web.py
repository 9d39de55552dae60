"""`holdfast web`: pages that show what the sessions of a store kept, what they lost, and why."""

from __future__ import annotations

import logging
import sys
import webbrowser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from ..errors import InvalidInput, Outcome
from ..io.access_keys import read_keys
from ..io.installation import install_command
from ..io.processes import call_on_hangup, stop_on_signals
from ..io.text import printable
from ..jobs.queue_status import QueueReader
from ..messages import to_json
from ..sessions import SessionService
from ..settings import chosen_preset, load_settings
from ..tokens import Tokenizer, Usage, count_tokens
from ..triggers import TokenCount
from .output import LogFormatter, echo
from .search import load_source, named_store
from .sources import is_example, open_source
from .stores import require_store
from .worker import IN_MEMORY, build_service

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from ..transcripts import Transcript
    from ..web import Inspector
    from .sources import Source

log = logging.getLogger("holdfast.web")
_PORT = 8398
_EXAMPLE_BUDGET, _EXAMPLE_STEP = 60_000, 5
"""Tokens at which an example is compacted, and messages between two looks at its size."""
_EXAMPLE_MODEL, _EXAMPLE_PROMPT = "claude-sonnet-4-5", 2_400
"""The model that an example is priced for, and the tokens of its system prompt and tools."""


@click.command("web")
@click.argument("store", required=False, metavar="[STORE]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need --key-file.")
@click.option("--port", type=click.IntRange(0, 65_535), default=_PORT, show_default=True, help="Port; 0: a free one.")
@click.option("--read-only", is_flag=True, help="Show sessions, but change none.")
@click.option("--owner", metavar="NAME", help="Show only the sessions of this owner.")
@click.option("--key-file", metavar="FILE", help="Keys that open the pages, each with its owner in one line.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Further name of this server in the address bar.")
@click.option("--reports", metavar="FOLDER", help="Show the reports that holdfast lab wrote into FOLDER, too.")
@click.option("--queue", envvar="HOLDFAST_QUEUE", metavar="URL", help="Show the jobs of this queue: redis://host:6379.")
@click.option("--queue-name", metavar="NAME", help="Queue name on its server; default: the one of holdfast worker.")
@click.option("--open", "opens", is_flag=True, help="Open the pages in your browser.")
def web_command(
    store: str | None,
    host: str,
    port: int,
    read_only: bool,
    owner: str | None,
    key_file: str | None,
    allow_host: tuple[str, ...],
    reports: str | None,
    queue: str | None,
    queue_name: str | None,
    opens: bool,
) -> int:
    """Show the sessions of a STORE in a browser.

    Prints the address to open, with a token that works once. STORE is a database or a folder of JSONL sessions;
    default: the store in your settings. A session file of another tool, or `example`, is shown from memory.
    SIGHUP reads the key file again.
    """
    _check_options(reports, limited=owner is not None or key_file is not None)
    location = require_store(load_settings().store) if store is None else named_store(store)
    source = open_source(store, whole=True) if location is None and store is not None else None
    settings = load_settings(flags={"store": IN_MEMORY if location is None else location.url})
    keys = None if key_file is None else read_keys(key_file)
    sessions = build_service(settings, settings.summarizer, preset=chosen_preset(settings))
    url = None if location is None else location.url
    inspector, listening = open_inspector(
        sessions,
        host,
        port,
        keys=keys,
        names=allow_host,
        owner=owner,
        store_url=url,
        read_only=read_only,
        reports=None if reports is None else Path(reports),
        queue=None if queue in (None, IN_MEMORY) else QueueReader(queue, queue_name),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("holdfast: %(message)s"))
    logging.getLogger("holdfast").addHandler(handler)
    log.setLevel(logging.INFO)
    with listening:
        anyio.run(_serve, inspector, listening, source, opens, key_file)
    return 0


def _check_options(reports: str | None, *, limited: bool) -> None:
    if reports is not None and limited:
        raise InvalidInput("Reports are about sessions of every owner: leave out --reports, or --owner and --key-file.")
    if reports is not None and not Path(reports).is_dir():
        raise InvalidInput(f"{reports} is not a folder: name the one in which holdfast lab wrote its reports.")


def open_inspector(
    sessions: SessionService,
    host: str,
    port: int,
    *,
    keys: Mapping[str, str] | None = None,
    names: tuple[str, ...] = (),
    owner: str | None = None,
    **options: Any,
) -> tuple[Inspector, socket.socket]:
    """Returns the pages over a service, and a socket that listens for them; `options` are those of Inspector."""
    try:
        from ..web import Access, Inspector, listen
    except ImportError as missing:
        raise InvalidInput(f"The pages need {missing.name}: {install_command('web')}") from None
    listening = listen(host, port)
    access = Access(host, listening.getsockname()[1], names=names, keys=keys, owner=owner)
    return Inspector(sessions, access, **options), listening


async def _serve(
    inspector: Inspector, listening: socket.socket, source: Source | None, opens: bool, key_file: str | None
) -> None:
    from ..web import serve_inspector

    stop = anyio.Event()
    async with inspector.sessions, stop_on_signals(stop.set), anyio.create_task_group() as group:
        if key_file is not None:
            group.start_soon(call_on_hangup, partial(_reload, inspector, key_file))
        if source is not None:
            await _load(inspector.sessions, source)
            echo(f"{printable(source.name)} is shown from memory: changes are not saved.")
        echo(f"Open {inspector.access.opening_url}")
        if opens:
            webbrowser.open(inspector.access.opening_url)
        await serve_inspector(inspector, listening, stop)
        group.cancel_scope.cancel()


def _reload(inspector: Inspector, key_file: str) -> None:
    try:
        inspector.access.reload(read_keys(key_file))
        log.info("keys were read again")
    except InvalidInput as problem:
        log.error("keys stay as they were: %s", problem)


async def _load(sessions: SessionService, source: Source) -> None:
    """Loads a session file; a bundled example is compacted as it grows."""
    if not is_example(source.name):
        await load_source(sessions, source)
        return
    await load_example(sessions, source.name, source)


async def load_example(sessions: SessionService, id: str, source: Source | Transcript, **about: Any) -> None:
    """Appends an example with the usage that a provider would report, and compacts it as it grows."""
    plain, cached = SessionService(sessions.store, estimator=Tokenizer()), 0
    await sessions.create(id=id, format=source.format, model=source.model or _EXAMPLE_MODEL, **about)
    for number, message in enumerate(source.messages, 1):
        usage = None
        if message.get("role") == "assistant":
            prompt = (await plain.size(id)).tokens * 11 // 10 + _EXAMPLE_PROMPT
            read = min(cached, prompt)
            usage = Usage(12, count_tokens(plain.estimator, to_json(message)), read, prompt - read)
            cached = prompt
        await sessions.append(id, message, usage=usage)
        if number % _EXAMPLE_STEP == 0:
            done = await sessions.compact(
                id, TokenCount(_EXAMPLE_BUDGET), "ledger", budget=_EXAMPLE_BUDGET, target=_EXAMPLE_BUDGET // 3
            )
            cached = _EXAMPLE_PROMPT if done.outcome == Outcome.COMPACTED else cached
