"""`Settings` as typed values, with the origin of each, and the preset and store they configure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..compaction import Policy, preset
from ..compaction.presets import DEFAULT_KEEP, DEFAULT_RESERVE, takes_sizes
from ..models.calls import RETRY_SECONDS
from ..stores import open_store
from ..trust import Project
from .paths import data_folder, default_store

if TYPE_CHECKING:
    from ..stores import JSONLStore, MemoryStore, PostgresStore, SQLiteStore


_USUAL_SIZES = {"reserve": DEFAULT_RESERVE, "keep": DEFAULT_KEEP}


class CompactionSettings(Struct, frozen=True):
    """Automatic compaction, and the token counts of the presets `holdfast` and `pi`."""

    enabled: bool = True
    reserve_tokens: int = DEFAULT_RESERVE
    keep_recent_tokens: int = DEFAULT_KEEP


class HookSettings(Struct, frozen=True):
    """Shell commands to run before and after a compaction."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    session_start: tuple[str, ...] = ()


class Settings(Struct, frozen=True, kw_only=True):
    """All settings, with their defaults."""

    model: str | None = None
    summarizer: str | None = None
    """None: `model` writes summaries too."""
    preset: str = "holdfast"
    window: int | None = None
    """None: the window of the model catalog."""
    store: str
    retry_seconds: int = RETRY_SECONDS
    """How long a chat retries a model call that failed for a reason that may pass."""
    project_instructions: bool = True
    """Whether AGENTS.md and CLAUDE.md are read into the system prompt."""
    notifications: bool = True
    """Whether a chat rings and notifies the user who is away when it waits for an answer, ends or fails."""
    compaction: CompactionSettings = CompactionSettings()
    hooks: HookSettings = HookSettings()
    project: Project | None = None
    """The trusted folders whose files are read; None where the user has not trusted the folder."""
    origins: dict[str, str] = {}
    """For each key: `default`, the path of a file, the name of a variable, or `flag`."""
    notes: tuple[str, ...] = ()
    """What of the project's file was left out, and why."""

    def value(self, key: str) -> Any:
        """Returns the value of a dotted key."""
        value: Any = self
        for name in key.split("."):
            value = getattr(value, name)
        return value


def preset_for(settings: Settings) -> Policy:
    """Returns the configured preset, with the two token counts if it takes them."""
    sizes = {"reserve": settings.compaction.reserve_tokens, "keep": settings.compaction.keep_recent_tokens}
    given = {name: size for name, size in sizes.items() if size != _USUAL_SIZES[name]}
    return preset(settings.preset, **given) if takes_sizes(settings.preset) else preset(settings.preset)


def chosen_preset(settings: Settings) -> Policy | None:
    """Returns the preset if somebody configured one; None leaves each session its own."""
    keys = ("preset", "compaction.reserve_tokens", "compaction.keep_recent_tokens")
    return preset_for(settings) if any(settings.origins.get(key, "default") != "default" for key in keys) else None


def open_configured_store(
    settings: Settings, environ: Mapping[str, str] = os.environ
) -> MemoryStore | JSONLStore | SQLiteStore | PostgresStore:
    """Opens the configured store. The folder of the default store is created, readable for its owner only."""
    if settings.store == default_store(environ):
        data_folder(environ).mkdir(mode=0o700, parents=True, exist_ok=True)
    return open_store(settings.store)
