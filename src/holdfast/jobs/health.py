"""Health of a worker: whether it can reach its store and queue, reported in a file or on a port."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

import anyio
import msgspec
from anyio.abc import SocketStream

from ..errors import HoldfastError, InvalidInput
from ..io.files import write_file_atomically
from ..io.prometheus import CONTENT_TYPE, Metric, Sample, labelled, render_metrics
from ..models import scrub
from .runner import JobStats

CHECK_INTERVAL = 5.0
"""Seconds between two checks."""
CHECK_TIMEOUT = 3.0
"""Seconds that one check may take."""
HealthStatus = Literal["starting", "ok", "unreachable", "stopping"]


class Health:
    """The health of a worker. `check` raises if something that the worker needs cannot be reached."""

    def __init__(self, stats: JobStats, check: Callable[[], Awaitable[object]], every: float = CHECK_INTERVAL) -> None:
        self._stats = stats
        self._check = check
        self._every = every
        self._why = ""
        self.status: HealthStatus = "starting"

    @property
    def healthy(self) -> bool:
        return self.status in ("ok", "stopping")

    async def refresh(self) -> None:
        """Runs the check once and updates the status."""
        try:
            with anyio.fail_after(CHECK_TIMEOUT):
                await self._check()
            found: HealthStatus = "ok"
            self._why = ""
        except (HoldfastError, TimeoutError) as problem:
            found = "unreachable"
            self._why = scrub(str(problem)) or f"no answer in {CHECK_TIMEOUT:g} s"
        if self.status != "stopping":
            self.status = found

    async def refresh_forever(self, on_refresh: Callable[[], object]) -> None:
        while True:
            await anyio.sleep(self._every)
            await self.refresh()
            on_refresh()

    def report(self) -> dict[str, Any]:
        """Status and job statistics, as `/status` and the health file have them."""
        return {"status": self.status, "why": self._why, **self._stats.report()}

    def metrics(self) -> str:
        """The same numbers in Prometheus' text format."""
        report = self._stats.report()

        def gauge(name: str, about: str, value: float) -> Metric:
            return Metric(name, "gauge", about, (Sample(value),))

        def counter(name: str, about: str, value: float) -> Metric:
            return Metric(name, "counter", about, (Sample(value),))

        outcomes = labelled("outcome", report["outcomes"])
        return render_metrics(
            (
                gauge("healthy", "1 while the worker reaches its store and queue.", int(self.healthy)),
                gauge("uptime_seconds", "Seconds since the worker started.", report["up_seconds"]),
                gauge("jobs_running", "Compactions that run now.", report["running"]),
                Metric("jobs_total", "counter", "Finished compaction jobs by outcome.", outcomes),
                counter("job_seconds_total", "Time spent in compaction jobs.", report["seconds_total"]),
                gauge("job_seconds_max", "Time of the longest compaction job.", report["seconds_longest"]),
                counter("tokens_saved_total", "Tokens that compactions saved.", report["tokens_saved"]),
                counter("healed_views_total", "Views that differed from their log.", report["healed_views"]),
            )
        )


log = logging.getLogger("holdfast.jobs")
_MAX_REQUEST_BYTES = 8_192


def health_reporter(where: str, health: Health) -> HealthFile | HealthPort:
    """Returns the reporter for a file path or a port: 8080 is on 127.0.0.1, 0.0.0.0:8080 on all interfaces."""
    host, colon, last = where.rpartition(":")
    port = int(last) if last.isascii() and last.isdigit() else None
    if not where or (port is not None and not 0 < port < 65_536):
        raise InvalidInput(f"{where!r} is neither a file nor a port: give a path, or a port as 8080 or 0.0.0.0:8080.")
    if port is None:
        return HealthFile(where, health)
    return HealthPort(host.strip("[]") if colon else "127.0.0.1", port, health)


class HealthFile:
    """Rewritten at every check and removed when the worker ends: an outdated file means that the worker died."""

    def __init__(self, path: str, health: Health) -> None:
        self._path = path
        self._health = health

    async def open(self) -> None:
        await self._health.refresh()
        try:
            self._write()
        except OSError as problem:
            raise InvalidInput(f"{self._path} cannot be written ({problem.strerror}): name another file.") from None

    async def run_forever(self) -> None:
        await self._health.refresh_forever(self._write_if_possible)

    async def close(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)

    def _write_if_possible(self) -> None:
        try:
            self._write()
        except OSError as problem:
            log.warning("%s cannot be written: %s", self._path, problem.strerror)

    def _write(self) -> None:
        write_file_atomically(self._path, msgspec.json.encode(self._health.report()) + b"\n")


class HealthPort:
    """A minimal HTTP server for health probes and `curl`."""

    def __init__(self, host: str, port: int, health: Health) -> None:
        self._host, self._port = host, port
        self._health = health

    async def open(self) -> None:
        await self._health.refresh()
        try:
            self._listener = await anyio.create_tcp_listener(local_host=self._host, local_port=self._port)
        except OSError as problem:
            why = f"Cannot listen on port {self._port} of {self._host} ({problem.strerror or problem})"
            raise InvalidInput(f"{why}: name another port.") from None

    async def run_forever(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._listener.serve, self._answer)
            await self._health.refresh_forever(lambda: None)

    async def close(self) -> None:
        await self._listener.aclose()

    async def _answer(self, stream: SocketStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
            async with stream:
                with anyio.move_on_after(CHECK_TIMEOUT):
                    await stream.send(_http_response(await _request_path(stream), self._health))


async def _request_path(stream: SocketStream) -> str:
    """The path of a GET request; empty for anything else."""
    request = b""
    while b"\r\n\r\n" not in request and len(request) < _MAX_REQUEST_BYTES:
        request += await stream.receive()
    words = request.split(b"\r\n", 1)[0].split()
    return words[1].decode(errors="replace").partition("?")[0] if len(words) == 3 and words[0] == b"GET" else ""


def _http_response(path: str, health: Health) -> bytes:
    status, body = "404 Not Found", dict[str, Any](error="Use /healthz, /status or /metrics.")
    if path == "/healthz":
        status, body = "200 OK" if health.healthy else "503 Service Unavailable", {"status": health.status}
    elif path == "/status":
        status, body = "200 OK", health.report()
    content, kind = msgspec.json.encode(body) + b"\n", "application/json"
    if path == "/metrics":
        status, content, kind = "200 OK", health.metrics().encode(), CONTENT_TYPE
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + content
