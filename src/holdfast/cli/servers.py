"""`holdfast mcp` and `holdfast rpc`: servers over standard input and output."""

from __future__ import annotations

import logging
import sys
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import anyio
import click

from ..errors import InvalidInput
from ..recall import Recall
from ..sessions import SessionService
from ..stores import MemoryStore, open_store
from .chat import load_chat_arguments
from .options import chat_options, file_argument, session_option
from .output import LogFormatter
from .search import load_source, named_store
from .sources import open_source


@click.command("mcp")
@file_argument
@session_option
def mcp_command(file: str, session: str | None) -> None:
    """Serve FILE to an MCP client on standard input and output.

    The tools search and read; for a store they also list sessions and restore archived messages. FILE is anything
    that `holdfast search` takes. Requires the MCP SDK, the extra `mcp`.
    """
    from ..recall.mcp import require_mcp_sdk

    if file == "-":
        raise InvalidInput("Standard input is used by the MCP client: name a file.")
    require_mcp_sdk()
    anyio.run(_serve_mcp, file, session)


async def _serve_mcp(file: str, session: str | None) -> None:
    from ..recall.mcp import serve

    location = named_store(file)
    if location is None:
        source = open_source(file, session=session, whole=True)
        async with SessionService(MemoryStore()) as sessions:
            await serve(Recall(sessions, await load_source(sessions, source), can_restore=False))
        return
    chosen = session or location.session_id
    if chosen is not None:
        with location.open() as opened:
            chosen = location.choose_session(opened, session).id
    async with SessionService(open_store(location.url)) as sessions:
        await serve(Recall(sessions, chosen))


@click.command("rpc")
@chat_options
def rpc_command(**options: Any) -> int:
    """Serve a chat to a program: JSON lines in and out.

    Requests come on standard input; responses and events go to standard output, and nothing else does. docs/rpc.md
    describes them. When the input ends, running work is stopped and saved.
    """
    from ..chat.rpc import serve
    from ..io.streams import STANDARD_INPUT

    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setFormatter(LogFormatter("holdfast: %(message)s"))
    logging.getLogger("holdfast").addHandler(to_stderr)
    arguments = load_chat_arguments(**options)
    run = partial(
        serve,
        folder=arguments.folder,
        session=arguments.session,
        yes=arguments.yes,
        mode=arguments.mode,
        sandbox=arguments.sandbox,
    )
    assert sys.__stdout__ is not None
    stream = sys.__stdout__.buffer  # unlike sys.stdout, it says when the client has gone
    with redirect_stdout(sys.stderr):  # a stray print must not look like a record
        return anyio.run(run, arguments.settings, STANDARD_INPUT, stream)
