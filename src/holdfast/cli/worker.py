"""`holdfast worker`: compacts the sessions of a store in the background until it is stopped."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import click

from ..compaction import Policy
from ..errors import InvalidInput, UnknownSession
from ..hooks import Hooks
from ..hooks.telemetry import Telemetry
from ..io.processes import stop_on_signals
from ..jobs import BullMQWorker, JobRunner, QueueSettings, SweepingWorker
from ..jobs.bullmq import public_address
from ..jobs.health import Health, HealthFile, HealthPort, health_reporter
from ..models import scrub
from ..sessions import SessionService
from ..sessions.lease import LEASE_SECONDS
from ..settings import Settings, chosen_preset, load_settings, open_configured_store
from . import options
from .options import PRESET_NAME, CountType
from .output import LogFormatter
from .stores import refuse_foreign_database

log = logging.getLogger("holdfast.jobs")
IN_MEMORY = "memory:"
_DEFAULTS = QueueSettings()
_seconds_option = partial(click.option, type=float, metavar="SECONDS", show_default=True)


@click.command("worker")
@click.option(
    "--queue",
    envvar="HOLDFAST_QUEUE",
    default=IN_MEMORY,
    metavar="URL",
    help="Queue to take jobs from: redis://host:6379. Without one, scan the store for sessions to compact.",
)
@click.option("--name", default=_DEFAULTS.name, show_default=True, metavar="NAME", help="Queue name on its server.")
@options.store_option
@click.option("--preset", type=PRESET_NAME, metavar="NAME", help="Compaction preset; default: from your settings.")
@click.option("--summarizer", metavar="MODEL", help="Model that writes summaries: anthropic:NAME, openai:NAME, …")
@click.option(
    "--concurrency",
    type=CountType(),
    default=_DEFAULTS.concurrency,
    show_default=True,
    help="Number of concurrent jobs.",
)
@_seconds_option("--deadline", default=_DEFAULTS.deadline, help="Timeout of a job.")
@_seconds_option("--lock", default=_DEFAULTS.lock, help="Time before a crashed worker's job is retried.")
@_seconds_option("--grace", default=_DEFAULTS.grace, help="Time to finish running jobs after a stop signal.")
@_seconds_option("--sweep", default=_DEFAULTS.sweep, help="Interval between scans of the store.")
@click.option("--health", metavar="FILE|PORT", help="Write health to FILE or serve it on PORT (/healthz and /metrics).")
def worker_command(
    queue: str, store: str | None, preset: str | None, summarizer: str | None, health: str | None, **numbers: Any
) -> int:
    """Compact the sessions of a store in the background.

    On Ctrl-C or SIGTERM the worker finishes its running jobs; jobs that exceed the grace time, or a second signal,
    are returned to the queue. Several workers may share a queue and a store.
    """
    settings = load_settings(flags={"store": store, "preset": preset, "summarizer": summarizer})
    if settings.store == IN_MEMORY:
        raise InvalidInput("A worker needs a store shared with other processes: memory: is private to it.")
    refuse_foreign_database(settings.store)
    how = QueueSettings(**numbers)
    work = JobRunner(
        build_service(
            settings,
            settings.summarizer or settings.model,
            preset=chosen_preset(settings),
            lease=min(how.lock, LEASE_SECONDS),
        ),
        how,
    )
    worker = SweepingWorker(work) if queue == IN_MEMORY else BullMQWorker(queue, work)
    healthy = Health(work.stats, partial(_ping_worker, worker))
    place = None if health is None else health_reporter(health, healthy)
    log_to_stderr()
    if work.sessions.model is None:
        log.warning("no summarizer is set: summaries are written without a model")
    shown = queue if queue == IN_MEMORY else public_address(queue)
    by = "the policy of each session" if work.sessions.preset is None else f"preset {settings.preset}"
    anyio.run(_run_worker, worker, healthy, place, f"{shown} for {settings.store}, {by}")
    return 0


async def _run_worker(
    worker: SweepingWorker | BullMQWorker, health: Health, place: HealthFile | HealthPort | None, on: str
) -> None:
    stop = anyio.Event()

    def stops() -> None:
        health.status = "stopping"
        stop.set()

    async with worker.runner.sessions as sessions:
        await _ping_store(sessions)
        if place is not None:
            await place.open()
        log.info("working on %s", on)
        try:
            async with stop_on_signals(stops), anyio.create_task_group() as group:
                if place is not None:
                    group.start_soon(place.run_forever)
                await worker.run(stop)
                group.cancel_scope.cancel()
        finally:
            if place is not None:
                await place.close()
    log.info("stopped: %s", health.report())


async def _ping_worker(worker: SweepingWorker | BullMQWorker) -> None:
    await worker.ping()
    await _ping_store(worker.runner.sessions)


async def _ping_store(sessions: SessionService) -> None:
    with suppress(UnknownSession):
        await sessions.get("-")


def build_service(
    settings: Settings, summarizer: str | None, *, preset: Policy | None, lease: float = LEASE_SECONDS
) -> SessionService:
    """Service with hooks from the settings, and telemetry if OpenTelemetry is installed."""
    listen: tuple[Telemetry, ...] = ()
    with suppress(InvalidInput):
        listen = (Telemetry(),)
    return SessionService(
        open_configured_store(settings),
        preset=preset,
        summarizer=summarizer,
        hooks=Hooks(settings.hooks.before, settings.hooks.after, settings.hooks.session_start, listen),
        lease=lease,
        window=settings.window,
    )


class ScrubbingFormatter(LogFormatter):
    """Log formatter that removes secrets from addresses in every record."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return scrub(super().format(record))


def log_to_stderr(formatter: logging.Formatter | None = None) -> None:
    """Logs to stderr, without secrets."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter or ScrubbingFormatter())
    logger = logging.getLogger("holdfast")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
