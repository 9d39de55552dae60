"""`holdfast read`: an event of a session in full, by the reference that a search or a note gives."""

from __future__ import annotations

import click
import msgspec

from ..anatomy import printable
from . import options
from .limits import Count
from .recalls import open_recall
from .terminal import working


@click.command("read")
@click.argument("reference", metavar="REF")
@options.file
@options.session
@click.option("--tokens", type=Count(), default=10_000, show_default=True, help="How much to print, at most.")
@options.as_json
def command(reference: str, file: str, session: str | None, tokens: int, as_json: bool) -> None:
    """Print what REF points at, archived or not.

    REF is the number of an event as `#12` or 12, several as 12-20, a place in one as 12@4000, or its id. FILE is
    anything that `holdfast search` takes.
    """
    with open_recall(file, session, one=True) as opened:
        with working("reading"):
            passage = opened.recall.read(reference, max_tokens=tokens)
        if as_json:
            facts = {
                "text": passage.text,
                "events": [event.id for event in passage.events],
                "next": passage.next,
                "tokens": passage.tokens,
            }
            click.echo(msgspec.json.encode(facts))
            return
        click.echo("\n".join(map(printable, passage.text.split("\n"))))
        if passage.next:
            click.echo(f"\nThere is more: holdfast read '{passage.next}' {opened.arguments(opened.session)}")
