"""`holdfast config`: every setting, what it is now, and where that came from."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from ..models import scrub
from ..settings import KEYS, Key, Settings, load_settings, project_file, save_setting, user_file
from . import options
from .limits import whole_number
from .names import OneOf
from .terminal import console

KEY = OneOf("setting", tuple(KEYS))


@click.group("config", invoke_without_command=True)
@options.as_json
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show the settings that hold here, each with the place it came from.

    Your own file, the project's .holdfast/settings.toml, variables HOLDFAST_* and flags are read in this order; the
    last that says something wins. No subcommand changes anything but set.
    """
    if ctx.invoked_subcommand is not None:
        return
    settings = load_settings()
    if as_json:
        click.echo(msgspec.json.encode(_facts(settings)))
        return
    from .config_page import page

    page(console(), settings, str(user_file()), _said)
    for note in settings.notes:
        click.echo(f"holdfast: {note}", err=True)


@command.command("set")
@click.argument("key", type=KEY)
@click.argument("value")
def change(key: str, value: str) -> None:
    """Write one setting into your own file; comments and order in it stay."""
    setting = KEYS[key]
    taken = whole_number(value, key) if setting.kind == "count" else setting.read(value, f"config set {key}")
    file = save_setting(key, taken)
    click.echo(f"{key} = {_said(setting, taken)}, in {file}")
    settings = load_settings()
    if settings.origins[key] != str(file):
        stronger = f"{_said(setting, settings.value(key))}, from {settings.origins[key]}"
        click.echo(f"holdfast: here {key} is still {stronger}, which is stronger.", err=True)


@command.command("path")
def path() -> None:
    """Print where your own file is, or would be."""
    click.echo(str(user_file()))


def _facts(settings: Settings) -> dict[str, Any]:
    project = project_file()
    return {
        "settings": {name: {"value": _public(settings.value(name)), "from": settings.origins[name]} for name in KEYS},
        "files": {"user": str(user_file()), "project": None if project is None else str(project)},
        "notes": settings.notes,
    }


def _public(value: Any) -> Any:
    """An address may hold a password, and a command a key."""
    if isinstance(value, tuple):
        return tuple(map(scrub, value))
    return scrub(value) if isinstance(value, str) else value


def _said(key: Key, value: Any) -> str:
    match key.kind:
        case "flag":
            return "true" if value else "false"
        case "commands":
            return "; ".join(_public(value)) or "–"
        case "count":
            return "–" if value is None else f"{value:,}"
    return _public(value) or "–"
