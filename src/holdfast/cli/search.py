"""`holdfast search`: find again what was said, archived or not."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from ..recall import Found
from ..recall.conditions import KINDS, ROLES
from ..stores import Hit
from . import options
from .limits import Count
from .names import OneOf
from .recalls import open_recall
from .terminal import console, working

NOTHING_FOUND = 1


@click.command("search")
@click.argument("query")
@options.file
@options.session
@click.option("--kind", type=OneOf("kind", KINDS), metavar="NAME", help=f"Only events of a kind: {', '.join(KINDS)}.")
@click.option("--role", type=OneOf("role", ROLES), metavar="NAME", help=f"Who spoke: {', '.join(ROLES)}.")
@click.option("--tool", metavar="NAME", help="Only calls of this tool, and their results.")
@click.option("--lane", metavar="NAME", help="Only the lane of a sub-agent; '' is the root alone.")
@click.option("--since", metavar="WHEN", help="A date, a time (UTC), or an age: 2026-03-01, 2026-03-01T12:30, 3d.")
@click.option("--until", metavar="WHEN", help="The same, for the end.")
@click.option("--archived", is_flag=True, help="Only what a compaction took out of the context.")
@click.option("--limit", type=Count(), default=10, show_default=True, help="How many to list.")
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to skip.")
@options.as_json
def command(query: str, file: str, session: str | None, limit: int, as_json: bool, **sought: Any) -> int:
    """Find events that hold every word of QUERY, the best first.

    FILE is a Holdfast store, a session of Claude Code, Codex, pi or OpenCode, or any file of messages. Words may
    stand in any order and inside longer ones; nothing in QUERY is syntax. The exit code is 1 if nothing was found.
    """
    sought["archived"] = sought["archived"] or None
    with open_recall(file, session, one=bool(sought["archived"])) as opened:
        with working("searching"):
            found = opened.recall.search(query, limit=limit, **sought)
        if as_json:
            click.echo(msgspec.json.encode(_facts(query, found)))
        else:
            from .hits import list_hits

            list_hits(console(), query, found, opened, _narrowing({"session": session, **sought}))
    return 0 if found.hits else NOTHING_FOUND


def _narrowing(asked: dict[str, Any]) -> list[str]:
    """The options without which more might be found."""
    return [f"--{name}" for name, value in asked.items() if value not in (None, 0)]


def _facts(query: str, found: Found) -> dict[str, Any]:
    return {"query": query, "hits": [_hit(hit) for hit in found.hits], "next": found.next}


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "session": hit.session_id,
        "ref": hit.reference,
        "id": hit.event.id,
        "kind": hit.event.kind,
        "role": hit.role,
        "tools": hit.tools,
        "lane": hit.event.lane,
        "time": hit.event.time or None,
        "archived": hit.archived,
        "snippet": hit.snippet,
    }
