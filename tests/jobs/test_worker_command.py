"""What a person can get wrong with `holdfast worker`: one line that says what to do, and no secret in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from holdfast.cli import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable, folder in (("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--queue amqp://ada:0s7erhaven@host", "There is no queue at 'amqp://[hidden]@host': use redis://host:6379"),
        ("--queue redis://ada:0s7erhaven@host:port", "'redis://host:port' is no address of a queue"),
        ("--queue redis://host --name a:b", "A queue's name is a word without a colon"),
        ("--store memory:", "A worker needs a store that others write to"),
        ("--store notes.txt", "There is no store at 'notes.txt'"),
        ("--concurrency none", "--concurrency takes a whole number of at least 1"),
        ("--deadline 0", "deadline must be a number of seconds above 0"),
        ("--lock -1", "lock must be a number of seconds above 0"),
        ("--grace soon", "'soon' is not a valid float"),
        ("--health 70000", "Health is told in a file or on a port"),
        ("--preset springs", "did you mean 'spring'?"),
        ("--summarizer anthropc:claude", "did you mean anthropic:claude?"),
    ],
)
def test_bad_input_gets_one_clear_line(home: Path, options: str, says: str) -> None:
    result = CliRunner().invoke(main, ["worker", *options.split()])
    assert result.exit_code == 2
    assert says in result.stderr and result.stderr.count("\n") == 1
    assert "0s7erhaven" not in result.output


def test_another_programs_database_is_left_alone(home: Path) -> None:
    (home / "other.db").write_bytes(b"SQLite format 3\0" + b"\0" * 100)
    result = CliRunner().invoke(main, ["worker", "--store", "other.db"])
    assert result.exit_code == 2 and (home / "other.db").stat().st_size == 116


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--store", "sqlite:///missing/sessions.db"), "does not exist"),
        (("--store", "sessions.db", "--health", "missing/health.json"), "name another file"),
    ],
)
def test_what_cannot_be_opened_ends_it_at_once(home: Path, options: tuple[str, ...], says: str) -> None:
    command = [sys.executable, "-m", "holdfast", "worker", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ), check=False)
    assert ended.returncode == 2
    assert says in ended.stderr and "Traceback" not in ended.stderr
