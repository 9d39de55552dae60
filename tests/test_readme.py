"""README.md is short and true; figures of the benchmarks page are what its commands print; links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast import compact
from holdfast.transcripts import read_transcript
from holdfast.transcripts.examples import example_path

ROOT = Path(__file__).parents[1]
DEVELOPMENT_PACKAGES = ("numpy", "psutil", "uvloop", "langchain", "langchain_core", "pytest", "hypothesis", "pyppmd")
README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def holdfast(*arguments: str) -> str:
    command = [sys.executable, "-m", "holdfast", *arguments]
    wide = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, check=True, timeout=250).stdout


def figures(text: str) -> dict[str, list[str]]:
    """The rows of a lab table, without the times."""
    rows = re.findall(r"^(tail window|head and tail|LangChain \w+|Holdfast ledger) +(.+?) *$", text, re.MULTILINE)
    return {name: columns.split()[:-1] for name, columns in rows}


def test_readme_is_short_and_its_picture_and_first_command_come_early() -> None:
    lines = README.splitlines()
    assert len(lines) <= 150
    assert next(number for number, line in enumerate(lines) if line.startswith("    python3 -m venv")) < 12
    assert README.count("![") == 4, "three badges, one picture"


def test_readme_badges_say_what_the_project_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    badges = {
        name: (ROOT / "docs/assets/badges" / f"{name}.svg").read_text() for name in ("python", "license", "types")
    }
    versions = re.findall(r"Python :: (3\.\d+)", " ".join(project["project"]["classifiers"]))
    assert f">{versions[0]} – {versions[-1]}<" in badges["python"]
    assert f">{project['project']['license']}<" in badges["license"]
    assert ">mypy strict<" in badges["types"] and project["tool"]["mypy"]["strict"] is True


def test_readme_result_is_what_its_code_prints() -> None:
    """With the bundled session and one more message of the user, as a conversation that goes on has."""
    messages = [*read_transcript(example_path()).messages, {"role": "user", "content": "Thank you. What is open?"}]
    assert f"print(result)  # {compact(messages, budget=100_000)}\n" in README


def test_readme_lab_figures_are_those_of_the_benchmarks() -> None:
    names, *_ = re.findall(r"^\| names that the next calls refer to.*$", BENCHMARKS, re.MULTILINE)
    small, simple, large, simple_large = (int(share) for share in re.findall(r"\.(\d\d)", names))
    text = " ".join(README.split())
    assert f"{large} % are still there, in their context; after the best simple rule {simple_large} %" in text
    assert f"At 4,000 tokens, {small} % and {simple} %" in text


def test_figures_of_the_migration_page_are_those_of_the_measurements() -> None:
    page = (ROOT / "docs" / "migrate.md").read_text(encoding="utf-8")
    table = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    for means in ("SummarizationMiddleware", "trim_messages", "compress"):
        (row,) = re.findall(rf"^\| `{means}` \| (.*) \|$", page, re.MULTILINE)
        outcome, calls = row.split(" | ")[:2]
        assert re.search(
            rf"^\| Lang\w+ [\d.]+ \| {means} \| {outcome} \| {calls} \|", table, re.MULTILINE
        ) or re.search(rf"^\| LiteLLM [\d.]+ \| {means} \| {outcome} \| {calls} \|", table, re.MULTILINE)
    for name in ("Claude Code's own summary", "ledger, no model"):
        (measured,) = re.findall(rf"^\| {name} \| (.*) \|$", BENCHMARKS, re.MULTILINE)
        names, lines, _, _, errors, fetch, invented = (re.sub(r" \(.*?\)", "", cell) for cell in measured.split(" | "))
        assert " | ".join((names, lines, errors, fetch, invented)) in page


def test_bundled_lab_table_is_what_the_command_prints() -> None:
    pytest.importorskip("langchain")
    (command,) = re.findall(r"^    \.venv/bin/holdfast (lab .+)$", BENCHMARKS, re.MULTILINE)
    (quoted,) = re.findall(r"<!-- lab -->\n```text\n(.*?)```", BENCHMARKS, re.DOTALL)
    printed = re.split("surprise|several compactions in a row", holdfast(*shlex.split(command)))[0]
    assert len(figures(quoted)) == 5
    assert figures(quoted) == figures(printed)


def test_first_command_prints_the_quoted_sizes() -> None:
    printed = holdfast("compact", "example")
    (sizes,) = re.findall(r"([\d,]+ → [\d,]+ tokens) with a budget of 170,000", BENCHMARKS)
    assert sizes in printed and "170,000" in printed


def test_readme_has_both_commands() -> None:
    first = "    python3 -m venv .venv && .venv/bin/pip install --quiet . && .venv/bin/holdfast compact example\n"
    assert first in README and "    python3 scripts/check.py\n" in README


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))])
def test_page_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_install_page_lists_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = re.findall(r"^\| `([\w-]+)` \|", INSTALL, re.MULTILINE)
    assert sorted(listed) == sorted(project["optional-dependencies"])
    assert project["name"] == "holdfast-context"


def test_benchmarks_of_the_page_need_no_development_packages() -> None:
    """They are run with what the first command installs."""
    commands = " ".join(re.findall(r"-m benchmarks((?: --only [a-z-]+)+)", BENCHMARKS))
    names = commands.replace("--only", "").split()
    assert {"per-step", "opening", "cost"} <= set(names)
    wanted = sorted({name.replace("-", "_") for name in names} - {"langchain"} | {"run", "forgetting"})
    code = f"""
import importlib, sys
sys.modules.update(dict.fromkeys({DEVELOPMENT_PACKAGES!r}))
for name in {wanted!r}:
    importlib.import_module("benchmarks." + name)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
