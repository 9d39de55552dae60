"""`holdfast trust`, and the question that a chat asks in a folder about which nothing was decided."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ..settings import trusted_folders
from ..trust import found_in, identify
from . import options
from .output import echo, echo_json


@click.command("trust")
@click.argument("folder", default=".", metavar="[FOLDER]")
@click.option("--no", "refuse", is_flag=True, help="Do not trust it, and do not ask again.")
@click.option("--forget", is_flag=True, help="Forget the decision: the next chat asks.")
@click.option("--list", "listed", is_flag=True, help="Show all decisions.")
@options.json_option
def trust_command(folder: str, refuse: bool, forget: bool, listed: bool, as_json: bool) -> None:
    """Trust FOLDER and what lies below it, or show what was decided.

    In a trusted folder its instructions, settings, commands and server list are read, and the agent reads files
    without asking. Changes, commands and the start of a server still ask.
    """
    if refuse + forget + listed > 1:
        raise click.UsageError("--no, --forget and --list exclude each other: use one of them.")
    known = trusted_folders()
    if forget:
        known.forget(Path(folder))
    elif not listed:
        known.decide(Path(folder), not refuse)
    shown = known.decisions
    if as_json:
        echo_json({"folders": [{"path": one.folder.path, "trusted": one.trusted} for one in shown]})
    elif listed:
        for one in shown:
            echo(f"{'trusted    ' if one.trusted else 'not trusted'}  {one.folder.path}")
        if not shown:
            echo("Nothing was decided yet: a chat asks in each new folder.")
    else:
        echo(f"{os.path.realpath(folder)}: {'forgotten' if forget else 'not trusted' if refuse else 'trusted'}.")


def ask_for_trust(folder: Path) -> None:
    """Asks on the terminal whether the user trusts a folder, once: the answer is remembered."""
    known = trusted_folders()
    if not folder.is_dir() or known.decision_for(folder) is not None:
        return
    root = known.root_of(folder)
    brought = list(dict.fromkeys(name for place in (root, folder) for name in found_in(place)))
    echo(f"{root} is new to Holdfast. It holds {', '.join(brought) or 'nothing for an agent'}.")
    if hasattr(os, "geteuid") and (owner := identify(root).owner) != os.geteuid():
        echo(f"It belongs to another user, {_user_name(owner)}.")
    echo(
        "If you trust it, its instructions, settings, commands and server list are read, and the agent reads its files "
        "without asking. Changes, commands and the start of a server ask in any case."
    )
    known.decide(root, click.confirm("Do you trust this folder?", default=False))


def _user_name(id: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(id).pw_name
    except KeyError:
        return str(id)
