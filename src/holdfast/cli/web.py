"""`holdfast web`: pages that show what the sessions of a store kept, what they lost, and why."""

from __future__ import annotations

import logging
import sys
import webbrowser
from typing import TYPE_CHECKING

import anyio
import click

from ..errors import InvalidInput
from ..io.access_keys import read_keys
from ..io.processes import stop_on_signals
from ..io.text import printable
from ..settings import load_settings
from ..triggers import TokenCount
from .output import LogFormatter, echo
from .search import load_source, named_store
from .sources import is_example, open_source
from .stores import require_store
from .worker import IN_MEMORY, build_service

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from ..sessions import SessionService
    from ..web import Inspector
    from .sources import Source

_PORT = 8398
_EXAMPLE_BUDGET, _EXAMPLE_STEP = 60_000, 20
"""Tokens at which an example is compacted, and messages between two looks at its size."""


@click.command("web")
@click.argument("store", required=False, metavar="[STORE]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need --key-file.")
@click.option("--port", type=click.IntRange(0, 65_535), default=_PORT, show_default=True, help="Port; 0: a free one.")
@click.option("--read-only", is_flag=True, help="Show sessions, but change none.")
@click.option("--owner", metavar="NAME", help="Show only the sessions of this owner.")
@click.option("--key-file", metavar="FILE", help="Keys that open the pages, each with its owner in one line.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Further name of this server in the address bar.")
@click.option("--open", "opens", is_flag=True, help="Open the pages in your browser.")
def web_command(
    store: str | None,
    host: str,
    port: int,
    read_only: bool,
    owner: str | None,
    key_file: str | None,
    allow_host: tuple[str, ...],
    opens: bool,
) -> int:
    """Show the sessions of a STORE in a browser.

    Prints the address to open, with a token that works once. STORE is a database or a folder of JSONL sessions;
    default: the store in your settings. A session file of another tool, or `example`, is shown from memory.
    """
    location = require_store(load_settings().store) if store is None else named_store(store)
    source = open_source(store, whole=True) if location is None and store is not None else None
    settings = load_settings(flags={"store": IN_MEMORY if location is None else location.url})
    keys = None if key_file is None else read_keys(key_file)
    sessions = build_service(settings, settings.summarizer)
    url = None if location is None else location.url
    inspector, listening = open_inspector(
        sessions, host, port, keys=keys, names=allow_host, owner=owner, store_url=url, read_only=read_only
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("holdfast: %(message)s"))
    logging.getLogger("holdfast").addHandler(handler)
    with listening:
        anyio.run(_serve, inspector, listening, source, opens)
    return 0


def open_inspector(
    sessions: SessionService,
    host: str,
    port: int,
    *,
    keys: Mapping[str, str] | None = None,
    names: tuple[str, ...] = (),
    owner: str | None = None,
    store_url: str | None = None,
    read_only: bool = False,
) -> tuple[Inspector, socket.socket]:
    """Returns the pages over a service, and a socket that listens for them."""
    try:
        from ..web import Access, Inspector, listen
    except ImportError as missing:
        raise InvalidInput(f"The pages need {missing.name}: pip install 'holdfast-context[web]'.") from None
    listening = listen(host, port)
    access = Access(host, listening.getsockname()[1], names=names, keys=keys, owner=owner)
    return Inspector(sessions, access, store_url=store_url, read_only=read_only), listening


async def _serve(inspector: Inspector, listening: socket.socket, source: Source | None, opens: bool) -> None:
    from ..web import serve_inspector

    stop = anyio.Event()
    async with inspector.sessions, stop_on_signals(stop.set):
        if source is not None:
            await _load(inspector.sessions, source)
            echo(f"{printable(source.name)} is shown from memory: changes are not saved.")
        echo(f"Open {inspector.access.opening_url}")
        if opens:
            webbrowser.open(inspector.access.opening_url)
        await serve_inspector(inspector, listening, stop)


async def _load(sessions: SessionService, source: Source) -> None:
    """Loads a session file; a bundled example is compacted as it grows."""
    if not is_example(source.name):
        await load_source(sessions, source)
        return
    record = await sessions.create(
        id=source.name, format=source.format, system=source.system, tools=source.tools, model=source.model
    )
    for start in range(0, len(source.messages), _EXAMPLE_STEP):
        await sessions.append(record.id, source.messages[start : start + _EXAMPLE_STEP])
        await sessions.compact(
            record.id, TokenCount(_EXAMPLE_BUDGET), "ledger", budget=_EXAMPLE_BUDGET, target=_EXAMPLE_BUDGET // 3
        )
