"""A private home folder: tests never read or change the user's settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.settings import paths


def make_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts home, settings and data below this folder, and changes to an empty folder."""
    for name in list(os.environ):
        if name.startswith("HOLDFAST_"):
            monkeypatch.delenv(name)
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setattr(paths, "_is_freedesktop", lambda: True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.chdir(work)
    return home
