"""`holdfast presets`: text and JSON."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cli_files import Run, loaded

from holdfast import preset
from holdfast.compaction.presets import PRESETS


def test_presets_lists_all(run: Run) -> None:
    result = run("presets")
    assert result.exit_code == 0 and "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    output = " ".join(result.stdout.split())
    for policy in map(preset, PRESETS):
        assert f"{policy.name} {policy.about} compacts {policy.figures['compacts']} keeps" in output


@pytest.mark.parametrize("name", PRESETS)
def test_presets_shows_one_in_full(name: str, run: Run) -> None:
    output = " ".join(run("presets", name).stdout.split())
    for label, words in preset(name).figures.items():
        assert f"{label} {words}" in output
    assert f"window {preset(name).usual_window:,} tokens" in output
    assert f"--preset {name}" in output


def test_presets_json(run: Run) -> None:
    listed = loaded(run("presets", "--json").stdout)["presets"]
    assert [preset["name"] for preset in listed] == list(PRESETS)
    codex = loaded(run("presets", "codex", "--json").stdout)
    assert codex in listed
    assert codex == {
        "name": "codex",
        "about": preset("codex").about,
        "figures": preset("codex").figures,
        "window": 272_000,
    }


def test_presets_accepts_dashes(run: Run) -> None:
    assert run("presets", "claude-code").stdout == run("presets", "claude_code").stdout


def test_presets_unknown_name_is_refused(refused: Callable[..., str]) -> None:
    assert "did you mean 'codex'?" in refused("presets", "codx")
    assert "Use one of holdfast, spring, pi," in refused("presets", "xyzzy")


@pytest.mark.parametrize("columns", [1, 20, 40, 200])
def test_presets_fits_any_width(columns: int, run: Run) -> None:
    assert run("presets", COLUMNS=str(columns)).exit_code == 0
