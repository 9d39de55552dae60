"""`holdfast config`: every setting with its origin, and `config set`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_files import Run, loaded
from cli_home import make_home
from click.shell_completion import ShellComplete

from holdfast.cli import main
from holdfast.settings import KEYS, trusted_folders


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_home(tmp_path, monkeypatch)


@pytest.fixture
def file(home: Path) -> Path:
    return home / "config" / "holdfast" / "settings.toml"


def project(text: str) -> Path:
    path = Path.cwd() / ".holdfast" / "settings.toml"
    path.parent.mkdir()
    path.write_text(text)
    trusted_folders().decide(Path.cwd(), True)
    return path


def rows(out: str) -> dict[str, tuple[str, str]]:
    """Key, value and origin of each table row."""
    cut = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0] in KEYS]
    return {words[0]: (" ".join(words[1:-1]), words[-1]) for words in cut}


def test_config_lists_every_setting_with_origin(run: Run, file: Path) -> None:
    run("config", "set", "preset", "pi")
    path = project("window = 9000")
    table = rows(run("config", HOLDFAST_MODEL="openai:gpt-5").stdout)
    assert list(table) == list(KEYS)
    assert table["preset"] == ("pi", str(file))
    assert table["window"] == ("9,000", str(path))
    assert table["model"] == ("openai:gpt-5", "HOLDFAST_MODEL")
    assert table["compaction.enabled"] == ("true", "default")
    assert table["compaction.reserve_tokens"] == ("16,384", "default")
    assert table["hooks.before"] == ("–", "default")


def test_config_json(run: Run, home: Path, file: Path) -> None:
    run("config", "set", "hooks.after", "make notes")
    path = project("window = 9000\nstore = 'jsonl:x'")
    facts = loaded(run("config", "--json").stdout)
    assert list(facts["settings"]) == list(KEYS)
    assert facts["settings"]["window"] == {"value": 9_000, "from": str(path)}
    assert facts["settings"]["hooks.after"] == {"value": ["make notes"], "from": str(file)}
    assert facts["settings"]["store"]["value"] == f"sqlite:///{home}/data/holdfast/sessions.db"
    assert facts["files"] == {"user": str(file), "project": str(path)}
    assert len(facts["notes"]) == 1 and "store was left out" in facts["notes"][0]


def test_config_warns_of_settings_a_project_may_not_set(run: Run) -> None:
    project("[hooks]\nbefore = ['evil']")
    result = run("config")
    assert result.exit_code == 0
    assert "line 2: hooks.before was left out, since a project may not set it" in result.stderr
    assert rows(result.stdout)["hooks.before"] == ("–", "default")


@pytest.mark.parametrize(
    ("key", "given", "value"),
    [
        ("window", "200k", 200_000),
        ("compaction.reserve_tokens", "1_000", 1_000),
        ("compaction.enabled", "off", False),
        ("model", "http://localhost:8080/v1#qwen", "http://localhost:8080/v1#qwen"),
        ("hooks.before", "echo 'a, b'", ["echo 'a, b'"]),
    ],
)
def test_config_set_writes_value(key: str, given: str, value: object, run: Run, file: Path) -> None:
    result = run("config", "set", key, given)
    assert result.exit_code == 0 and result.stdout.startswith(f"{key} = ") and str(file) in result.stdout
    assert loaded(run("config", "--json").stdout)["settings"][key] == {"value": value, "from": str(file)}


def test_config_set_warns_if_overridden(run: Run) -> None:
    result = run("config", "set", "preset", "pi", HOLDFAST_PRESET="codex")
    assert "preset is still codex, from HOLDFAST_PRESET, which takes precedence here" in result.stderr


def test_config_path_prints_file(run: Run, file: Path) -> None:
    assert run("config", "path").stdout == f"{file}\n"
    assert not file.exists()


def test_config_hides_password_in_address(run: Run, file: Path) -> None:
    run("config", "set", "model", "http://ann:hunter22@localhost/v1#m")
    assert "hunter22" in file.read_text()
    for args in ((), ("--json",)):
        assert "hunter22" not in run("config", *args).output


def test_config_hides_key_in_command(run: Run, file: Path) -> None:
    line = "curl -H 'Authorization: Bearer sk-abcdefghijklmnop' https://ann:hunter22@harbor.example/notes"
    output = run("config", "set", "hooks.before", line)
    assert "sk-abcdefghijklmnop" in file.read_text(), "it is only not shown"
    stronger = run("config", "set", "model", "openai:m", HOLDFAST_MODEL="http://ann:hunter22@localhost/v1#m")
    for result in (output, stronger, run("config"), run("config", "--json")):
        assert result.exit_code == 0
        assert "sk-abcdefghijklmnop" not in result.output and "hunter22" not in result.output
    assert rows(run("config").stdout)["hooks.before"][0].startswith(
        "curl -H 'Authorization: [hidden]' https://[hidden]"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("set", "presett", "pi"), "'presett' is not a setting: did you mean 'preset'?"),
        (("set", "preset", "pie"), "There is no preset 'pie': did you mean 'pi'?"),
        (("set", "window", "lots"), "window takes a whole number of at least 1, like 100000, 100k or 1.5M"),
        (("set", "compaction.enabled", "maybe"), "compaction.enabled takes true or false, not 'maybe'"),
        (("set", "preset"), "Missing argument 'VALUE'"),
        (("stte",), "No such command 'stte'"),
    ],
)
def test_config_bad_input_is_one_line(
    args: tuple[str, ...], message: str, refused: Callable[..., str], file: Path
) -> None:
    assert message in refused("config", *args)
    assert not file.exists()


def test_config_broken_file_is_one_line(refused: Callable[..., str], file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("\nmodle = 'x'\n")
    assert f"{file}, line 2: there is no setting 'modle': did you mean 'model'?" in refused("config")
    file.unlink()
    assert "The variable HOLDFAST_MODLE sets nothing" in refused("config", HOLDFAST_MODLE="x")


def test_config_completes_keys() -> None:
    shell = ShellComplete(main, {}, "holdfast", "_HOLDFAST_COMPLETE")
    found = [item.value for item in shell.get_completions(["config", "set"], "compaction.")]
    assert found == [key for key in KEYS if key.startswith("compaction.")]


def test_config_fits_any_width(run: Run) -> None:
    for columns in (1, 20, 200):
        assert len(rows(run("config", COLUMNS=str(columns)).stdout)) == len(KEYS)
