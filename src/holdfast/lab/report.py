"""From rows to tables: means over cuts, and how sure they are. Plain data, for the terminal, JSON and the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from .bootstrap import Mean, Values, differences, interval, mean
from .contestants import LEDGER, REAL, Contestant, Field
from .quantities import QUANTITIES, value_of
from .results import Names, Row
from .run import Results
from .settings import Settings

ROOM = 1.05
"""Who is larger than the budget by more than this takes no prize."""


class Cell(msgspec.Struct, frozen=True):
    """One contestant under one condition."""

    contestant: str
    budget: int
    rounds: int
    cuts: int
    values: dict[str, float | None]
    intervals: dict[str, Mean]
    tokens: float
    over: bool
    valid: float | None
    milliseconds: float
    fall: dict[str, float] = {}
    """In a row: the part of what one compaction keeps that several lose."""


class Lead(msgspec.Struct, frozen=True):
    """The ledger beside the best of all others, on the cuts where neither failed."""

    budget: int
    quantity: str
    best: str
    ledger: float
    """On those cuts."""
    ahead: Mean


class Kind(msgspec.Struct, frozen=True):
    """One kind of session."""

    kind: str
    sessions: int
    cuts: int
    cells: list[Cell]
    in_a_row: list[Cell]
    at_summary: list[Cell]
    leads: list[Lead]


class Person(msgspec.Struct, frozen=True):
    """A contestant, for those who read."""

    name: str
    family: str
    about: str


_WRITTEN = Person(REAL, "real", "the summary that the tool itself wrote")


class Shown(msgspec.Struct, frozen=True):
    """One session, cut by cut."""

    session: str
    kind: str
    cuts: tuple[Names, ...]


class Report(msgspec.Struct, frozen=True):
    settings: Settings
    contestants: list[Person]
    left_out: tuple[str, ...]
    kinds: list[Kind]
    sessions: list[Shown]
    not_measured: dict[str, int]
    failures: list[str]


def report(results: Results, field: Field) -> Report:
    why: dict[str, int] = {}
    for outcome in results.not_measured:
        reason = outcome.why.partition(":")[0]
        why[reason] = why.get(reason, 0) + 1
    return Report(
        settings=results.settings,
        contestants=[*(Person(one.name, one.family, one.about) for one in field.contestants), _WRITTEN],
        left_out=field.left_out,
        kinds=[_kind(kind, results, field.contestants) for kind in results.kinds],
        sessions=[Shown(one.session, one.kind, one.names) for one in results.sessions if one.names],
        not_measured=why,
        failures=results.failures,
    )


def _kind(kind: str, results: Results, contestants: Sequence[Contestant]) -> Kind:
    found = [session for session in results.sessions if session.kind == kind]
    table = Table(row for session in found for row in session.rows)
    rolled = Table(row for session in found for row in session.in_a_row)
    written = Table(row for session in found for row in session.at_summary)
    settings = results.settings
    names = [one.name for one in contestants]
    return Kind(
        kind=kind,
        sessions=len({session.session for session in found}),
        cuts=len({(row.session, row.cut) for row in table.rows}),
        cells=[cell for b in settings.budgets for name in names if (cell := table.cell(name, budget=b))],
        in_a_row=[
            msgspec.structs.replace(cell, fall=_fall(cell, table, rolled))
            for rounds in settings.rounds
            for name in names
            if (cell := rolled.cell(name, budget=settings.focus, rounds=rounds))
        ],
        at_summary=[cell for name in [REAL, *names] if (cell := written.cell(name))],
        leads=[lead for b in settings.budgets for lead in _leads(table, b)],
    )


class Table:
    """Rows, and what they come to."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)

    def of(self, contestant: str, budget: int | None = None, rounds: int | None = None) -> list[Row]:
        return [
            row
            for row in self.rows
            if row.contestant == contestant
            and (budget is None or row.budget == budget)
            and (rounds is None or row.rounds == rounds)
        ]

    def cell(self, contestant: str, budget: int | None = None, rounds: int | None = None) -> Cell | None:
        if not (rows := self.of(contestant, budget, rounds)):
            return None
        grouped = {quantity.key: by_session(rows, quantity.key) for quantity in QUANTITIES}
        checked = [row.problems == 0 for row in rows if row.problems is not None]
        tokens = sum(row.tokens for row in rows)
        limit = sum(row.budget for row in rows)
        return Cell(
            contestant=contestant,
            budget=budget or round(limit / len(rows)),
            rounds=rounds or 1,
            cuts=len(rows),
            values={key: mean(values) for key, values in grouped.items()},
            intervals={
                quantity.key: found
                for quantity in QUANTITIES
                if quantity.main and (found := interval(grouped[quantity.key])) and found.low is not None
            },
            tokens=tokens / len(rows),
            over=tokens > ROOM * limit,
            valid=sum(checked) / len(checked) if checked else None,
            milliseconds=1000 * median(row.seconds for row in rows),
        )


def by_session(rows: Iterable[Row], key: str) -> list[Values]:
    grouped: dict[str, list[float | None]] = {}
    for row in rows:
        grouped.setdefault(row.session, []).append(value_of(row, key))
    return list(grouped.values())


def _fall(cell: Cell, once: Table, rolled: Table) -> dict[str, float]:
    """Beside one compaction at the same cuts."""
    pair = same_cuts(once.of(cell.contestant, cell.budget), rolled.of(cell.contestant, cell.budget, cell.rounds))
    found = {}
    for key in ("names", "in_context"):
        before, after = (mean(by_session(rows, key)) for rows in pair)
        if before and after is not None:
            found[key] = 1 - after / before
    return found


def same_cuts(ones: Iterable[Row], others: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of cuts that both have, in the same order: who fails at a cut has no row there."""
    mine, theirs = ({(row.session, row.cut): row for row in rows} for rows in (ones, others))
    both = sorted(mine.keys() & theirs.keys())
    return [mine[cut] for cut in both], [theirs[cut] for cut in both]


def _leads(table: Table, budget: int) -> list[Lead]:
    """Who comes nearest to the ledger, and how far ahead it is, for each main quantity."""
    others = sorted({row.contestant for row in table.rows} - {LEDGER})
    fair = [name for name in others if (cell := table.cell(name, budget)) and not cell.over]
    found = []
    for quantity in QUANTITIES:
        leads = [lead for name in fair if quantity.main and (lead := _lead(table, budget, quantity.key, name))]
        if leads:
            found.append((min if quantity.more_is_better else max)(leads, key=lambda lead: lead.ahead.value))
    return found


def _lead(table: Table, budget: int, key: str, other: str) -> Lead | None:
    rows, others = same_cuts(table.of(LEDGER, budget), table.of(other, budget))
    mine, theirs = by_session(rows, key), by_session(others, key)
    own, ahead = mean(mine), interval(differences(mine, theirs))
    return Lead(budget, key, other, own, ahead) if own is not None and ahead else None
