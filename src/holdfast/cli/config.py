"""`holdfast config`: every setting, its value and its origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from ..io.arguments import parse_count
from ..io.text import printable
from ..models import scrub
from ..models.names import check_model_name
from ..settings import KEYS, SettingKey, Settings, load_settings, project_file, save_setting, user_file
from . import options
from .console import make_console, print_blocks, unwrapped_line
from .options import NameChoice
from .output import echo, echo_error, echo_json

SETTING_KEY = NameChoice("setting", tuple(KEYS))


@click.group("config", invoke_without_command=True)
@options.json_option
@click.pass_context
def config_command(ctx: click.Context, as_json: bool) -> None:
    """Show the effective settings and the origin of each.

    Later sources override earlier ones: your own file, the project's .holdfast/settings.toml, HOLDFAST_* variables,
    flags. Only the set subcommand changes anything.
    """
    if ctx.invoked_subcommand is not None:
        return
    settings = load_settings()
    if as_json:
        echo_json(_config_json(settings))
        return

    print_settings(make_console(), settings, str(user_file()), _setting_text)
    for note in settings.notes:
        echo_error(note)


@config_command.command("set")
@click.argument("key", type=SETTING_KEY)
@click.argument("value")
def config_set_command(key: str, value: str) -> None:
    """Write one setting to your own file, keeping its comments and order."""
    setting = KEYS[key]
    parsed = parse_count(value, key) if setting.kind == "count" else setting.parse(value, f"config set {key}")
    if key in ("model", "summarizer"):
        check_model_name(str(parsed))
    file = save_setting(key, parsed)
    echo(f"{key} = {_setting_text(setting, parsed)}, in {file}")
    settings = load_settings()
    if settings.origins[key] != str(file):
        override = f"{_setting_text(setting, settings.value(key))}, from {settings.origins[key]}"
        echo(f"holdfast: {key} is still {override}, which takes precedence here.", err=True)


@config_command.command("path")
def config_path_command() -> None:
    """Print the path of your own settings file."""
    echo(str(user_file()))


def _config_json(settings: Settings) -> dict[str, Any]:
    project = project_file(settings.project)
    return {
        "settings": {
            name: {"value": _scrub_value(settings.value(name)), "from": settings.origins[name]} for name in KEYS
        },
        "files": {"user": str(user_file()), "project": None if project is None else str(project)},
        "notes": settings.notes,
    }


def _scrub_value(value: Any) -> Any:
    """Removes passwords from addresses and keys from commands."""
    if isinstance(value, tuple):
        return tuple(map(scrub, value))
    return scrub(value) if isinstance(value, str) else value


def _setting_text(key: SettingKey, value: Any) -> str:
    match key.kind:
        case "flag":
            return "true" if value else "false"
        case "commands":
            return "; ".join(_scrub_value(value)) or "–"
        case "count":
            return "–" if value is None else f"{value:,}"
    return _scrub_value(value) or "–"


_MAX_VALUE_WIDTH = 28
"""Longer values are not padded; their origin moves right."""


def print_settings(
    console: Console, settings: Settings, file: str, value_text: Callable[[SettingKey, Any], str]
) -> None:
    values = {name: printable(value_text(key, settings.value(name))) for name, key in KEYS.items()}
    name_width = max(map(len, KEYS))
    value_width = max(len(value) for value in values.values() if len(value) <= _MAX_VALUE_WIDTH)
    lines = []
    for name, value in values.items():
        origin = settings.origins[name]
        line = Text(no_wrap=True, overflow="ignore").append(name.ljust(name_width + 2), "bright_black")
        line.append(value.ljust(value_width), "" if origin == "default" else "bold")
        lines.append(line.append(f"  {printable(origin)}", "bright_black"))
    print_blocks(console, [*lines], unwrapped_line(f"To change a setting: holdfast config set KEY VALUE  ({file})"))
