"""`holdfast inspect`: token breakdown of a context."""

from __future__ import annotations

from typing import Any

import click

from ..compaction.breakdown import break_down
from ..messages import COMMON, decode_all, find_problems, rules_for
from ..sessions.session_ids import shorten_ids
from ..tokens import count_tokens
from . import options
from .console import make_console, show_progress
from .context_report import ContextReport
from .model_window import choose_estimator, window_of
from .options import CountType
from .output import echo_json
from .sources import Source, is_example, name_file_in_errors, open_source
from .stores import StoreLocation, find_store

MAX_LISTED_SESSIONS = 40
"""Sessions listed in a report: each has to be opened to be counted."""


@click.command("inspect")
@options.file_argument
@click.option(
    "--largest", type=CountType(), default=5, show_default=True, help="Number of largest tool results to list."
)
@options.format_option
@options.model_option
@options.estimator_option
@options.session_option
@options.whole_option
@options.json_option
def inspect_command(
    file: str,
    largest: int,
    format: str | None,
    model: str | None,
    estimator: str | None,
    session: str | None,
    whole: bool,
    as_json: bool,
) -> None:
    """Show where the tokens of FILE are: by role, tool and turn.

    FILE is anything that `holdfast compact` takes. For a store with several sessions, list them.
    """
    location = _named_store(file) if session is None else None
    if (
        location is not None
        and (listed := _list_sessions(location, None if as_json else MAX_LISTED_SESSIONS)) is not None
    ):
        rows, count = listed
        if as_json:
            echo_json({"store": location.path, "sessions": rows})
        else:
            from .context_report import print_session_list

            print_session_list(make_console(), location.path, rows, count)
        return
    with show_progress("reading"):
        source = open_source(file, session=session, whole=whole)
        report = build_context_report(source, model=model, estimator=estimator, format=format)
    if as_json:
        echo_json(_context_json(report, largest))
    else:
        from .context_report import print_context_report

        print_context_report(make_console(), report, largest)


def build_context_report(
    source: Source, *, model: str | None, estimator: str | None, format: str | None
) -> ContextReport:
    """Counts tokens and checks the wire format; changes and prints nothing."""
    window = window_of(model, source)
    token_estimator = choose_estimator(estimator, window.model)
    with name_file_in_errors(source):
        messages, name = decode_all(source.messages, format or source.format)
    parts = break_down(
        messages,
        token_estimator,
        source.system,
        source.tools,
        reports=source.reports,
        compacted_at=source.compacted_at,
    )
    covered_estimate = None
    if source.reported is not None:
        whole = source.reported.covers >= len(messages)
        covered_estimate = parts.tokens
        if not whole:
            covered_estimate -= token_estimator.tokens(
                sum(map(token_estimator.measure, messages[source.reported.covers :]))
            )
    return ContextReport(
        source=source,
        window=window,
        estimator=token_estimator.name,
        format="" if name == COMMON else name,
        breakdown=parts,
        covered_estimate=covered_estimate,
        summaries=tuple(count_tokens(token_estimator, past.summary or "") for past in source.past_compactions),
        problems=find_problems(messages, rules_for(name)),
    )


def _named_store(name: str) -> StoreLocation | None:
    return None if name == "-" or is_example(name) else find_store(name)


def _list_sessions(location: StoreLocation, most: int | None) -> tuple[list[dict[str, Any]], int] | None:
    """Newest sessions of a store, and their total number; None if a single session is meant."""
    if location.session_id is not None:
        return None
    with location.open() as sessions, show_progress("reading sessions"):
        records = sessions.list()
        if len(records) == 1:
            return None
        rows, short = [], shorten_ids(record.id for record in records)
        for record in records[:most]:
            newest = sessions.events(record.id, last=1)
            rows.append(
                {
                    "id": record.id,
                    "short": short[record.id],
                    "owner": record.owner,
                    "model": record.model,
                    "events": record.version,
                    "tokens": sessions.size(record.id).tokens,
                    "created": record.created,
                    "last": newest[0].time if newest else record.created,
                }
            )
    return rows, len(records)


def _context_json(report: ContextReport, largest: int) -> dict[str, Any]:
    source, parts, reported = report.source, report.breakdown, report.source.reported
    return {
        "file": source.name,
        "kind": source.kind,
        "id": source.id,
        "format": report.format or None,
        "model": report.window.model,
        "window": report.window.tokens,
        "estimator": report.estimator,
        "tokens": report.tokens,
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
            for past, size in zip(source.past_compactions, report.summaries, strict=True)
        ],
        "usage": reported
        and {"reported": reported.tokens, "estimated": report.covered_estimate, "messages": reported.covers},
        "problems": report.problems,
        "notes": source.notes,
    }
