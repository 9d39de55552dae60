"""What a worker tells of itself: in a file that goes when it ends, or on a port that understands little."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import anyio
import pytest
from harbour import until

from holdfast.errors import InvalidInput
from holdfast.jobs import QueueError, Tally
from holdfast.jobs.health import Health
from holdfast.jobs.health_places import HealthFile, HealthPort, health_place

pytestmark = pytest.mark.anyio


class Needs:
    """Something that a worker needs, and that may be away."""

    away = False

    async def __call__(self) -> None:
        if self.away:
            raise QueueError("The queue at redis://ada:0s7erhaven@host cannot be reached.")


async def test_a_file_is_kept_up_to_date_and_goes_at_the_end(tmp_path: Path) -> None:
    needs, path = Needs(), tmp_path / "health.json"
    place = health_place(str(path), Health(Tally(), needs, every=0.01))
    assert isinstance(place, HealthFile)
    await place.open()
    assert json.loads(path.read_text())["status"] == "ok"
    async with anyio.create_task_group() as group:
        group.start_soon(place.keep_on)
        needs.away = True
        await until(lambda: json.loads(path.read_text())["status"] == "unreachable")
        assert "0s7erhaven" not in path.read_text()
        needs.away = False
        await until(lambda: json.loads(path.read_text())["status"] == "ok")
        group.cancel_scope.cancel()
    await place.close()
    assert not path.exists()


async def test_a_file_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        await HealthFile(str(tmp_path / "no" / "folder"), Health(Tally(), Needs())).open()


async def test_what_takes_too_long_to_answer_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.jobs.health.PATIENCE", 0.01)
    health = Health(Tally(), anyio.sleep_forever)
    await health.look()
    assert not health.well and health.facts()["why"] == "no answer in 0.01 s"


async def test_one_that_stops_is_well() -> None:
    health = Health(Tally(), Needs())
    assert not health.well
    health.status = "stopping"
    await health.look()
    assert health.status == "stopping" and health.well


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK"),
        (b"GET /metrics?now HTTP/1.0\r\n\r\n", b"200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /healthz HTTP/1.1\r\n\r\n", b"404"),
        (b"\xff\xfe\r\n\r\n", b"404"),
        (b"GET /" + b"x" * 20_000, b"404"),
    ],
)
async def test_a_port_answers_whoever_asks_in_http(asked: bytes, status: bytes) -> None:
    place = await _listening()
    async with anyio.create_task_group() as group:
        group.start_soon(place.keep_on)
        async with await anyio.connect_tcp("127.0.0.1", place._port) as stream:
            await stream.send(asked)
            answer = await stream.receive()
        assert answer.startswith(b"HTTP/1.1 " + status)
        json.loads(answer.partition(b"\r\n\r\n")[2])
        async with await anyio.connect_tcp("127.0.0.1", place._port):
            pass  # somebody who asks nothing and goes
        group.cancel_scope.cancel()
    await place.close()


async def test_a_port_that_is_taken_is_told_at_the_start() -> None:
    place = await _listening()
    with pytest.raises(InvalidInput, match=r"cannot be listened on .*name another"):
        await HealthPort("127.0.0.1", place._port, Health(Tally(), Needs())).open()
    await place.close()


async def _listening() -> HealthPort:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = health_place(str(free.getsockname()[1]), Health(Tally(), Needs()))
    assert isinstance(place, HealthPort)
    await place.open()
    return place


def test_where_it_is_told() -> None:
    health = Health(Tally(), Needs())
    for where, host, port in (("8080", "127.0.0.1", 8080), ("0.0.0.0:80", "0.0.0.0", 80), ("[::1]:80", "::1", 80)):
        place = health_place(where, health)
        assert isinstance(place, HealthPort) and (place._host, place._port) == (host, port)
    for where in ("", "0", "host:99999"):
        with pytest.raises(InvalidInput, match="in a file or on a port"):
            health_place(where, health)


def test_a_tally_counts_what_was_done() -> None:
    tally = Tally()
    with tally.job():
        assert tally.facts()["running"] == 1
    tally.note("compacted", 400)
    tally.note("failed")
    facts = tally.facts()
    assert (facts["running"], facts["jobs"], facts["tokens_saved"]) == (0, 2, 400)
    assert facts["outcomes"] == {"compacted": 1, "failed": 1}
    assert 0 <= facts["seconds_longest"] <= facts["seconds_total"] <= facts["up_seconds"]
