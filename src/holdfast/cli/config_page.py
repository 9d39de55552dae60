"""Settings for a person to read, as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.text import Text

from ..anatomy import printable
from ..settings import KEYS, Key, Settings
from .blocks import show, whole_line

_WIDEST = 28
"""A longer value pushes the place it came from to the right, on its line alone."""


def page(console: Console, settings: Settings, file: str, said: Callable[[Key, Any], str]) -> None:
    values = {name: printable(said(key, settings.value(name))) for name, key in KEYS.items()}
    name_width = max(map(len, KEYS))
    value_width = max(len(value) for value in values.values() if len(value) <= _WIDEST)
    lines = []
    for name, value in values.items():
        origin = settings.origins[name]
        line = Text(no_wrap=True, overflow="ignore").append(name.ljust(name_width + 2), "bright_black")
        line.append(value.ljust(value_width), "" if origin == "default" else "bold")
        lines.append(line.append(f"  {printable(origin)}", "bright_black"))
    show(console, [*lines], whole_line(f"To change one: holdfast config set KEY VALUE  ({file})"))
