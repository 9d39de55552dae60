"""`holdfast mcp`: an MCP server over a store, so that any MCP client can look into its sessions."""

from __future__ import annotations

import anyio
import click

from ..errors import InvalidInput
from ..recall import Recall
from ..service import SessionService
from ..stores import MemoryStore, open_store
from . import options
from .recalls import remember_source, store_named
from .sources import open_source


@click.command("mcp")
@options.file
@options.session
def command(file: str, session: str | None) -> None:
    """Serve FILE to an MCP client on standard input and output.

    Its tools search and read, and list the sessions of a store; nothing is written. FILE is anything that
    `holdfast search` takes. Needs the MCP SDK: pip install 'holdfast[mcp]'.
    """
    from ..recall.server import must_have_sdk

    if file == "-":
        raise InvalidInput("Standard input belongs to the MCP client: name a file.")
    must_have_sdk()
    anyio.run(_serve, file, session)


async def _serve(file: str, session: str | None) -> None:
    from ..recall.server import serve

    place = store_named(file)
    if place is None:
        source = open_source(file, session=session, whole=True)
        async with SessionService(MemoryStore()) as sessions:
            await serve(Recall(sessions, await remember_source(sessions, source)))
        return
    chosen = session or place.only
    if chosen is not None:
        with place.open() as looked_into:
            chosen = place.choose(looked_into, session).id
    async with SessionService(open_store(place.url)) as sessions:
        await serve(Recall(sessions, chosen))
