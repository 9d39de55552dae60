"""Writing one setting into the person's file: comments and order stay, and the file is never half written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput
from ..files import replace_file
from .files import read_settings, text_of
from .keys import key_named
from .places import user_file

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def save_setting(key: str, value: Any, environ: Mapping[str, str] = os.environ) -> Path:
    """Set `key` in the person's file, which is made if it is not there; returns the file."""
    setting = key_named(key, "save_setting")
    value = setting.taken(value, "save_setting")
    file = user_file(environ)
    text = text_of(file)
    read_settings(text, file)
    changed = _with(text, setting.name.split("."), list(value) if isinstance(value, tuple) else value)
    read_settings(changed, file)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(Path(os.path.realpath(file)), changed.encode(), new_mode=0o600)
    except OSError as problem:
        raise InvalidInput(f"The settings {file} cannot be written ({problem.strerror}): check its folder.") from None
    return file


def _with(text: str, path: list[str], value: Any) -> str:
    try:
        import tomlkit
    except ImportError:
        raise InvalidInput(
            "Writing settings needs tomlkit: pip install 'holdfast[chat]', or edit the file by hand."
        ) from None
    document: TOMLDocument = tomlkit.parse(text)
    table: Any = document
    for name in path[:-1]:
        if name not in table:
            table[name] = tomlkit.table()
        table = table[name]
    table[path[-1]] = value
    return tomlkit.dumps(document)
