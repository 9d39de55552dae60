"""`holdfast compact`: a context that is too large in, one that fits out."""

from __future__ import annotations

import sys

import click
import msgspec

from ..boundaries import check
from ..messages import profile_for
from . import options
from . import way as ways
from .limits import Count
from .run import Run
from .shape import must_be_writable, write
from .sources import about, open_source
from .terminal import console, working
from .window import estimator_of, window_of


@click.command("compact")
@options.file
@click.option("--budget", type=Count(), help="What must not be exceeded: 100000, 100k. Else 85 % of the window.")
@click.option("--target", type=Count(), help="What to compact down to. Else half the budget.")
@ways.strategy
@ways.preset
@ways.summarizer
@ways.instructions
@ways.now
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
    strategy: str | None,
    preset: str | None,
    summarizer: str | None,
    instructions: str | None,
    now: bool,
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

    FILE is a file of messages in any provider's format, a session of Claude Code, Codex, pi or OpenCode, a Holdfast
    store, - for stdin, or `example`. It is only read. No model is asked unless one is named. The exit code is 0
    if the result fits, 1 if it cannot, 3 if the summary failed.
    """
    way = ways.way(strategy, preset, summarizer, instructions, now)
    with working("reading"):
        source = open_source(file, session=session, whole=whole)
    if out not in (None, "-"):
        must_be_writable(out, source.path, force=force)
    window = way.window(window_of(model or source.model), budget)
    ruler = estimator_of(estimator or way.estimator, window.model)
    limit = way.limit(window, budget)
    with about(source):
        result = way.compact(
            source.messages,
            limit,
            target=target,
            system=source.system,
            tools=source.tools,
            estimator=ruler,
            format=format or source.format,
            numbers=source.numbers,
        )
        problems = check(result.messages, profile_for(result.format or "common").name)
    run = Run(
        source=source,
        way=way,
        result=result,
        window=window,
        estimator=ruler,
        budget=limit,
        target=target,
        out=out,
        problems=tuple(map(str, problems)),
    )
    if run.error is None:
        _write(run)
    if as_json:
        click.echo(msgspec.json.encode(run.facts()), err=out == "-")
    elif run.error is not None:
        click.echo(f"holdfast: {run.error}", err=True)
    else:
        from .before_after import report

        report(console(stderr=out == "-"), run)
    return run.exit_code


def _write(run: Run) -> None:
    if run.out is None:
        return
    data = run.source.shape.encode(list(run.result.messages))
    if run.out == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    else:
        write(run.out, data)
