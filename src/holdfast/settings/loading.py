"""Settings from all their places: defaults, the person's file, the project's, the environment, flags. The last wins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidLimit
from .environment import read_environment
from .files import Found, read_settings, text_of
from .keys import KEYS, key_named
from .places import default_store, project_file, user_file
from .settings import Compaction, Hooks, Settings

DEFAULT, FLAG = "default", "flag"
_SIZES = ("compaction.reserve_tokens", "compaction.keep_recent_tokens")


def load_settings(
    folder: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings that hold in a folder (P2); a flag that is None was not given.

    What a project's file may not set is left out, with a note: see docs/settings.md.
    """
    own = user_file(environ)
    layers: list[tuple[dict[str, Any], str]] = [(_values(read_settings(text_of(own), own)), str(own))]
    notes: tuple[str, ...] = ()
    project = project_file(folder, environ)
    if project is not None and not (own.exists() and project.samefile(own)):
        allowed, notes = _without_what_needs_trust(read_settings(text_of(project), project), project, own)
        layers.append((allowed, str(project)))
    for key, value in read_environment(environ).items():
        layers.append(({key.name: value}, str(key.variable)))
    layers.append((_from_flags(flags or {}), FLAG))
    values: dict[str, Any] = {"store": default_store(environ)}
    origins = dict.fromkeys(KEYS, DEFAULT)
    for layer, origin in layers:
        values |= layer
        origins |= dict.fromkeys(layer, origin)
    _must_make_sense(values, origins)
    return Settings(
        **{name: value for name, value in values.items() if "." not in name},
        compaction=Compaction(**_section("compaction", values)),
        hooks=Hooks(**_section("hooks", values)),
        origins=origins,
        notes=notes,
    )


def _values(found: Mapping[str, Found]) -> dict[str, Any]:
    return {name: one.value for name, one in found.items()}


def _section(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{name}.")}


def _without_what_needs_trust(
    found: Mapping[str, Found], project: Path, own: Path
) -> tuple[dict[str, Any], tuple[str, ...]]:
    refused = [one for one in found.values() if not one.key.may_stand_in_a_project(one.value)]
    notes = tuple(
        f"{project}, line {one.line}: {one.key.name} was left out, since a project may not "
        f"{'name a server' if not one.key.owned else 'set it'}. If you trust it, put it into {own}."
        for one in refused
    )
    return {name: one.value for name, one in found.items() if one not in refused}, notes


def _from_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    given = {key_named(name, "The flags"): value for name, value in flags.items() if value is not None}
    return {key.name: key.taken(value, "The flags") for key, value in given.items()}


def _must_make_sense(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """A default gives way to a small window by itself; a number that somebody wrote must leave room in it."""
    window = values.get("window")
    for name in _SIZES:
        if window is not None and name in values and values[name] >= window:
            raise InvalidLimit(
                f"{name} is {values[name]:,} ({origins[name]}), which leaves nothing of a window of {window:,} "
                f"({origins['window']}): make it smaller."
            )
