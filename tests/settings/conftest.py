"""One home a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from settings_home import Home

from holdfast.settings import places


@pytest.fixture(autouse=True)
def the_same_places_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_is_freedesktop", lambda: True)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)
