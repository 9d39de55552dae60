"""Load settings from defaults, the user's file, the project's file, the environment and flags; later ones win."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..errors import InvalidInput, InvalidLimit
from .keys import KEYS, PREFIX, SettingKey, check_section, find_key
from .paths import default_store, project_file, user_file
from .settings import CompactionSettings, HookSettings, Settings

VARIABLES = {key.variable: key for key in KEYS.values() if key.variable}
_SIMILARITY = 0.74


def read_environment(environ: Mapping[str, str]) -> dict[SettingKey, Any]:
    """Reads the HOLDFAST_ variables; empty ones set nothing, unrelated names are ignored."""
    found = {}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX):
            continue
        if (key := VARIABLES.get(variable)) is None:
            _reject_misspelled(variable)
        elif text.strip():
            found[key] = key.parse(text, f"The variable {variable}")
    return found


def _reject_misspelled(variable: str) -> None:
    """Raises InvalidInput if the name resembles one of the variables."""
    names = [known.removeprefix(PREFIX) for known in VARIABLES]
    near = difflib.get_close_matches(variable.removeprefix(PREFIX), names, 1, _SIMILARITY)
    if near:
        raise InvalidInput(
            f"The variable {variable} sets nothing: did you mean {PREFIX}{near[0]}? Rename it, or unset it."
        )


_HEADER = re.compile(r"\[\s*([^\[\]]+?)\s*\]")


class FileSetting(Struct, frozen=True):
    """A setting read from a file, with its line number."""

    key: SettingKey
    value: Any
    line: int


def read_settings_text(file: Path) -> str:
    """The text of a settings file; empty if it does not exist."""
    try:
        return file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "it is not UTF-8"
        raise InvalidInput(f"The settings file {file} cannot be read ({why}): check the file.") from None


def parse_settings(text: str, file: Path) -> dict[str, FileSetting]:
    """Parses a settings file. Errors name the line."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise InvalidInput(f"The settings file {file} is not valid TOML: {problem}.") from None
    found = {}
    for names, value in _leaves(data, ()):
        line = _line_of(text, names)
        where, name = f"{file}, line {line}", ".".join(names)
        if value == {} and name not in KEYS:
            check_section(name, where)
            continue
        key = find_key(name, where)
        found[key.name] = FileSetting(key, key.validate(value, where), line)
    return found


def _leaves(data: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value and every empty table, with the path of its names."""
    for name, value in data.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _line_of(text: str, names: Sequence[str]) -> int:
    """The line that sets a key, or else the line that opens its table."""
    table: list[str] = []
    best = 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line.strip()):
            at = table = _parts(header[1])
        elif "=" in line:
            at = table + _parts(line.partition("=")[0])
        else:
            continue
        if at == list(names[: len(at)]):
            best = number
            if len(at) == len(names):
                break
    return best


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


DEFAULT, FLAG = "default", "flag"
_TOKEN_KEYS = ("compaction.reserve_tokens", "compaction.keep_recent_tokens")


def load_settings(
    folder: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """Loads the settings that apply in a folder; flags that are None are ignored.

    Settings that a project's file may not set are left out, with a note: see docs/settings.md.
    """
    own = user_file(environ)
    layers: list[tuple[dict[str, Any], str]] = [(_plain_values(parse_settings(read_settings_text(own), own)), str(own))]
    notes: tuple[str, ...] = ()
    project = project_file(folder, environ)
    if project is not None and not (own.exists() and project.samefile(own)):
        allowed, notes = _drop_untrusted(parse_settings(read_settings_text(project), project), project, own)
        layers.append((allowed, str(project)))
    for key, value in read_environment(environ).items():
        layers.append(({key.name: value}, str(key.variable)))
    layers.append((_flag_values(flags or {}), FLAG))
    values: dict[str, Any] = {"store": default_store(environ)}
    origins = dict.fromkeys(KEYS, DEFAULT)
    for layer, origin in layers:
        values |= layer
        origins |= dict.fromkeys(layer, origin)
    _check_token_limits(values, origins)
    return Settings(
        **{name: value for name, value in values.items() if "." not in name},
        compaction=CompactionSettings(**_section("compaction", values)),
        hooks=HookSettings(**_section("hooks", values)),
        origins=origins,
        notes=notes,
    )


def _plain_values(found: Mapping[str, FileSetting]) -> dict[str, Any]:
    return {name: one.value for name, one in found.items()}


def _section(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{name}.")}


def _drop_untrusted(
    found: Mapping[str, FileSetting], project: Path, own: Path
) -> tuple[dict[str, Any], tuple[str, ...]]:
    refused = [one for one in found.values() if not one.key.allowed_in_project(one.value)]
    notes = tuple(
        f"{project}, line {one.line}: {one.key.name} was left out, since a project may not "
        f"{'name a server' if not one.key.user_only else 'set it'}. If you trust it, put it into {own}."
        for one in refused
    )
    return {name: one.value for name, one in found.items() if one not in refused}, notes


def _flag_values(flags: Mapping[str, Any]) -> dict[str, Any]:
    given = {find_key(name, "The flags"): value for name, value in flags.items() if value is not None}
    return {key.name: key.validate(value, "The flags") for key, value in given.items()}


def _check_token_limits(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Raises InvalidLimit if a configured token count fills the window; defaults adapt to a small window."""
    window = values.get("window")
    for name in _TOKEN_KEYS:
        if window is not None and name in values and values[name] >= window:
            raise InvalidLimit(
                f"{name} is {values[name]:,} ({origins[name]}), which leaves no room in a window of {window:,} "
                f"({origins['window']}): make it smaller."
            )
