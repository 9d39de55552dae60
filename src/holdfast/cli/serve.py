"""`holdfast serve`: the gateway between clients and their providers."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
import msgspec

from ..errors import InvalidInput
from ..io.access_keys import read_keys
from ..io.installation import install_command
from ..io.processes import call_on_hangup, stop_on_signals
from ..io.secrets import scrub
from ..io.text import escape_json
from ..io.worker_processes import listen_on, run_workers
from ..settings import data_folder, load_settings, preset_for
from . import options
from .client_setups import DEFAULT_PORT
from .options import PRESET_NAME, CountType
from .output import echo
from .stores import refuse_foreign_database
from .web import open_inspector
from .worker import IN_MEMORY, ScrubbingFormatter, build_service, log_to_stderr

if TYPE_CHECKING:
    import socket

    from ..gateway import Gateway, GatewayOptions
    from ..sessions import SessionService
    from ..settings import Settings
    from ..web import Inspector

log = logging.getLogger("holdfast.gateway")
_OPEN_FILES = 65_536


@click.command("serve")
@click.option(
    "--upstream",
    "upstreams",
    multiple=True,
    required=True,
    metavar="URL",
    help="Where requests are forwarded: https://api.openai.com, anthropic=URL for one wire format, or @FILE with one "
    "in each line. Repeatable.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need --key-file.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True, help="Port to listen on."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that serve the port, on one store that they share.",
)
@options.store_option
@click.option("--preset", type=PRESET_NAME, metavar="NAME", help="Compaction preset; default: from your settings.")
@click.option(
    "--summarizer",
    metavar="MODEL",
    help="Model that writes summaries, or client: the client's own. Default: none, the ledger.",
)
@click.option("--window", type=CountType(), metavar="N", help="Context window; default: the model's.")
@click.option("--recall", is_flag=True, help="Let the model look up archived messages, unseen by the client.")
@click.option("--key-file", metavar="FILE", help="Keys that clients must send, each with its owner in one line.")
@click.option(
    "--upstream-key",
    envvar="HOLDFAST_UPSTREAM_KEY",
    metavar="KEY",
    help="Key of the provider, used in place of the clients' own; better given as HOLDFAST_UPSTREAM_KEY.",
)
@click.option(
    "--item-key-file",
    metavar="FILE",
    help="Keys that encrypt compaction items, made on first use; replicas share it. Or HOLDFAST_ITEM_KEY.",
)
@click.option(
    "--inspect",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Show the sessions in a browser on this port, as holdfast web does; with the keys of --key-file.",
)
@click.option("--native", is_flag=True, help="The upstream has its vendor's compaction protocol: leave it to it.")
@click.option(
    "--alternating",
    is_flag=True,
    help="The models refuse two messages of one role in a row (Mistral, Gemma); else their refusal is enough.",
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="Further name of this gateway in clients' requests.")
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="ORIGIN",
    help="Web pages that may call this gateway without a key: https://app.example. Repeatable; default: none but those "
    "of this machine.",
)
@click.option(
    "--log",
    "log_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log on stderr, which has a line for each request and nothing of its content.",
)
def serve_command(
    upstreams: tuple[str, ...],
    host: str,
    port: int,
    workers: int,
    store: str | None,
    preset: str | None,
    summarizer: str | None,
    window: int | None,
    recall: bool,
    key_file: str | None,
    upstream_key: str | None,
    item_key_file: str | None,
    inspect: int | None,
    native: bool,
    alternating: bool,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    log_format: str,
) -> int:
    """Forward model calls to a provider and compact long histories on the way.

    Point a client at http://127.0.0.1:8399 instead of its provider. Conversations are sessions of the store: inspect,
    search, undo and the other commands work on them.

    On SIGTERM, running requests have 30 seconds to finish. SIGHUP reads the key file and the files of upstreams again.
    """
    try:
        from ..gateway import Gateway, GatewayOptions, load_item_keys, parse_upstreams
    except ImportError as missing:
        raise InvalidInput(f"The gateway needs {missing.name}: {install_command('gateway')}") from None
    own = summarizer == "client"
    settings = load_settings(
        flags={"store": store, "preset": preset, "summarizer": None if own else summarizer, "window": window}
    )
    refuse_foreign_database(settings.store)

    open_sessions = partial(_open_sessions, settings, None if own else settings.summarizer)

    def read_options() -> GatewayOptions:
        return GatewayOptions(
            upstreams=parse_upstreams(upstreams),
            host=host,
            port=port,
            keys={} if key_file is None else read_keys(key_file),
            upstream_key=upstream_key,
            item_keys=load_item_keys(item_key_file or data_folder() / "gateway-items.key"),
            native=native,
            alternating=alternating,
            allowed_hosts=allow_host,
            allowed_origins=allow_origin,
            recall=recall,
            summarize_with_client_model=own,
            open_sessions=None if settings.store == IN_MEMORY else open_sessions,
        )

    how = read_options()
    _allow_many_connections()
    log_to_stderr(_JsonFormatter() if log_format == "json" else _TextFormatter())

    def work(worker: int = 0, lifeline: int | None = None, listening: socket.socket | None = None) -> int:
        named = how if listening is None else msgspec.structs.replace(how, worker=str(worker))
        sessions = open_sessions()
        gateway = Gateway(named, sessions)
        pages = None
        if inspect is not None and worker == 0:
            url = None if settings.store == IN_MEMORY else settings.store
            pages = open_inspector(sessions, host, inspect, keys=how.keys, names=allow_host, store_url=url)
        run = partial(_serve, gateway, read_options, pages, lifeline, listening)
        anyio.run(run, backend="asyncio", backend_options={"use_uvloop": find_spec("uvloop") is not None})
        return 0

    if workers == 1:
        return work()
    if sys.platform == "win32" or settings.store == IN_MEMORY:
        raise InvalidInput("--workers needs a store that processes share (--store), and a system other than Windows.")
    try:
        listening = listen_on(host, port)
    except OSError as problem:
        raise InvalidInput(f"Cannot listen on {host}:{port} ({problem.strerror}): name another --port.") from None
    echo(f"Listening on http://{host}:{listening.getsockname()[1]}")
    return run_workers(workers, listening, partial(work, listening=listening))


def _open_sessions(settings: Settings, summarizer: str | None) -> SessionService:
    return build_service(settings, summarizer, preset=preset_for(settings))


def _allow_many_connections() -> None:
    """Raises the soft limit of open files: each stream takes two connections, and the usual limit is 1,024."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        if soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _serve(
    gateway: Gateway,
    read_options: Callable[[], GatewayOptions],
    pages: tuple[Inspector, socket.socket] | None,
    lifeline: int | None,
    listening: socket.socket | None,
) -> None:
    stop, host = anyio.Event(), gateway.options.host
    if lifeline is not None:
        loop = asyncio.get_running_loop()

        def on_end(descriptor: int = lifeline) -> None:
            loop.remove_reader(descriptor)
            stop.set()

        loop.add_reader(lifeline, on_end)
    async with gateway.sessions, stop_on_signals(stop.set), anyio.create_task_group() as group:
        group.start_soon(call_on_hangup, partial(_reload, gateway, read_options, pages))
        if pages is not None:
            from ..web import serve_inspector

            echo(f"Open {pages[0].access.opening_url}")
            group.start_soon(serve_inspector, *pages, stop)
        say = (lambda port: echo(f"Listening on http://{host}:{port}")) if listening is None else (lambda port: None)
        await gateway.run(stop, say, listening)
        group.cancel_scope.cancel()


def _reload(
    gateway: Gateway, read_options: Callable[[], GatewayOptions], pages: tuple[Inspector, socket.socket] | None
) -> None:
    try:
        options = read_options()
    except InvalidInput as problem:
        log.error("keys and upstreams stay as they were: %s", problem)
        return
    gateway.reload(options)
    if pages is not None:
        pages[0].access.reload(options.keys)
    log.info("keys and upstreams were read again")


class _TextFormatter(ScrubbingFormatter):
    """Shows where an exception was raised, but not its text, which can quote a request."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - a method of logging
        frames = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(ei[2])]
        return f"  {ei[0].__name__} at {' > '.join(frames)}"


class _JsonFormatter(_TextFormatter):
    """One object in each line, with the facts of a request as fields."""

    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", None)
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        fields |= {"event": "request", **facts} if facts else {"event": "log", "message": scrub(record.getMessage())}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info).strip()
        return escape_json(msgspec.json.encode(fields)).decode()
