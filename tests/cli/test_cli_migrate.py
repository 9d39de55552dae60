"""`holdfast migrate`: tables are made once, and `--check` changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cli_files import Run

from holdfast.stores.postgres.migrating import migrations


@pytest.fixture
def empty(new_database: Callable[[], str]) -> str:
    return new_database()


def test_it_makes_what_is_missing_and_then_nothing(run: Run, empty: str) -> None:
    newest = len(migrations())
    missing = run("migrate", empty, "--check")
    assert (missing.exit_code, missing.stdout.splitlines()[-1][-len(" lacks 1 migration.") :]) == (
        1,
        " lacks 1 migration.",
    )
    assert run("migrate", empty, "--check").exit_code == 1, "nothing was changed"
    made = run("migrate", empty)
    assert made.exit_code == 0
    assert made.stdout.startswith(f"0001  {migrations()[0].why}\n")
    assert f"now at schema {newest}" in made.stdout
    for arguments in ((empty,), (empty, "--check")):
        again = run("migrate", *arguments)
        assert (again.exit_code, "is up to date" in again.stdout) == (0, True)


def test_what_is_wrong_is_one_line_without_secrets(refused: Callable[..., str], empty: str) -> None:
    assert "postgresql://user:password@host" in refused("migrate", "agents.db")
    nowhere = refused("migrate", "postgresql://ann:hunter22@127.0.0.1:1/agents")
    assert "127.0.0.1:1/agents cannot be reached" in nowhere
    assert "create the database first" in refused("migrate", empty.replace("/holdfast_test_", "/no_such_"))
    assert "hunter22" not in nowhere
