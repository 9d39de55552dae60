"""`holdfast migrate`: creates tables once; `--check` changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cli_files import Run

from holdfast.stores.postgres.schema import load_migrations


@pytest.fixture
def empty(new_database: Callable[[], str]) -> str:
    return new_database()


def test_migrate_creates_tables_once(run: Run, empty: str) -> None:
    newest = len(load_migrations())
    missing = run("migrate", empty, "--check")
    assert missing.exit_code == 1
    assert missing.stdout.splitlines()[-1].endswith(f" lacks {newest} migrations.")
    assert run("migrate", empty, "--check").exit_code == 1, "nothing was changed"
    made = run("migrate", empty)
    assert made.exit_code == 0
    assert made.stdout.startswith(f"0001  {load_migrations()[0].description}\n")
    assert f"now at schema {newest}" in made.stdout
    for arguments in ((empty,), (empty, "--check")):
        again = run("migrate", *arguments)
        assert (again.exit_code, "is up to date" in again.stdout) == (0, True)


def test_migrate_error_is_one_line_without_password(refused: Callable[..., str], empty: str) -> None:
    assert "postgresql://user:password@host" in refused("migrate", "agents.db")
    nowhere = refused("migrate", "postgresql://ann:hunter22@127.0.0.1:1/agents")
    assert "127.0.0.1:1/agents cannot be reached" in nowhere
    assert "create the database first" in refused("migrate", empty.replace("/holdfast_test_", "/no_such_"))
    assert "hunter22" not in nowhere
