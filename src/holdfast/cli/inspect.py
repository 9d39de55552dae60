"""`holdfast inspect`: where the tokens of a session are."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from ..anatomy import anatomy
from ..boundaries import find_problems
from ..messages import COMMON, decode_all, profile_for
from ..tokens import tokens_in
from . import options
from .limits import Count
from .portrait import Portrait
from .sources import Source, about, open_source
from .stores import Place, find_store
from .terminal import console, working
from .window import estimator_of, window_of

SHOWN = 40
"""Sessions of a store that a person is shown: each has to be opened to be counted."""


@click.command("inspect")
@options.file
@click.option("--largest", type=Count(), default=5, show_default=True, help="How many of the largest results to list.")
@options.format
@options.model
@options.estimator
@options.session
@options.whole
@options.as_json
def command(
    file: str,
    largest: int,
    format: str | None,
    model: str | None,
    estimator: str | None,
    session: str | None,
    whole: bool,
    as_json: bool,
) -> None:
    """Show where the tokens of FILE are: by role, by tool, by turn.

    FILE is anything that `holdfast compact` takes. Of a store with several sessions, a list of them.
    """
    place = _store(file) if session is None else None
    if place is not None and (listed := _listed(place, None if as_json else SHOWN)) is not None:
        rows, count = listed
        if as_json:
            click.echo(msgspec.json.encode({"store": place.path, "sessions": rows}))
        else:
            from .portrait_drawn import list_sessions

            list_sessions(console(), place.path, rows, count)
        return
    with working("reading"):
        source = open_source(file, session=session, whole=whole)
        portrait = portray(source, model=model, estimator=estimator, format=format)
    if as_json:
        click.echo(msgspec.json.encode(_facts(portrait, largest)))
    else:
        from .portrait_drawn import draw

        draw(console(), portrait, largest)


def portray(source: Source, *, model: str | None, estimator: str | None, format: str | None) -> Portrait:
    """Count and check a context; nothing is changed and nothing is printed."""
    window = window_of(model or source.model)
    ruler = estimator_of(estimator, window.model)
    with about(source):
        messages, name = decode_all(source.messages, format or source.format)
    parts = anatomy(messages, ruler, source.system, source.tools)
    covered = None
    if source.reported is not None:
        whole = source.reported.covers >= len(messages)
        covered = parts.tokens
        if not whole:
            covered -= ruler.tokens(sum(map(ruler.measure, messages[source.reported.covers :])))
    return Portrait(
        source=source,
        window=window,
        estimator=ruler.name,
        format="" if name == COMMON else name,
        anatomy=parts,
        covered=covered,
        summaries=tuple(tokens_in(ruler, past.summary or "") for past in source.past),
        problems=find_problems(messages, profile_for(name)),
    )


def _store(name: str) -> Place | None:
    return None if name == "-" or name.partition(":")[0] == "example" else find_store(name)


def _listed(place: Place, most: int | None) -> tuple[list[dict[str, Any]], int] | None:
    """The newest sessions of a store, and how many there are; None if one alone is meant."""
    if place.only is not None:
        return None
    with place.open() as sessions, working("reading sessions"):
        records = sessions.list()
        if len(records) == 1:
            return None
        rows = []
        for record in records[:most]:
            newest = sessions.events(record.id, last=1)
            rows.append(
                {
                    "id": record.id,
                    "owner": record.owner,
                    "model": record.model,
                    "events": record.version,
                    "tokens": sessions.context(record.id).tokens,
                    "created": record.created,
                    "last": newest[0].time if newest else record.created,
                }
            )
    return rows, len(records)


def _facts(portrait: Portrait, largest: int) -> dict[str, Any]:
    source, parts, reported = portrait.source, portrait.anatomy, portrait.source.reported
    return {
        "file": source.name,
        "kind": source.kind,
        "id": source.id,
        "format": portrait.format or None,
        "model": portrait.window.model,
        "window": portrait.window.tokens,
        "estimator": portrait.estimator,
        "tokens": portrait.tokens,
        "estimate": parts.tokens,
        "messages": parts.messages,
        "logged": source.logged,
        "shares": parts.shares,
        "turns": len(parts.turns),
        "largest_turn": parts.largest_turn,
        "largest_results": parts.results[:largest],
        "compactions": [
            {
                "time": past.time,
                "by": past.by,
                "tokens_before": past.before,
                "tokens_after": past.after,
                "summary_tokens": size if past.summary else None,
            }
            for past, size in zip(source.past, portrait.summaries, strict=True)
        ],
        "usage": reported and {"reported": reported.tokens, "estimated": portrait.covered, "messages": reported.covers},
        "problems": portrait.problems,
        "notes": source.notes,
    }
