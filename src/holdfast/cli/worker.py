"""`holdfast worker`: compacts the sessions of a store in the background, until it is told to stop."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import click

from ..errors import InvalidInput, UnknownSession
from ..hooks import Hooks
from ..hooks.telemetry import Telemetry
from ..jobs import BullMQWorker, QueueSettings, SweepingWorker, Work
from ..jobs.connection import address_of
from ..jobs.health import Health
from ..jobs.health_places import HealthFile, HealthPort, health_place
from ..models import scrub
from ..service import SessionService
from ..settings import Settings, load_settings, open_settled_store, preset_for
from ..signals import stopped_by_signals
from . import store_option
from .limits import Count
from .way import PRESET_NAME

log = logging.getLogger("holdfast.jobs")
IN_MEMORY = "memory:"
_NUMBERS = QueueSettings()
_seconds = partial(click.option, type=float, metavar="SECONDS", show_default=True)


@click.command("worker")
@click.option(
    "--queue",
    envvar="HOLDFAST_QUEUE",
    default=IN_MEMORY,
    metavar="URL",
    help="Where jobs come from: redis://host:6379. Without one the store is looked through for sessions to compact.",
)
@click.option(
    "--name", default=_NUMBERS.name, show_default=True, metavar="NAME", help="The queue's name on its server."
)
@store_option.store
@click.option("--preset", type=PRESET_NAME, metavar="NAME", help="When and how to compact; else as your settings say.")
@click.option("--summarizer", metavar="WHO", help="Who writes summaries: anthropic:MODEL, openai:MODEL, …")
@click.option("--concurrency", type=Count(), default=_NUMBERS.concurrency, show_default=True, help="Jobs at once.")
@_seconds("--deadline", default=_NUMBERS.deadline, help="How long a job may take.")
@_seconds("--lock", default=_NUMBERS.lock, help="After how long a dead worker's job is another's.")
@_seconds("--grace", default=_NUMBERS.grace, help="How long it may go on with a job when it is told to stop.")
@_seconds("--sweep", default=_NUMBERS.sweep, help="How often the store is looked through.")
@click.option("--health", metavar="FILE|PORT", help="Tell how it is in a file, or on a port: /healthz and /metrics.")
def command(
    queue: str, store: str | None, preset: str | None, summarizer: str | None, health: str | None, **numbers: Any
) -> int:
    """Compact the sessions of a store in the background.

    A signal to stop (Ctrl-C, SIGTERM) lets it finish what it has begun; what takes longer than the grace time is given
    back, and a second signal does so at once. Any number of workers may share a queue and a store.
    """
    settings = load_settings(flags={"store": store, "preset": preset, "summarizer": summarizer})
    if settings.store == IN_MEMORY:
        raise InvalidInput("A worker needs a store that others write to: memory: would be its own.")
    store_option.must_not_be_a_strangers(settings.store)
    how = QueueSettings(**numbers)
    work = Work(_service(settings, how.lock), how)
    worker = SweepingWorker(work) if queue == IN_MEMORY else BullMQWorker(queue, work)
    healthy = Health(work.tally, partial(_reach, worker))
    place = None if health is None else health_place(health, healthy)
    _log_to_stderr()
    if work.sessions.model is None:
        log.warning("no summarizer is named: the preset %s does what it can without a model", settings.preset)
    shown = queue if queue == IN_MEMORY else address_of(queue)
    anyio.run(_serve, worker, healthy, place, f"{shown} for {settings.store}, preset {settings.preset}")
    return 0


async def _serve(
    worker: SweepingWorker | BullMQWorker, health: Health, place: HealthFile | HealthPort | None, on: str
) -> None:
    stop = anyio.Event()

    def stops() -> None:
        health.status = "stopping"
        stop.set()

    async with worker.work.sessions as sessions:
        await _reach_store(sessions)
        if place is not None:
            await place.open()
        log.info("working on %s", on)
        try:
            async with stopped_by_signals(stops), anyio.create_task_group() as group:
                if place is not None:
                    group.start_soon(place.keep_on)
                await worker.run(stop)
                group.cancel_scope.cancel()
        finally:
            if place is not None:
                await place.close()
    log.info("stopped: %s", health.facts())


async def _reach(worker: SweepingWorker | BullMQWorker) -> None:
    await worker.ping()
    await _reach_store(worker.work.sessions)


async def _reach_store(sessions: SessionService) -> None:
    with suppress(UnknownSession):
        await sessions.get("-")


def _service(settings: Settings, lease: float) -> SessionService:
    """The hooks are those of the settings; and spans and metrics, where OpenTelemetry is installed."""
    listen: tuple[Telemetry, ...] = ()
    with suppress(InvalidInput):
        listen = (Telemetry(),)
    return SessionService(
        open_settled_store(settings),
        preset=preset_for(settings),
        summarizer=settings.summarizer or settings.model,
        hooks=Hooks(settings.hooks.before, settings.hooks.after, settings.hooks.session_start, listen),
        lease=lease,
        window=settings.window,
    )


class _Secretless(logging.Formatter):
    """Whatever is logged, and by whom, no secret of an address gets out."""

    def format(self, record: logging.LogRecord) -> str:
        return scrub(super().format(record))


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Secretless("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("holdfast")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
