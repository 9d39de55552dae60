"""`holdfast lab`: measures on real sessions how much compaction retains, compared with peers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from ..errors import InvalidInput
from ..io.arguments import parse_count
from .console import MAX_WIDTH, make_console
from .model_window import window_of
from .options import CountType, NameChoice, estimator_names
from .output import echo, write_stdout
from .sources import check_writable, resolve_example, write_output

if TYPE_CHECKING:
    from rich.console import Console

    from ..lab.results import LabSettings

HALVES = ("report", "learn", "all")
NO_PAGE = "none"


class CountListType(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """Comma-separated counts: 2k,4k,8k."""

    name = "n,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        name = param.opts[-1] if param else "a limit"
        pieces = [piece for piece in str(value).split(",") if piece.strip()] or [value]
        return tuple(sorted({parse_count(piece, name) for piece in pieces}))


@click.command("lab")
@click.argument("folders", nargs=-1, required=True, type=click.Path(readable=False), metavar="FOLDER...")
@click.option(
    "--budget", type=CountListType(), default="2k,4k,8k,16k,32k", show_default=True, help="Token budgets to compact to."
)
@click.option(
    "--rounds", type=CountListType(), default="3,5,10", show_default=True, help="Numbers of successive compactions."
)
@click.option(
    "--half",
    type=NameChoice("half", HALVES),
    default="all",
    show_default=True,
    metavar="NAME",
    help="Sessions to use: all, or of those the ledger was tuned on the half left out (report) or used (learn).",
)
@click.option(
    "--sessions",
    type=CountType(),
    default=100,
    show_default=True,
    help="Maximum number of files; more are sampled.",
)
@click.option(
    "--cuts",
    type=CountType(),
    default=7,
    show_default=True,
    help="Cuts per session; use more with few sessions.",
)
@click.option("--only", metavar="WORD,…", default="", help="Only contestants whose names contain one of these words.")
@click.option(
    "--estimator",
    type=NameChoice("estimator", estimator_names),
    default="chars/4",
    show_default=True,
    metavar="NAME",
    help="Token estimator for all contestants.",
)
@click.option(
    "--surprise-by",
    metavar="MODEL",
    help="Measure surprise with this model's log-probabilities, in nats a token, instead of PPMd's.",
)
@click.option(
    "--surprise-url",
    metavar="URL",
    help="With --surprise-by: its completions server; default: OPENAI_BASE_URL, else http://127.0.0.1:8000.",
)
@click.option("--tune", is_flag=True, help="Find the best strategy, threshold and target.")
@click.option(
    "--model", metavar="ID", help="With --tune: model whose window and prices to use; default: each session's own."
)
@click.option("--json", "data", metavar="FILE", help="Write the results as JSON to FILE; - is stdout.")
@click.option(
    "--page",
    metavar="FILE",
    default="lab.html",
    show_default=True,
    help="Write an offline page with plots to FILE; none disables it.",
)
@click.option("--jobs", type=CountType(), default=None, help="Number of processes; default: one per core.")
def lab_command(
    folders: tuple[str, ...],
    budget: tuple[int, ...],
    rounds: tuple[int, ...],
    half: str,
    sessions: int,
    cuts: int,
    only: str,
    estimator: str,
    surprise_by: str | None,
    surprise_url: str | None,
    tune: bool,
    model: str | None,
    data: str | None,
    page: str,
    jobs: int | None,
) -> None:
    """Measure on the sessions in FOLDER how much of what was needed later compaction keeps.

    FOLDER holds sessions of Claude Code (~/.claude/projects), Codex (~/.codex/sessions) or pi, or plain files of
    messages. Each session is cut where its whole history was still visible; every contestant compacts the part
    before the cut, and the part after it shows what was needed, and how well the context predicts it.
    """
    from ..lab.corpus import sample_files, session_files
    from ..lab.page import check_replaceable
    from ..lab.results import LabSettings

    _check_options(tune=tune, model=model)
    server = _surprise_server(surprise_by, surprise_url, tune=tune)
    for out in (data, NO_PAGE if tune else page):
        if out not in (None, "-", NO_PAGE):
            check_writable(out, None, force=False)
            check_replaceable(Path(out))
    found = session_files(*map(resolve_example, folders))
    files = sample_files(found, sessions)
    if len(files) < len(found):
        echo(f"using {len(files)} of {len(found)} files: --sessions {len(found)} uses all.", err=True)
    words = tuple(word for word in only.split(",") if word.strip())
    settings = msgspec.convert(
        {"budgets": budget, "rounds": rounds, "estimator": estimator, "half": half, "cuts": cuts, "contestants": words}
        | {"surprise_by": surprise_by, "surprise_url": server},
        LabSettings,
    )
    processes = jobs or os.cpu_count() or 1
    if tune:
        _run_tuning(files, settings, model, processes, data)
    else:
        _run_measurement(files, settings, processes, data, page)


def _check_options(*, tune: bool, model: str | None) -> None:
    """Rejects options without effect before any work is done."""
    chosen = click.get_current_context().get_parameter_source("page") is ParameterSource.COMMANDLINE
    if tune and chosen:
        raise InvalidInput("--tune writes no page: leave out --page, or write the results with --json.")
    if model is not None and not tune:
        raise InvalidInput("--model only applies to --tune: add --tune, or leave out --model.")
    if model is not None and not window_of(model).known:
        raise InvalidInput(f"The model {model!r} is not in the catalog: name one with a known window and price.")


def _surprise_server(model: str | None, url: str | None, *, tune: bool) -> str:
    """Address of the server for --surprise-by; empty without it."""
    if tune and (model or url):
        raise InvalidInput("--tune does not measure surprise: leave out --surprise-by and --surprise-url.")
    if model is None:
        if url is not None:
            raise InvalidInput("--surprise-url only applies to --surprise-by: name the model, or leave out the URL.")
        return ""
    from ..lab.surprise_server import DEFAULT_URL, check_server_url

    found = url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL
    check_server_url(found)
    return found


def _run_measurement(files: list[Path], settings: LabSettings, jobs: int, data: str | None, page: str) -> None:
    from ..lab.contestants import choose_contestants
    from ..lab.page import render_page
    from ..lab.report import build_report
    from ..lab.run import run_lab
    from .lab_tables import print_lab_report

    lineup = choose_contestants(settings.contestants)
    with _progress_bar("measuring", len(files)) as step:
        results = run_lab(files, settings, jobs=jobs, progress=step)
    if not results.sessions:
        reasons = sorted({outcome.why.partition(":")[0] for outcome in results.not_measured})
        raise InvalidInput(f"No session could be measured ({'; '.join(reasons)}): {_suggest_fix(reasons)}.")
    found = build_report(results, lineup)
    print_lab_report(_widen_pipe(make_console(stderr=data == "-")), found)
    if page != NO_PAGE:
        write_output(page, render_page(found).encode())
        echo(f"\n  The page: {page}", err=data == "-")
    _write_json(data, msgspec.json.encode(found))


def _suggest_fix(reasons: Iterable[str]) -> str:
    """Suggests options for the reasons why nothing was measured."""
    from ..lab.trial import NO_ROOM, OTHER_HALF, TOO_SHORT

    fixes = {OTHER_HALF: "try --half all", TOO_SHORT: "name longer sessions", NO_ROOM: "give a larger --budget"}
    return ", or ".join(fixes[reason] for reason in reasons if reason in fixes) or "name other sessions"


def _run_tuning(files: list[Path], settings: LabSettings, model: str | None, jobs: int, data: str | None) -> None:
    from ..lab.tuning import choose_policy, tune
    from .lab_tables import print_tuning_advice

    with _progress_bar("simulating", len(files)) as step:
        simulated = tune(files, settings, model=model, jobs=jobs, progress=step)
    found = choose_policy(simulated)
    print_tuning_advice(_widen_pipe(make_console(stderr=data == "-")), found)
    _write_json(data, msgspec.json.encode(found))


def _write_json(target: str | None, encoded: bytes) -> None:
    if target == "-":
        write_stdout(encoded + b"\n")
    elif target:
        write_output(target, encoded + b"\n")


def _widen_pipe(output: Console) -> Console:
    """Uses the full width in a pipe, unless COLUMNS is set."""
    if not output.is_terminal and output.file in (sys.stdout, sys.stderr) and "COLUMNS" not in os.environ:
        output.width = MAX_WIDTH
    return output


@contextmanager
def _progress_bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Progress bar on stderr, if that is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = make_console(stderr=True)
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        yield lambda: progress.advance(task)
