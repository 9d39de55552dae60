"""`holdfast compact`: a context that is too large in, one that fits out."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from ..boundaries import check
from ..compaction import CompactionResult
from ..compaction import compact as compact_messages
from ..messages import profile_for
from ..types import Outcome
from . import options
from .limits import Count
from .shape import must_be_writable, write
from .sources import about, open_source
from .strategies import DEFAULT, complete, strategy_named
from .terminal import console, working
from .window import estimator_of, window_of

GOOD = (Outcome.COMPACTED, Outcome.NOT_NEEDED, Outcome.NOTHING_TO_COMPACT)
CANNOT_FIT = 1


@click.command("compact")
@options.file
@click.option("--budget", type=Count(), help="What must not be exceeded: 100000, 100k. Else 85 % of the window.")
@click.option("--target", type=Count(), help="What to compact down to. Else half the budget.")
@click.option(
    "--strategy",
    default=DEFAULT,
    metavar="NAME[:N]",
    shell_complete=complete,
    help="default, sliding:20, turns:10, tokens:4000, last:10, fraction:0.4, prune, ledger, truncate; + joins several.",
)
@options.format
@options.model
@options.estimator
@options.session
@options.whole
@options.as_json
@click.option("-o", "--output", "out", metavar="OUT", help="Write the new messages to this file; - is stdout.")
@click.option("--force", is_flag=True, help="Let OUT be the input file.")
def command(
    file: str,
    budget: int | None,
    target: int | None,
    strategy: str,
    format: str | None,
    model: str | None,
    estimator: str | None,
    session: str | None,
    whole: bool,
    as_json: bool,
    out: str | None,
    force: bool,
) -> int:
    """Make the messages of FILE fit a budget of tokens.

    FILE is a file of messages in any provider's format, a session of Claude Code, Codex or pi, a Holdfast
    store, - for stdin, or `example`. It is only read. The exit code is 0 if the result fits, 1 if it cannot.
    """
    chosen = strategy_named(strategy)
    with working("reading"):
        source = open_source(file, session=session, whole=whole)
    if out not in (None, "-"):
        must_be_writable(out, source.path, force=force)
    window = window_of(model or source.model)
    ruler = estimator_of(estimator, window.model)
    limit = budget or window.budget
    aim = target or max(1, limit // 2)
    with working("compacting"), about(source):
        result = compact_messages(
            source.messages,
            budget=limit,
            target=aim,
            system=source.system,
            tools=source.tools,
            strategy=chosen,
            estimator=ruler,
            format=format or source.format,
        )
        problems = check(result.messages, profile_for(result.format or "common").name)
    if out == "-":
        sys.stdout.buffer.write(source.shape.encode(list(result.messages)))
        sys.stdout.flush()
    elif out is not None:
        write(out, source.shape.encode(list(result.messages)))
    if as_json:
        facts = _facts(result) | {"valid": not problems, "budget": limit, "target": aim, "model": window.model}
        facts |= {"window": window.tokens, "estimator": ruler.name}
        if out is None:
            facts["messages"] = result.messages
        click.echo(msgspec.json.encode(facts), err=out == "-")
    else:
        from .before_after import Run, report

        aims = chosen is None or target is not None
        run = Run(source, result, window, ruler, limit, aim, aims, out, tuple(map(str, problems)))
        report(console(stderr=out == "-"), run)
    return 0 if result.outcome in GOOD else CANNOT_FIT


def _facts(result: CompactionResult) -> dict[str, Any]:
    return {
        "outcome": result.outcome.value,
        "why": result.why,
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "tokens_saved": result.tokens_saved,
        "kept": len(result.kept),
        "archived": result.removed,
        "edited": len(result.edited),
        "strategy": result.strategy,
        "format": result.format,
    }
