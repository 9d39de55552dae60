"""`holdfast doctor`: every line has a status and advice."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_files import Run

from holdfast.stores.postgres import doctor
from servers.server import Server
from stores.databases import raw_connection

SOUND: dict[str, Any] = {
    "version": 160_004,
    "version_text": "16.4",
    "encoding": "UTF8",
    "synchronous_commit": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "most": 100,
    "used": 5,
    "standby": False,
    "in_the_clear": False,
    "plpgsql": 1,
    "locale": "C",
}


def states(result: Any) -> dict[str, str]:
    return {finding["name"]: finding["state"] for finding in json.loads(result.stdout)["findings"]}


def test_doctor_healthy_database_is_ok(run: Run, postgres: str) -> None:
    result = run("doctor", postgres, "--json")
    found = states(result)
    assert result.exit_code == 0
    assert {"connection", "version", "database", "connections", "clock", "migrations", "rights"} <= set(found)
    assert {state for name, state in found.items() if name != "durability"} == {"ok"}
    shown = run("doctor", postgres)
    assert (shown.exit_code, shown.stdout.startswith("ok  ")) == (0, True)


def test_doctor_database_without_tables_is_problem(run: Run, new_database: Callable[[], str]) -> None:
    result = run("doctor", new_database())
    assert result.exit_code == 1
    assert "→ Run `holdfast migrate` on it." in result.stdout


def test_doctor_unreachable_database_hides_password(run: Run) -> None:
    for form in ((), ("--json",)):
        result = run("doctor", "postgresql://ann:hunter22@127.0.0.1:1/agents", *form)
        assert result.exit_code == 1
        assert "127.0.0.1:1/agents" in result.stdout
        assert "hunter22" not in result.stdout + result.stderr


def test_doctor_lists_missing_privileges(run: Run, postgres: str, postgres_server: Server) -> None:
    async def make(statement: str) -> None:
        async with raw_connection(postgres) as connection:
            await connection.execute(statement)

    asyncio.run(make("CREATE ROLE holdfast_stranger LOGIN"))
    try:
        result = run("doctor", postgres.replace("postgres:@", "holdfast_stranger:@"), "--json")
    finally:
        asyncio.run(make("DROP ROLE holdfast_stranger"))
    assert states(result)["tables"] == "problem"
    assert "grant the user USAGE on the schema holdfast" in result.stdout


@pytest.mark.parametrize(
    ("fact", "name", "state"),
    [
        ({}, None, "ok"),
        ({"version": 120_000}, "version", "problem"),
        ({"standby": True}, "role", "problem"),
        ({"encoding": "SQL_ASCII"}, "database", "problem"),
        ({"plpgsql": 0}, "database", "problem"),
        ({"fsync": "off"}, "durability", "warning"),
        ({"full_page_writes": "off"}, "durability", "warning"),
        ({"synchronous_commit": "off"}, "durability", "warning"),
        ({"synchronous_commit": "remote_apply"}, None, "ok"),
        ({"autovacuum": "off"}, "vacuum", "warning"),
        ({"used": 95}, "connections", "warning"),
        ({"in_the_clear": True}, "encryption", "warning"),
    ],
)
def test_doctor_checks_server_settings(fact: dict[str, Any], name: str | None, state: str) -> None:
    found = [finding for finding in doctor._check_server(SOUND | fact) if finding.state != "ok"]
    assert [(finding.name, finding.state) for finding in found] == ([] if name is None else [(name, state)])
    assert all(finding.advice for finding in found)


@pytest.mark.parametrize(("seconds", "state"), [(0.2, "ok"), (-0.9, "ok"), (5, "warning"), (-3600, "problem")])
def test_doctor_checks_clock_difference(seconds: float, state: str) -> None:
    assert doctor._check_clock(seconds).state == state


def test_doctor_checks_file_stores(run: Run, tmp_path: Path, make_store: Callable[..., Path]) -> None:
    missing = run("doctor", HOLDFAST_STORE=str(tmp_path / "none.db"))
    assert (missing.exit_code, "created on first use" in missing.stdout) == (0, True)
    assert not (tmp_path / "none.db").exists()
    for name in ("agent.db", "sessions"):
        assert "opens, with 1 session" in " ".join(run("doctor", make_store(name)).stdout.split())
    (tmp_path / "notes.txt").write_text("hello")
    assert run("doctor", tmp_path / "notes.txt").exit_code == 1


def damage_row(store: Path) -> None:
    with closing(sqlite3.connect(store / "agent.db")) as connection, connection:
        connection.execute("UPDATE events SET body = replace(body, 'berth 3', 'berth 9') WHERE seq = 13")


def damage_pages(store: Path) -> None:
    path = store / "agent.db"
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))


def damage_line(store: Path) -> None:
    path = next(store.glob("*.jsonl"))
    path.write_text(path.read_text().replace("berth 3", "berth 9", 1))


def lose_header(store: Path) -> None:
    path = next(store.glob("*.jsonl"))
    (store / "other.jsonl").write_text(path.read_text().partition("\n")[2])


@pytest.mark.parametrize("damage", [damage_row, damage_pages, damage_line, lose_header])
def test_doctor_finds_the_damage_that_verify_finds(
    damage: Callable[[Path], None], run: Run, make_store: Callable[..., Path]
) -> None:
    database = damage in (damage_row, damage_pages)
    store = make_store("agent.db" if database else "logs")
    assert run("doctor", store).exit_code == run("verify", store).exit_code == 0
    damage(store.parent if database else store)
    assert run("verify", store).exit_code == 1
    result = run("doctor", store, "--json")
    assert (result.exit_code, states(result)) == (1, {"store": "problem"})
    assert "holdfast verify" in result.stdout or "restore a backup" in result.stdout


MISTYPED = (
    "postgresq://ann:hunter22@host/db",
    "postgres+x://ann:hunter22@h/db",
    "postgresql:/ann:hunter22@host/db",
    "postgresql//ann:hunter22@host/db",
    "mysql://ann:hun/hunter22@h/db?password=hunter22",
    "postgresq://host/db?user=x&password=hunter22",
    "postgresq://ann:p@hunter22@host/db",
)
WITH_ADDRESS: tuple[tuple[str, ...], ...] = (
    *(("doctor", "URL"), ("doctor", "URL", "--json"), ("verify", "URL"), ("inspect", "URL"), ("compact", "URL")),
    *(("search", "word", "URL"), ("read", "#1", "URL"), ("restore", "#1", "URL"), ("undo", "URL"), ("fork", "URL")),
    *(("import", "URL"), ("import", "example", "--store", "URL"), ("export", "x", "--store", "URL"), ("lab", "URL")),
    *(("web", "URL"), ("migrate", "URL"), ("config", "--json")),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("address", MISTYPED)
def test_mistyped_address_of_a_store_shows_no_password_and_creates_no_folder(
    address: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in WITH_ADDRESS:
        if address.startswith("postgresql//") and "import" in command:
            continue  # the path of a folder, which an import creates
        result = run(
            *(address if word == "URL" else word for word in command),
            HOLDFAST_STORE=address if command[0] == "config" else str(tmp_path / "a.db"),
        )
        assert "hunter22" not in result.stdout + result.stderr, command
    assert {path.name for path in tmp_path.iterdir()} <= {"a.db", "a.db-wal", "a.db-shm"}


def test_doctor_default_is_store_in_settings(run: Run, tmp_path: Path) -> None:
    result = run("doctor", "--json", HOLDFAST_STORE=str(tmp_path / "mine.db"))
    assert json.loads(result.stdout)["store"] == str(tmp_path / "mine.db")


def test_doctor_healthy_queue_is_ok(run: Run, tmp_path: Path, valkey: str) -> None:
    result = run("doctor", "--queue", valkey, "--json", HOLDFAST_STORE=str(tmp_path / "a.db"))
    assert (result.exit_code, states(result)) == (0, {"store": "ok", "queue": "ok"})


def test_doctor_queue_with_eviction_is_problem(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from redis.asyncio import Redis

    async def answers(self: Any) -> bool:
        return True

    async def about(self: Any) -> dict[str, Any]:
        return {"maxmemory_policy": "allkeys-lru", "aof_enabled": 0}

    monkeypatch.setattr(Redis, "ping", answers)
    monkeypatch.setattr(Redis, "info", about)
    result = run("doctor", "--queue", "redis://h:1", "--json", HOLDFAST_STORE=str(tmp_path / "a.db"))
    assert result.exit_code == 1
    assert states(result) == {"store": "ok", "queue": "ok", "queue memory": "problem", "queue file": "warning"}


def test_doctor_unreachable_queue_hides_password(run: Run, refused: Callable[..., str], tmp_path: Path) -> None:
    result = run("doctor", tmp_path / "a.db", "--queue", "redis://ann:hunter22@127.0.0.1:1/0")
    assert (result.exit_code, "does not answer" in result.stdout) == (1, True)
    assert "hunter22" not in result.stdout
    assert "redis://host:6379" in refused("doctor", tmp_path / "a.db", "--queue", "amqp://h")
