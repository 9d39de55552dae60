"""What commands print: never a raw control, escape or direction character, wherever the text came from.

A session, a file name or a server's answer may contain any of them. People see escapes, JSON has its own; data that is
written to a file or a pipe stays exact.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import click
import msgspec

from ..io.secrets import scrub
from ..io.text import escape_controls, escape_json


def echo(text: str, *, err: bool = False) -> None:
    """Prints text for people."""
    click.echo(escape_controls(text), err=err)


def echo_error(message: str) -> None:
    """Prints one line on stderr, without the password of an address in it."""
    echo(f"holdfast: {' '.join(scrub(message).split())}", err=True)


def echo_json(value: Any, *, err: bool = False) -> None:
    """Prints a value as one line of JSON."""
    click.echo(escape_json(msgspec.json.encode(value)), err=err)


def write_stdout(data: bytes) -> None:
    """Writes data that was asked for: exactly, except on a terminal."""
    if sys.stdout.isatty():
        is_json = data.lstrip()[:1] in (b"{", b"[")
        data = escape_json(data) if is_json else escape_controls(data.decode(errors="replace")).encode()
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


class LogFormatter(logging.Formatter):
    """Log formatter without raw control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record))
