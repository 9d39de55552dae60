"""Options of the commands that hold a conversation, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import click
import msgspec

from ..settings import Settings, load_settings
from .limits import Count
from .way import PRESET_NAME

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = (
    click.option("--model", metavar="WHO", help="Who answers: anthropic:MODEL, http://localhost:8080/v1#MODEL, …"),
    click.option("--summarizer", metavar="WHO", help="Who writes summaries; else the model that answers."),
    click.option("--preset", type=PRESET_NAME, metavar="NAME", help="How to compact; holdfast presets lists them."),
    click.option("--window", type=Count(), help="How many tokens the model takes; else as the catalog says."),
    click.option("--store", metavar="STORE", help="Where sessions are kept: a database, or a folder."),
    click.option("--folder", default=".", metavar="FOLDER", help="Where the agent works; here, unless said otherwise."),
    click.option("--session", metavar="ID", help="Go on in this session of the store."),
    click.option("--continue", "newest", is_flag=True, help="Go on in the newest session of the store."),
    click.option("--yes", is_flag=True, help="Ask nobody before something is changed."),
    click.option("--no-auto-compact", is_flag=True, help="Compact only when somebody asks."),
)


class Opening(msgspec.Struct, frozen=True):
    """What a conversation is opened with."""

    settings: Settings
    folder: str
    session: str | None
    yes: bool


def options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def opening(
    *, folder: str, session: str | None, newest: bool, yes: bool, no_auto_compact: bool, **flags: Any
) -> Opening:
    """Settings with what the options say; what a person should know of them goes to stderr."""
    if session is not None and newest:
        raise click.UsageError("--session names one session and --continue the newest: use one of them.")
    settings = load_settings(folder, {**flags, "compaction.enabled": False if no_auto_compact else None})
    for note in settings.notes:
        click.echo(f"holdfast: {note}", err=True)
    if newest:
        from ..chat.opening import newest_session

        session = anyio.run(newest_session, settings)
    return Opening(settings, folder, session, yes)
