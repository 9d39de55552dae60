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
from ..trust import TRUST_HINT, Project
from .keys import KEYS, PREFIX, SettingKey, check_section, find_key
from .paths import default_store, trusted_folders, user_file
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


_PROJECT_FILE = ".holdfast/settings.toml"
_MAX_BYTES = 1_000_000


def read_settings_text(file: Path, project: Project | None = None) -> str:
    """The text of a settings file of the user, or of a project; empty if it does not exist."""
    try:
        data = file.read_bytes() if project is None else project.read(file, _MAX_BYTES)
        return (data or b"").decode()
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
    *,
    trust: bool = False,
) -> Settings:
    """Loads the settings that apply in a folder; flags that are None are ignored.

    A project's file is read if the user has trusted the folder, or with `trust`, which is not remembered. What it may
    not set is left out, with a note: see docs/settings.md.
    """
    own, working = user_file(environ), Path(folder or Path.cwd())
    layers: list[tuple[dict[str, Any], str]] = [(_plain_values(parse_settings(read_settings_text(own), own)), str(own))]
    notes: tuple[str, ...] = ()
    project = trusted_folders(environ).project(working, trust=trust)
    if project is None and (working / _PROJECT_FILE).exists():
        notes = (f"{working / _PROJECT_FILE} is not read, since this folder is not trusted: {TRUST_HINT}.",)
    file = project_file(project)
    if file is not None and not (own.exists() and file.samefile(own)):
        allowed, notes = _drop_refused(parse_settings(read_settings_text(file, project), file), file, own)
        layers.append((allowed, str(file)))
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
        project=project,
        origins=origins,
        notes=notes,
    )


def _plain_values(found: Mapping[str, FileSetting]) -> dict[str, Any]:
    return {name: one.value for name, one in found.items()}


def _section(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{name}.")}


def project_file(project: Project | None) -> Path | None:
    """The settings file of a trusted project that is nearest to the working folder; None if there is none."""
    files = (folder / _PROJECT_FILE for folder in (project.folders if project is not None else ()))
    return next((file for file in files if file.exists()), None)


def _drop_refused(found: Mapping[str, FileSetting], file: Path, own: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    notes = tuple(
        f"{file}, line {one.line}: {one.key.name} was left out, since a project may not set it. If you want it, put it "
        f"into {own}."
        for one in found.values()
        if not one.key.in_project
    )
    return {name: one.value for name, one in found.items() if one.key.in_project}, notes


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
