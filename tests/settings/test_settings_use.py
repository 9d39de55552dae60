"""Use of settings: the preset with its token counts, and the store, created at first use."""

from __future__ import annotations

import stat
import sys

import pytest
from settings_home import Home

from holdfast import SessionService, preset
from holdfast.compaction.presets import PRESETS
from holdfast.settings import data_folder, open_configured_store, preset_for


@pytest.mark.parametrize("name", PRESETS)
def test_preset_for_default_settings_is_unchanged(name: str, home: Home) -> None:
    policy = preset_for(home.load({"preset": name}))
    assert (policy.name, policy.figures) == (name, preset(name).figures)


def test_preset_for_applies_token_counts(home: Home) -> None:
    """P2, P8."""
    numbers = {"compaction.reserve_tokens": 10_000, "compaction.keep_recent_tokens": 3_000}
    pi = preset_for(home.load({"preset": "pi", **numbers}))
    assert pi.figures["compacts"] == "above the window less 10,000"
    assert pi.figures["keeps"].startswith("the newest 3,000 tokens")
    assert "at most 8,000 tokens" in pi.figures["summary"]
    assert preset_for(home.load({"preset": "codex", **numbers})) is preset("codex")


@pytest.mark.anyio
async def test_open_configured_store_creates_default_folder(home: Home) -> None:
    settings = home.load()
    assert not data_folder(home.environ).exists()
    async with SessionService(open_configured_store(settings, home.environ)) as sessions:
        record = await sessions.create()
        await sessions.append(record.id, {"role": "user", "content": "Where is berth 4?"})
    folder = data_folder(home.environ)
    assert (folder / "sessions.db").is_file()
    if sys.platform != "win32":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.anyio
async def test_open_configured_store_other_url(home: Home) -> None:
    settings = home.load({"store": f"jsonl:{home.folder / 'logs'}"})
    async with SessionService(open_configured_store(settings, home.environ)) as sessions:
        await sessions.create(id="s-1")
    assert (home.folder / "logs" / "s-1.jsonl").is_file()
    assert not data_folder(home.environ).exists()
