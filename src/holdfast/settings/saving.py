"""Save a setting to the user's file: keeps comments and order, and replaces the file atomically."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput
from ..io.files import write_file_atomically
from ..io.installation import install_command
from .keys import find_key
from .loading import parse_settings, read_settings_text
from .paths import user_file

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def save_setting(key: str, value: Any, environ: Mapping[str, str] = os.environ) -> Path:
    """Sets `key` in the user's settings file, which is created if missing; returns its path."""
    setting = find_key(key, "save_setting")
    value = setting.validate(value, "save_setting")
    file = user_file(environ)
    text = read_settings_text(file)
    parse_settings(text, file)
    changed = _with_value(text, setting.name.split("."), list(value) if isinstance(value, tuple) else value)
    parse_settings(changed, file)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file_atomically(Path(os.path.realpath(file)), changed.encode(), new_mode=0o600)
    except OSError as problem:
        raise InvalidInput(
            f"The settings file {file} cannot be written ({problem.strerror}): check its folder."
        ) from None
    return file


def _with_value(text: str, path: list[str], value: Any) -> str:
    try:
        import tomlkit
    except ImportError:
        raise InvalidInput(
            f"Writing settings needs tomlkit: edit the file by hand, or {install_command('chat')}"
        ) from None
    document: TOMLDocument = tomlkit.parse(text)
    table: Any = document
    for name in path[:-1]:
        if name not in table:
            table[name] = tomlkit.table()
        table = table[name]
    table[path[-1]] = value
    return tomlkit.dumps(document)
