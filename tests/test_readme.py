"""The figures in README.md are what its commands print, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEVELOPMENT_PACKAGES = ("numpy", "psutil", "uvloop", "langchain", "langchain_core", "pytest", "hypothesis", "pyppmd")
README = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def holdfast(*arguments: str) -> str:
    command = [sys.executable, "-m", "holdfast", *arguments]
    wide = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, check=True, timeout=250).stdout


def figures(text: str) -> dict[str, list[str]]:
    """The rows of a lab table, without the times."""
    rows = re.findall(r"^(tail window|head and tail|LangChain \w+|Holdfast ledger) +(.+?) *$", text, re.MULTILINE)
    return {name: columns.split()[:-1] for name, columns in rows}


def test_readme_lab_table_is_what_the_command_prints() -> None:
    pytest.importorskip("langchain")
    (command,) = re.findall(r"^    \.venv/bin/holdfast (lab .+)$", README, re.MULTILINE)
    (quoted,) = re.findall(r"<!-- lab -->\n```text\n(.*?)```", README, re.DOTALL)
    printed = re.split("surprise|several compactions in a row", holdfast(*shlex.split(command)))[0]
    assert len(figures(quoted)) == 5
    assert figures(quoted) == figures(printed)
    in_context = {name: int(columns[1].removeprefix(".")) for name, columns in figures(printed).items()}
    assert f"{in_context['Holdfast ledger']} % of the file names" in README
    assert f"the newest 4,000 tokens have {in_context['tail window']} %" in README


def test_readme_first_command_prints_the_quoted_sizes() -> None:
    printed = holdfast("compact", "example")
    (sizes,) = re.findall(r"([\d,]+ → [\d,]+ tokens) with a budget of 170,000", README)
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


def test_install_commands_name_the_distribution() -> None:
    pages = [README, INSTALL, *(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))]
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    assert [text for text in [*pages, *sources] if re.search(r"install [^\n`]*'holdfast\[", text)] == []


def test_benchmarks_of_the_readme_need_no_development_packages() -> None:
    """They are run with what the first command installs."""
    commands = " ".join(re.findall(r"-m benchmarks((?: --only [a-z-]+)+)", README))
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
