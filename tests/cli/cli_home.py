"""A home for commands that go by settings: nothing of the person who runs the tests is read or changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.settings import places


def make_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put home, settings and data below this folder, and work in an empty one beside them."""
    for name in list(os.environ):
        if name.startswith("HOLDFAST_"):
            monkeypatch.delenv(name)
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setattr(places, "_is_freedesktop", lambda: True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.chdir(work)
    return home
