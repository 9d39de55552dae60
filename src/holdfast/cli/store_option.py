"""`--store`, for commands that go by the settings where it is not given."""

from __future__ import annotations

import os

import click

from .stores import Place, find_store, no_store

_OTHERWISE = "name another with --store"
store = click.option(
    "--store", metavar="STORE", help="A database, or a folder of JSONL sessions; else the one of your settings."
)


def existing(address: str) -> Place:
    """The store for a command that only looks into one."""
    place = find_store(address, _OTHERWISE)
    if place is None:
        raise no_store(address, _OTHERWISE)
    return place


def must_not_be_a_strangers(address: str) -> None:
    """Looked at before it is opened: opening would add our tables to whatever database is there."""
    if os.path.isfile(address.removeprefix("sqlite:///")):
        find_store(address)
