"""Paths: the user's settings file, the folders that the user trusts, and the default store."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from ..trust import TrustedFolders

_NAME = "holdfast"
_FILE = "settings.toml"


def user_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The path of the user's settings file."""
    if _is_freedesktop():
        return _base_directory("XDG_CONFIG_HOME", ".config", environ) / _NAME / _FILE
    return Path(click.get_app_dir(_NAME)) / _FILE


def trusted_folders(environ: Mapping[str, str] = os.environ) -> TrustedFolders:
    """The user's decisions about folders."""
    return TrustedFolders(user_file(environ).with_name("trust.json"), _home(environ))


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


def _is_freedesktop() -> bool:
    return sys.platform not in ("win32", "darwin")


def _base_directory(variable: str, usual: str, environ: Mapping[str, str]) -> Path:
    """An XDG base directory; the specification says to ignore a relative one."""
    given = Path(environ.get(variable) or "")
    return given if given.is_absolute() else _home(environ) / usual


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())
