"""docs/cli.md lists every command and option, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from holdfast.cli import main
from holdfast.cli.options import estimator_names
from holdfast.compaction.presets import PRESETS
from holdfast.messages import FORMATS
from holdfast.strategies.names import STRATEGY_NAMES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
if not PAGE.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)
TEXT = PAGE.read_text(encoding="utf-8")
CONTEXT = click.Context(main)


def commands() -> Iterator[tuple[str, click.Command]]:
    for name in main.list_commands(CONTEXT):
        command = main.get_command(CONTEXT, name)
        assert command is not None
        yield name, command


def section(name: str) -> str:
    found = re.search(rf"^## `holdfast {name}.*?(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/cli.md has no section about holdfast {name}"
    return found[0]


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=main.list_commands(CONTEXT))
def test_docs_list_every_command_and_option(name: str, command: click.Command) -> None:
    options = {opt for param in command.params if isinstance(param, click.Option) for opt in param.opts}
    documented = set(re.findall(r"`(--?[a-z][a-z-]*)", section(name)))
    assert options <= documented, "missing in docs/cli.md"
    assert documented <= options | {"--help"}, "in docs/cli.md, but not in the command"
    assert command.help


def test_docs_list_every_option_value() -> None:
    for name in (*STRATEGY_NAMES, *FORMATS, *estimator_names()):
        assert f"`{name}" in TEXT, name
    for name in PRESETS:
        assert f"\n  {name}\n" in section("presets"), name


def test_docs_list_exit_codes() -> None:
    for code in ("0", "1", "2", "3", "130"):
        assert f"| {code} |" in TEXT
