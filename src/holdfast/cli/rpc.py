"""`holdfast rpc`: a chat for a program, over standard input and output."""

from __future__ import annotations

import logging
import sys
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import anyio
import click

from . import conversing


@click.command("rpc")
@conversing.options
def command(**given: Any) -> int:
    """Hold a conversation with a program: JSON lines in and out.

    Requests come on standard input; responses and everything that happens go to standard output, and nothing else
    does. docs/rpc.md describes them. When the input ends, what is running is stopped and kept.
    """
    from ..lines import STANDARD_INPUT
    from ..rpc import serve

    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setFormatter(logging.Formatter("holdfast: %(message)s"))
    logging.getLogger("holdfast").addHandler(to_stderr)
    opened = conversing.opening(**given)
    visit = partial(serve, folder=opened.folder, session=opened.session, yes=opened.yes)
    stream = sys.stdout.buffer
    with redirect_stdout(sys.stderr):  # whatever prints here must not be taken for a record
        return anyio.run(visit, opened.settings, STANDARD_INPUT, stream)
