"""Paths: the user's settings file, the project's settings file, and the default store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

_NAME = "holdfast"
_FILE = "settings.toml"


def user_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The path of the user's settings file."""
    if _is_freedesktop():
        return _base_directory("XDG_CONFIG_HOME", ".config", environ) / _NAME / _FILE
    return Path(click.get_app_dir(_NAME)) / _FILE


def project_file(folder: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The nearest `.holdfast/settings.toml`, from this folder up to the root of its repository, else to home."""
    for place in project_folders(folder, environ):
        if (file := place / f".{_NAME}" / _FILE).is_file():
            return file
    return None


def project_folders(
    folder: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ
) -> Sequence[Path]:
    """The folders of a project's files, from this one up to the root of its repository, else to home."""
    return list(_search_path(Path(folder or Path.cwd()).absolute(), _home(environ)))


def default_store(environ: Mapping[str, str] = os.environ) -> str:
    """The URL of the default store."""
    return f"sqlite:///{data_folder(environ) / 'sessions.db'}"


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the default store."""
    if _is_freedesktop():
        return _base_directory("XDG_DATA_HOME", ".local/share", environ) / _NAME
    return Path(click.get_app_dir(_NAME))


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of what the program remembers between starts, such as the input history."""
    if _is_freedesktop():
        return _base_directory("XDG_STATE_HOME", ".local/state", environ) / _NAME
    return Path(click.get_app_dir(_NAME))


def _search_path(folder: Path, home: Path) -> Iterator[Path]:
    """Folders to search, from this one up. Outside of a repository and of home only the folder itself is trusted."""
    chain = [folder, *folder.parents]
    end = next((place for place in chain if (place / ".git").exists()), home if home in chain else folder)
    for place in chain:
        yield place
        if place == end:
            return


def _is_freedesktop() -> bool:
    return sys.platform not in ("win32", "darwin")


def _base_directory(variable: str, usual: str, environ: Mapping[str, str]) -> Path:
    """An XDG base directory; the specification says to ignore a relative one."""
    given = Path(environ.get(variable) or "")
    return given if given.is_absolute() else _home(environ) / usual


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())
