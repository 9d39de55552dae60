"""`--store`, for commands that go by the settings where it is not given."""

from __future__ import annotations

import os

import click

from .stores import find_store

store = click.option(
    "--store", metavar="STORE", help="A database, or a folder of JSONL sessions; else the one of your settings."
)


def must_not_be_a_strangers(address: str) -> None:
    """Looked at before it is opened: opening would add our tables to whatever database is there."""
    if os.path.isfile(address.removeprefix("sqlite:///")):
        find_store(address)
