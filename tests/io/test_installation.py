"""Errors about a missing extra name a command that works as written, wherever Holdfast was installed from."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.io import installation
from holdfast.io.installation import install_command

Recorded = Callable[..., None]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Recorded]:
    def record(source: object = None, installer: str = "pip", marker: str = "") -> None:
        files = {"direct_url.json": json.dumps(source) if source else "", "INSTALLER": installer}
        monkeypatch.setattr(installation, "_recorded", files.__getitem__)
        if marker:
            monkeypatch.setattr(sys, "prefix", str(tmp_path))
            (tmp_path / marker).touch()

    install_command.cache_clear()
    yield record
    install_command.cache_clear()


PIP = f"{shlex.quote(sys.executable)} -m pip install"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (None, "'holdfast-context[mcp]'"),
        ({"url": "file:///home/mira/hold%20fast", "dir_info": {}}, "'/home/mira/hold fast[mcp]'"),
        ({"url": "file:///home/mira/holdfast", "dir_info": {"editable": True}}, "-e '/home/mira/holdfast[mcp]'"),
        ({"url": "file:///tmp/holdfast_context-0.1.0-py3-none-any.whl", "archive_info": {}},
         "'/tmp/holdfast_context-0.1.0-py3-none-any.whl[mcp]'"),
        ({"url": "https://example.org/holdfast.whl", "archive_info": {}},
         "'holdfast-context[mcp] @ https://example.org/holdfast.whl'"),
    ],
    ids=["index", "clone", "editable clone", "wheel", "url"],
)  # fmt: skip
def test_extra_is_installed_from_where_holdfast_came(recorded: Recorded, source: object, wanted: str) -> None:
    recorded(source)
    assert install_command("mcp") == f"{PIP} {wanted}"


@pytest.mark.parametrize(
    ("installer", "marker", "command"),
    [
        ("uv", "", f"uv pip install --python {shlex.quote(sys.executable)}"),
        ("uv", "uv-receipt.toml", "uv tool install"),
        ("pip", "pipx_metadata.json", "pipx install --force"),
    ],
)
def test_extra_is_installed_by_the_installer_of_the_environment(
    recorded: Recorded, installer: str, marker: str, command: str
) -> None:
    recorded(installer=installer, marker=marker)
    assert install_command("web") == f"{command} 'holdfast-context[web]'"


def test_program_that_was_never_installed_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    install_command.cache_clear()
    monkeypatch.setattr(installation, "NAME", "not-installed-here")
    assert install_command("web") == f"{PIP} 'not-installed-here[web]'"
    install_command.cache_clear()
