"""`holdfast connect`: configuration of clients for the gateway, written with a backup and undone."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_files import Run, loaded
from cli_home import make_home
from click.shell_completion import ShellComplete

from holdfast.cli import main
from holdfast.cli.client_setups import CLIENTS

URL = "http://127.0.0.1:9000"
CODEX = """# my own settings
model = "gpt-5"   # the best
model_provider = "azure"

[model_providers.azure]
name = "Azure"

[mcp_servers.docs]
command = "docs"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    return make_home(tmp_path, monkeypatch)


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("client", CLIENTS)
def test_printed_lines_are_the_written_file(run: Run, client: str) -> None:
    facts = loaded(run("connect", client, "--json").stdout)
    shown = run("connect", client).stdout
    assert "http://127.0.0.1:8399" in shown and shown.splitlines()[-1].startswith("holdfast serve --upstream ")
    assert all(f"export {name}={value}\n" in shown for name, value in facts["variables"].items())
    if facts["file"] is None:
        assert run("connect", client, "--write").exit_code == 2
        return
    assert facts["lines"] in shown and not Path(facts["file"]).exists()
    assert loaded(run("connect", client, "--write", "--json").stdout)["outcome"] == "written"
    assert Path(facts["file"]).read_text() == facts["lines"]
    assert loaded(run("connect", client, "--write", "--json").stdout)["outcome"] == "unchanged"
    assert loaded(run("connect", client, "--undo", "--json").stdout)["outcome"] == "removed"
    assert list(Path(facts["file"]).parent.glob("*holdfast*")) == [] and not Path(facts["file"]).exists()


def test_toml_keeps_comments_and_other_tables(run: Run, home: Path) -> None:
    file = put(home / ".codex" / "config.toml", CODEX)
    file.chmod(0o600)
    run("connect", "codex", "--write", "--url", f"{URL}/v1/")
    config = tomllib.loads(file.read_text())
    assert config["model_provider"] == "holdfast" and config["model"] == "gpt-5"
    assert config["model_providers"]["holdfast"]["base_url"] == f"{URL}/v1"
    assert config["model_providers"]["azure"] == {"name": "Azure"} and config["mcp_servers"]["docs"]["command"]
    assert "# the best" in file.read_text() and "# my own settings" in file.read_text()
    backup = file.with_name("config.toml.before-holdfast")
    assert backup.read_text() == CODEX and stat.S_IMODE(backup.stat().st_mode) == 0o600
    run("connect", "codex", "--write", "--url", "http://127.0.0.1:9001")
    assert backup.read_text() == CODEX, "the first backup is kept"
    assert run("connect", "codex", "--undo").stdout == f"{file} is restored.\n"
    assert file.read_text() == CODEX and not backup.exists()


def test_undo_keeps_what_was_changed_since(run: Run, home: Path) -> None:
    before = {"env": {"ANTHROPIC_BASE_URL": "https://proxy", "A": "1"}, "hooks": {"é": [1, 2]}}
    file = put(home / ".claude" / "settings.json", json.dumps(before, indent=4, ensure_ascii=False))
    run("connect", "claude-code", "--write")
    changed = json.loads(file.read_text())
    assert changed["env"] == {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8399", "A": "1"}
    assert '\n    "env"' in file.read_text() and "é" in file.read_text()
    file.write_text(json.dumps(changed | {"model": "opus"}))
    run("connect", "claude-code", "--undo")
    assert json.loads(file.read_text()) == before | {"model": "opus"}


def test_lines_of_variables_and_links_are_kept(run: Run, home: Path) -> None:
    text = "# keys\nGEMINI_API_KEY=abc\nGOOGLE_GEMINI_BASE_URL=https://old\nX=1\n"
    real = put(home / "dotfiles" / "gemini.env", text)
    link = home / ".gemini" / ".env"
    link.parent.mkdir()
    link.symlink_to(real)
    run("connect", "gemini", "--write", "--url", URL)
    assert link.is_symlink() and real.read_text() == text.replace("https://old", URL)
    run("connect", "gemini", "--undo")
    assert link.is_symlink() and real.read_text() == text
    aider = put(home / ".aider.conf.yml", "model: gpt-5\n")
    run("connect", "aider", "--write", "--url", URL)
    others = f'"ANTHROPIC_API_BASE={URL}", "GEMINI_API_BASE={URL}"'
    assert aider.read_text() == f"model: gpt-5\nopenai-api-base: {URL}/v1\nset-env: [{others}]\n"
    run("connect", "aider", "--write", "--url", URL.replace("8399", "8400"))
    run("connect", "aider", "--undo")
    assert aider.read_text() == "model: gpt-5\n"


def test_files_that_cannot_be_changed_stay(
    refused: Callable[..., str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / ".config" / "opencode" / "opencode.json"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for text in (
        '{"model": "x", // why\n}',
        "[]",
        '{"provider": {"openai": 1}}',
        '{"provider": {"openai": {"options": 3}}}',
    ):
        put(file, text)
        assert "by hand" in refused("connect", "opencode", "--write") and file.read_text() == text
    put(home / ".codex" / "config.toml", "model = ")
    assert "cannot be parsed" in refused("connect", "codex", "--write")
    assert "nothing to undo" in refused("connect", "codex", "--undo")
    assert "either" in refused("connect", "codex", "--undo", "--write")
    assert "not the address of a gateway" in refused("connect", "codex", "--url", "127.0.0.1:8399")
    assert "did you mean 'codex'" in refused("connect", "codx")


def test_completion_lists_the_clients() -> None:
    done = ShellComplete(main, {}, "holdfast", "_HOLDFAST_COMPLETE").get_completions(["connect"], "c")
    assert [item.value for item in done] == ["codex", "claude-code"]
