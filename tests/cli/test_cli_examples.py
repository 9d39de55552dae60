"""Bundled sessions: `holdfast compact example` needs no file."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest
from cli_files import Run, loaded

from holdfast import check

FOLDER = resources.files("holdfast.transcripts") / "examples"
NAMES = (
    sorted(file.name.partition(".")[0] for file in FOLDER.iterdir() if ".json" in file.name) if FOLDER.is_dir() else []
)
if not NAMES:
    pytest.skip("no examples are shipped", allow_module_level=True)


def test_example_compacts_without_options(run: Run) -> None:
    result = run("compact", "example")
    assert result.exit_code == 0
    assert "Compacted:" in result.stdout
    assert run("compact", "example", "--json").stdout == run("compact", "example:harbor", "--json").stdout


@pytest.mark.parametrize("name", NAMES)
def test_example_is_valid_and_compacts(name: str, run: Run) -> None:
    whole = loaded(run("inspect", f"example:{name}", "--json").stdout)
    assert whole["problems"] == []
    facts = loaded(run("compact", f"example:{name}", "--budget", whole["tokens"] // 2, "--json").stdout)
    assert (facts["outcome"], facts["valid"]) == ("compacted", True)
    assert check(facts["messages"], facts["format"] or "openai-chat") == []


@pytest.mark.parametrize("command", [["compact"], ["inspect"], ["search", "x"], ["read", "1"], ["verify"]])
def test_misspelled_example_is_suggested(refused: Callable[..., str], command: list[str]) -> None:
    assert refused(*command, "exmaple") == "holdfast: There is no file exmaple: did you mean 'example'?\n"
    assert refused(*command, "exmaple.json") == "holdfast: There is no file exmaple.json: check the path.\n"


def test_example_file_is_not_overwritten(run: Run) -> None:
    with resources.as_file(FOLDER) as folder:
        path = next(Path(folder).glob("harbor.json*"))
        before = path.read_bytes()
        assert run("compact", "example", "-o", path).exit_code == 2
        assert path.read_bytes() == before
