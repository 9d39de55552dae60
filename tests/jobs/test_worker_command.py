"""Invalid use of `holdfast worker`: one line with the cause and what to do, without secrets."""

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
    ("options", "expected"),
    [
        (
            "--queue amqp://ada:0s7erhaven@host",
            "'amqp://[hidden]@host' is not the URL of a queue: use redis://host:6379",
        ),
        ("--queue redis://ada:0s7erhaven@host:port", "'redis://host:port' is not the URL of a queue"),
        ("--queue redis://host --name a:b", "A queue's name must be a word without a colon"),
        ("--store memory:", "A worker needs a store shared with other processes"),
        ("--store notes.txt", "There is no store at 'notes.txt'"),
        ("--concurrency none", "--concurrency takes a whole number of at least 1"),
        ("--deadline 0", "deadline must be a number of seconds above 0"),
        ("--lock -1", "lock must be a number of seconds above 0"),
        ("--grace soon", "'soon' is not a valid float"),
        ("--health 70000", "'70000' is neither a file nor a port"),
        ("--preset springs", "did you mean 'spring'?"),
        ("--summarizer anthropc:claude", "did you mean anthropic:claude?"),
    ],
)
def test_worker_command_invalid_option_prints_one_line(home: Path, options: str, expected: str) -> None:
    result = CliRunner().invoke(main, ["worker", *options.split()])
    assert result.exit_code == 2
    assert expected in result.stderr and result.stderr.count("\n") == 1
    assert "0s7erhaven" not in result.output


def test_worker_command_refuses_foreign_database(home: Path) -> None:
    (home / "other.db").write_bytes(b"SQLite format 3\0" + b"\0" * 100)
    result = CliRunner().invoke(main, ["worker", "--store", "other.db"])
    assert result.exit_code == 2 and (home / "other.db").stat().st_size == 116


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--store", "sqlite:///missing/sessions.db"), "does not exist"),
        (("--store", "sessions.db", "--health", "missing/health.json"), "name another file"),
    ],
)
def test_worker_command_ends_when_a_resource_cannot_be_opened(
    home: Path, options: tuple[str, ...], expected: str
) -> None:
    command = [sys.executable, "-m", "holdfast", "worker", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ), check=False)
    assert ended.returncode == 2
    assert expected in ended.stderr and "Traceback" not in ended.stderr
