"""Fixtures: a home folder for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from settings_home import Home

from holdfast.settings import paths


@pytest.fixture(autouse=True)
def use_xdg_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_is_freedesktop", lambda: True)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)
