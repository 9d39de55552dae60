"""Commands do what their help and the docs say: examples, existing files, missing stores, model names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_files import Run, conversation, write_json
from cli_home import make_home

Refused = Callable[..., str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_home(tmp_path, monkeypatch)


def test_compact_does_not_replace_an_existing_file_without_force(run: Run, refused: Refused, tmp_path: Path) -> None:
    file, other = write_json(tmp_path / "in.json", conversation("openai-chat", 8)), tmp_path / "letters.txt"
    other.write_text("Dear Ada")
    assert "already exists: choose another output file, or use --force" in refused("compact", file, "-o", other)
    assert other.read_text() == "Dear Ada"
    assert run("compact", file, "-o", other, "--force").exit_code == 0
    assert other.read_text() != "Dear Ada"


def test_verify_checks_the_example(run: Run) -> None:
    done = run("verify", "example:support")
    assert done.exit_code == 0 and "1 session of example:support: all consistent." in done.output


def test_import_takes_the_example(run: Run) -> None:
    done = run("import", "example:support")
    assert done.exit_code == 0 and "1 imported" in done.output


def test_doctor_fails_for_a_store_that_does_not_exist(run: Run, tmp_path: Path) -> None:
    done = run("doctor", tmp_path / "nosuch.db")
    assert done.exit_code == 1 and "does not exist" in " ".join(done.stdout.split())
    assert not (tmp_path / "nosuch.db").exists()


@pytest.mark.parametrize("key", ["model", "summarizer"])
def test_config_set_refuses_a_model_that_cannot_be_named(run: Run, refused: Refused, key: str) -> None:
    assert "anthropic:MODEL" in refused("config", "set", key, "foo")
    assert run("config", "set", key, "anthropic:claude-sonnet-5").exit_code == 0


def test_bad_role_is_called_a_bad_role(refused: Refused, tmp_path: Path) -> None:
    file = write_json(tmp_path / "in.json", [{"role": "wizard", "content": "hi"}])
    assert "has the role 'wizard': use one of" in refused("compact", file)
