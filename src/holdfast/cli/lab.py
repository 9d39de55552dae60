"""`holdfast lab`: what compaction keeps of what was needed later, on real sessions, beside peers."""

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
from .limits import Count, whole_number
from .names import OneOf
from .options import ESTIMATORS
from .shape import must_be_writable, write
from .terminal import WIDEST, console
from .window import window_of

if TYPE_CHECKING:
    from rich.console import Console

    from ..lab.settings import Settings

HALVES = ("report", "learn", "all")
NO_PAGE = "none"


class Counts(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """Several numbers, with commas between them: 2k,4k,8k."""

    name = "n,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        name = param.opts[-1] if param else "a limit"
        pieces = [piece for piece in str(value).split(",") if piece.strip()] or [value]
        return tuple(sorted({whole_number(piece, name) for piece in pieces}))


@click.command("lab")
@click.argument("folders", nargs=-1, required=True, type=click.Path(readable=False), metavar="FOLDER...")
@click.option("--budget", type=Counts(), default="2k,4k,8k,16k", show_default=True, help="Compact to these sizes.")
@click.option("--rounds", type=Counts(), default="3,5,10", show_default=True, help="Compactions in a row.")
@click.option(
    "--half",
    type=OneOf("half", HALVES),
    default="report",
    show_default=True,
    metavar="NAME",
    help="Which sessions: the half nothing was learned from, the other half, or all.",
)
@click.option(
    "--sessions", type=Count(), default=100, show_default=True, help="Of more files than these, a part drawn by chance."
)
@click.option(
    "--cuts", type=Count(), default=7, show_default=True, help="Places where each is cut; of few sessions, take more."
)
@click.option("--only", metavar="WORD,…", default="", help="Contestants whose names hold one of these words.")
@click.option(
    "--estimator",
    type=OneOf("estimator", ESTIMATORS),
    default="chars/4",
    show_default=True,
    metavar="NAME",
    help="What counts tokens, for everyone.",
)
@click.option("--tune", is_flag=True, help="Say which strategy, threshold and target would have served best.")
@click.option("--model", metavar="ID", help="With --tune: whose window and prices count; else each session's own.")
@click.option("--json", "data", metavar="FILE", help="Write everything as JSON to FILE; - is standard output.")
@click.option(
    "--page",
    metavar="FILE",
    default="lab.html",
    show_default=True,
    help="Write a page with plots to FILE, to be opened offline; none writes none.",
)
@click.option("--jobs", type=Count(), default=None, help="Processes at once; as many as there are cores by default.")
def command(
    folders: tuple[str, ...],
    budget: tuple[int, ...],
    rounds: tuple[int, ...],
    half: str,
    sessions: int,
    cuts: int,
    only: str,
    estimator: str,
    tune: bool,
    model: str | None,
    data: str | None,
    page: str,
    jobs: int | None,
) -> None:
    """Measure on every session in FOLDER what compaction keeps of what was needed later.

    FOLDER holds sessions of Claude Code (~/.claude/projects), Codex (~/.codex/sessions) or pi, or plain files of
    messages. Each session is cut where its whole history was still visible; the part before is compacted by every
    contestant, and the part after says what was needed.
    """
    from ..lab.corpus import drawn, session_files
    from ..lab.settings import Settings
    from ..lab.written import must_be_ours

    _must_make_sense(tune=tune, model=model)
    for out in (data, NO_PAGE if tune else page):
        if out not in (None, "-", NO_PAGE):
            must_be_writable(out, None, force=False)
            must_be_ours(Path(out))
    there = session_files(*map(_place, folders))
    files = drawn(there, sessions)
    if len(files) < len(there):
        click.echo(f"{len(files)} of {len(there)} files are looked at: --sessions {len(there)} takes all.", err=True)
    words = tuple(word for word in only.split(",") if word.strip())
    settings = msgspec.convert(
        {"budgets": budget, "rounds": rounds, "estimator": estimator, "half": half, "cuts": cuts, "contestants": words},
        Settings,
    )
    processes = jobs or os.cpu_count() or 1
    if tune:
        _tune(files, settings, model, processes, data)
    else:
        _measure(files, settings, processes, data, page)


def _must_make_sense(*, tune: bool, model: str | None) -> None:
    """Said before hours of work, not after them: what an option would come to nothing with."""
    chosen = click.get_current_context().get_parameter_source("page") is ParameterSource.COMMANDLINE
    if tune and chosen:
        raise InvalidInput("--tune draws no page: leave out --page, or write its figures with --json.")
    if model is not None and not tune:
        raise InvalidInput("--model is for --tune, which counts its window and prices: add --tune, or leave it out.")
    if model is not None and not window_of(model).known:
        raise InvalidInput(f"The model {model!r} is not in the catalog: name one whose window and prices are known.")


def _place(name: str) -> str | Path:
    """A session that ships with Holdfast may be named as in other commands: example, example:harbor."""
    word, _, which = name.partition(":")
    if word != "example" or Path(name).exists():
        return name
    from ..examples import example_path

    return example_path(which) if which else example_path()


def _measure(files: list[Path], settings: Settings, jobs: int, data: str | None, page: str) -> None:
    from ..lab.contestants import field
    from ..lab.page import page_of
    from ..lab.report import report
    from ..lab.run import run
    from .lab_tables import draw

    taking_part = field(settings.contestants)
    with _progress("measuring", len(files)) as step:
        results = run(files, settings, jobs=jobs, progress=step)
    if not results.sessions:
        reasons = sorted({outcome.why.partition(":")[0] for outcome in results.not_measured})
        raise InvalidInput(f"No session could be measured ({'; '.join(reasons)}): {_advice(reasons)}.")
    found = report(results, taking_part)
    draw(_wide(console(stderr=data == "-")), found)
    if page != NO_PAGE:
        write(page, page_of(found).encode())
        click.echo(f"\n  The page: {page}", err=data == "-")
    _write(data, msgspec.json.encode(found))


def _advice(reasons: Iterable[str]) -> str:
    """What would help: nothing that was done already."""
    from ..lab.trial import NO_ROOM, OTHER_HALF, TOO_SHORT

    helping = {OTHER_HALF: "try --half all", TOO_SHORT: "name longer sessions", NO_ROOM: "give a larger --budget"}
    return ", or ".join(helping[reason] for reason in reasons if reason in helping) or "name other sessions"


def _tune(files: list[Path], settings: Settings, model: str | None, jobs: int, data: str | None) -> None:
    from ..lab.tuning import advice, tune
    from .lab_tables import draw_advice

    with _progress("simulating", len(files)) as step:
        simulated = tune(files, settings, model=model, jobs=jobs, progress=step)
    found = advice(simulated)
    draw_advice(_wide(console(stderr=data == "-")), found)
    _write(data, msgspec.json.encode(found))


def _write(target: str | None, encoded: bytes) -> None:
    if target == "-":
        click.echo(encoded)
    elif target:
        write(target, encoded + b"\n")


def _wide(made: Console) -> Console:
    """Tables in a pipe are as wide as those on a wide screen, unless somebody chose the width."""
    if not made.is_terminal and made.file in (sys.stdout, sys.stderr) and "COLUMNS" not in os.environ:
        made.width = WIDEST
    return made


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr, if that is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = console(stderr=True)
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
