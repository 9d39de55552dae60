"""From settings to what they stand for: the preset with its numbers, and the open store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..presets import SIZED, Preset, preset_named
from ..stores import open_store
from .places import data_folder, default_store
from .settings import Settings

if TYPE_CHECKING:
    from ..stores import JSONLStore, MemoryStore, PostgresStore, SQLiteStore


def preset_for(settings: Settings) -> Preset:
    """The preset; reserve and part to keep are for those that have these two numbers (P2)."""
    if settings.preset not in SIZED:
        return preset_named(settings.preset)
    compaction = settings.compaction
    return preset_named(settings.preset, compaction.reserve_tokens, compaction.keep_recent_tokens)


def open_settled_store(
    settings: Settings, environ: Mapping[str, str] = os.environ
) -> MemoryStore | JSONLStore | SQLiteStore | PostgresStore:
    """The store that the settings name. The usual one's folder is made when it is first used, for its owner alone."""
    if settings.store == default_store(environ):
        data_folder(environ).mkdir(mode=0o700, parents=True, exist_ok=True)
    return open_store(settings.store)
