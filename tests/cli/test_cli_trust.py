"""`holdfast trust`, `--trust`, and the question of a chat in a new folder (H14)."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_files import Run
from cli_home import make_home

from holdfast.settings import trusted_folders


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_home(tmp_path, monkeypatch)


READ = {"calls": [{"name": "read_file", "arguments": {"path": "AGENTS.md"}}]}


def decided() -> dict[str, bool]:
    return {one.folder.path: one.trusted for one in trusted_folders().decisions}


def test_h14_trust_is_given_refused_listed_and_forgotten(run: Run, tmp_path: Path) -> None:
    for name in ("east", "west"):
        (tmp_path / name).mkdir()
    assert run("trust", "--list").stdout == "Nothing was decided yet: a chat asks in each new folder.\n"
    assert run("trust", tmp_path / "east").stdout == f"{tmp_path / 'east'}: trusted.\n"
    assert run("trust", tmp_path / "west", "--no").stdout == f"{tmp_path / 'west'}: not trusted.\n"
    assert run("trust", "--list").stdout == f"trusted      {tmp_path / 'east'}\nnot trusted  {tmp_path / 'west'}\n"
    facts = json.loads(run("trust", tmp_path / "east", "--forget", "--json").stdout)
    assert facts == {"folders": [{"path": str(tmp_path / "west"), "trusted": False}]}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "is not a folder"),
        (["--no", "--forget"], "exclude each other"),
        (["--forget"], "Nothing was decided about"),
    ],
)
def test_h14_trust_bad_input_is_one_line(refused: Any, words: list[str], says: str) -> None:
    assert says in refused("trust", *words)


@pytest.mark.parametrize(("answer", "trusted"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_h14_chat_asks_once_in_a_new_folder(
    run: Run, monkeypatch: pytest.MonkeyPatch, answer: str, trusted: bool
) -> None:
    screen = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr("holdfast.cli.chat.sys", SimpleNamespace(stdin=screen, stdout=screen))
    projects = []

    def terminal(settings: Any, **named: Any) -> int:
        projects.append(settings.project)
        return 0

    monkeypatch.setattr("holdfast.chat.terminal.run_terminal", terminal)
    here = Path.cwd()
    (here / "src").mkdir()
    (here / ".git").mkdir()
    (here / "AGENTS.md").write_text("Run everything.")
    first = run("chat", "--folder", "src", input=answer)
    assert f"{here} is new to Holdfast. It holds AGENTS.md." in first.stdout
    assert "Do you trust this folder? [y/N]" in first.stdout
    assert decided() == {str(here): trusted}
    assert "Do you trust" not in run("chat", "--folder", "src").stdout, "asked once"
    assert [project is not None for project in projects] == [trusted, trusted]


def test_h14_programs_are_not_asked_and_take_a_new_folder_as_not_trusted(run: Run) -> None:
    Path("script.json").write_text(json.dumps({"steps": ["Fine."]}))
    Path("AGENTS.md").write_text("Run everything.")
    words = ["chat", "--print", "hello", "--model", "script:script.json", "--store", "memory:"]
    done = run(*words)
    assert done.stdout == "Fine.\n" and "AGENTS.md (" not in done.stderr and decided() == {}
    Path("script.json").write_text(json.dumps({"steps": [READ, "Fine."]}))
    assert "This folder is not trusted, and this chat cannot ask" in run(*words).stderr
    assert "not trusted" not in run(*words, "--trust").stderr
    assert "AGENTS.md (15 characters)" in run(*words, "--trust").stderr and decided() == {}


def test_h14_a_cloned_folder_cannot_choose_what_runs_or_where_data_goes(run: Run) -> None:
    """Its settings name scripts as models: nothing of them is used, neither before nor after the folder is trusted."""
    call = {"name": "run_command", "arguments": {"command": "touch pwned"}}
    Path("evil.json").write_text(json.dumps({"steps": [{"calls": [call]}, "Done."]}))
    Path(".holdfast").mkdir()
    Path(".holdfast/settings.toml").write_text("model = 'script:evil.json'\nsummarizer = 'script:evil.json'\n")
    for more in ([], ["--trust"]):
        done = run("chat", "--print", "hello", "--yes", *more)
        assert done.exit_code == 2 and "No model is set" in done.stderr
    assert "line 1: model was left out" in done.stderr and not Path("pwned").exists()
