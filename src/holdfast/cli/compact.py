"""`holdfast compact`: compacts a context to fit a token budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import options
from .options import CountType
from .output import echo_error, echo_json, write_stdout

if TYPE_CHECKING:
    from .compaction_report import CompactCommandRun


@click.command("compact")
@options.file_argument
@click.option("--budget", type=CountType(), help="Token budget: 100000, 100k. Default: 85 % of the window.")
@click.option("--target", type=CountType(), help="Tokens to compact down to. Default: half the budget.")
@options.strategy_option
@options.preset_option
@options.summarizer_option
@options.instructions_option
@options.now_option
@options.format_option
@options.model_option
@options.estimator_option
@options.session_option
@options.whole_option
@options.json_option
@click.option("-o", "--output", "out", metavar="OUT", help="Write the new messages to OUT; - is stdout.")
@click.option("--force", is_flag=True, help="Overwrite OUT if it exists, even the input file.")
def compact_command(
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
    """Make the messages of FILE fit a token budget.

    FILE is a file of messages in any provider's format, a session of Claude Code, Codex, pi or OpenCode, a Holdfast
    store, - for stdin, or `example`. It is never modified. No model is called unless you name one. The exit code is
    0 if the result fits, 1 if it cannot, 3 if the summary failed.
    """

    from ..errors import SummaryFailed
    from ..messages import check, rules_for
    from .compaction import compaction_from_options
    from .compaction_report import CompactCommandRun, print_compaction_report, summary_error
    from .console import make_console, show_progress
    from .model_window import choose_estimator, window_of
    from .sources import check_writable, name_file_in_errors, open_source, refuse_existing

    compaction = compaction_from_options(strategy, preset, summarizer, instructions, now)
    with show_progress("reading"):
        source = open_source(file, session=session, whole=whole)
    if out not in (None, "-"):
        check_writable(out, source.path, force=force)
        refuse_existing(out, force=force)
    window = compaction.resolve_window(window_of(model, source), budget)
    token_estimator = choose_estimator(estimator or compaction.estimator, window.model)
    limit = compaction.token_limit(window, budget)
    with name_file_in_errors(source):
        try:
            result = compaction.compact(
                source.messages,
                limit,
                target=target,
                system=source.system,
                tools=source.tools,
                usage=source.reported,
                estimator=token_estimator,
                format=format or source.format,
                numbers=source.numbers,
            )
        except SummaryFailed as problem:
            return _print_failed_summary(summary_error(compaction, problem.why), as_json=as_json)
        problems = check(result.messages, rules_for(result.format or "common").name)
    run = CompactCommandRun(
        source=source,
        compaction=compaction,
        result=result,
        window=window,
        estimator=token_estimator,
        budget=limit,
        target=target,
        out=out,
        problems=tuple(map(str, problems)),
    )
    if run.error is None:
        _write_messages(run)
    if as_json:
        echo_json(run.to_json(), err=out == "-")
    elif run.error is not None:
        echo_error(run.error)
    else:
        print_compaction_report(make_console(stderr=out == "-"), run)
    return run.exit_code


def _print_failed_summary(error: str, *, as_json: bool) -> int:
    """Prints the error of a preset that raises it; returns the exit code."""

    from .compaction_report import NO_SUMMARY

    failed = {"type": "error", "error": error, "outcome": "summary_failed"}
    if as_json:
        echo_json(failed)
    else:
        echo_error(error)
    return NO_SUMMARY


def _write_messages(run: CompactCommandRun) -> None:
    from .sources import write_output

    if run.out is None:
        return
    data = run.source.shape.encode(list(run.result.messages))
    if run.out == "-":
        write_stdout(data)
    else:
        write_output(run.out, data)
