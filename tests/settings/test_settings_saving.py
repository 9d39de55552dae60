"""Saving a setting: the user's comments stay, and the file is replaced atomically."""

from __future__ import annotations

import builtins
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from settings_home import Home

from holdfast.errors import InvalidInput
from holdfast.io.installation import install_command
from holdfast.settings import KEYS, save_setting

WRITTEN = """\
# My settings, do not touch.
preset = "pi"      # the way I like it

[compaction]       # numbers
# 16k was too little
reserve_tokens = 20_000
enabled = true
"""


def test_save_setting_keeps_comments_and_order(home: Home) -> None:
    home.write(WRITTEN)
    assert save_setting("compaction.enabled", False, home.environ) == home.file
    assert home.file.read_text() == WRITTEN.replace("enabled = true", "enabled = false")
    save_setting("preset", "codex", home.environ)
    assert home.file.read_text().splitlines()[1] == 'preset = "codex"      # the way I like it'
    save_setting("window", 200_000, home.environ)
    save_setting("hooks.before", ["make notes", "echo 'a \"b\"'"], home.environ)
    text = home.file.read_text()
    assert all(line in text for line in WRITTEN.splitlines() if line.startswith("#") or "reserve" in line)
    settings = home.load()
    assert (settings.preset, settings.window) == ("codex", 200_000)
    assert settings.compaction.reserve_tokens == 20_000 and not settings.compaction.enabled
    assert settings.hooks.before == ("make notes", "echo 'a \"b\"'")


TEXT_VALUE = st.text(min_size=1).filter(str.strip)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("window"), st.integers(10**6, 10**9)),
            st.tuples(st.just("compaction.reserve_tokens"), st.integers(1, 10**5)),
            st.tuples(st.just("compaction.enabled"), st.booleans()),
            st.tuples(st.sampled_from(["model", "store"]), TEXT_VALUE),
            st.tuples(st.just("hooks.after"), st.lists(TEXT_VALUE).map(tuple)),
        ),
        max_size=6,
    )
)
def test_save_setting_round_trips(tmp_path_factory: pytest.TempPathFactory, saved: list[tuple[str, Any]]) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    home.write(WRITTEN)
    for key, value in saved:
        save_setting(key, value, home.environ)
    settings = home.load()
    for key, value in dict(saved).items():
        assert settings.value(key) == (value.strip() if isinstance(value, str) else value)
    assert settings.preset == "pi"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_save_setting_new_file_is_private(home: Home) -> None:
    file = save_setting("preset", "pi", home.environ)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.chmod(0o640)
    save_setting("preset", "codex", home.environ)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_save_setting_keeps_symlink(home: Home) -> None:
    real = home.folder / "dotfiles.toml"
    real.write_text("# kept elsewhere\n")
    home.file.symlink_to(real)
    save_setting("preset", "pi", home.environ)
    assert home.file.is_symlink() and real.read_text() == '# kept elsewhere\npreset = "pi"\n'


def test_save_setting_failed_write_keeps_old_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write(WRITTEN)

    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InvalidInput, match=r"cannot be written \(No space left on device\)"):
        save_setting("preset", "codex", home.environ)
    assert home.file.read_text() == WRITTEN
    assert {path.name for path in home.file.parent.iterdir()} == {"settings.toml", "trust.json"}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("presett", "pi", "there is no setting 'presett': did you mean 'preset'?"),
        ("preset", "pie", "There is no preset 'pie': did you mean 'pi'?"),
        ("window", 0, "window is 0: it must be at least 1"),
        ("compaction.enabled", "no", "compaction.enabled takes true or false, not 'no'"),
    ],
)
def test_save_setting_invalid_value_is_refused(key: str, value: Any, expected: str, home: Home) -> None:
    with pytest.raises(InvalidInput) as problem:
        save_setting(key, value, home.environ)
    assert expected in str(problem.value) and not home.file.exists()


def test_save_setting_broken_file_is_not_changed(home: Home) -> None:
    home.write("[compaction\n")
    with pytest.raises(InvalidInput, match="is not valid TOML"):
        save_setting("preset", "pi", home.environ)
    assert home.file.read_text() == "[compaction\n"


def test_save_setting_without_tomlkit_names_the_install_command(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *given: Any, **named: Any) -> Any:
        if name == "tomlkit":
            raise ImportError(name)
        return real(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InvalidInput, match=re.escape(install_command("chat"))):
        save_setting("preset", "pi", home.environ)


def test_save_setting_every_key(home: Home, tmp_path: Path) -> None:
    values = {"text": "pi", "count": 5, "flag": False, "commands": ("a",)}
    for key in KEYS.values():
        save_setting(key.name, values[key.kind], home.environ)
    settings = home.load({"window": 10**6})
    assert all(settings.value(key.name) == values[key.kind] for key in KEYS.values() if key.name != "window")
