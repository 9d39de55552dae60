"""Aggregates score rows into tables: means over cuts, with bootstrap intervals."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import median

import msgspec

from ..io.installation import install_command
from ..messages.json_text import decodable
from .contestants import LEDGER, REAL, Contestant, Lineup
from .results import QUANTITIES, CutNames, LabSettings, ScoreRow, value_of
from .run import LabResults
from .surprise import HORIZONS, choose_predictor

DRAWS = 1_000
SEED = 20_250_929
LEVEL = 0.95
MIN_SESSIONS = 3
"""Fewer sessions give no interval."""
SessionValues = Sequence[float | None]
"""Values of one session's cuts; None where nothing was needed."""


class MeanInterval(msgspec.Struct, frozen=True):
    """A mean over all cuts with its 95 % bootstrap interval over sessions."""

    value: float
    low: float | None = None
    high: float | None = None


def mean(sessions: Sequence[SessionValues]) -> float | None:
    """Mean over all cuts; every cut counts the same."""
    values = [value for session in sessions for value in session if value is not None]
    return sum(values) / len(values) if values else None


def bootstrap_interval(sessions: Sequence[SessionValues]) -> MeanInterval | None:
    """The mean and its interval, from a fixed seed."""
    sums = [(sum(v for v in values if v is not None), sum(v is not None for v in values)) for values in sessions]
    sums = [pair for pair in sums if pair[1]]
    if not sums:
        return None
    totals, counts = [total for total, _ in sums], [count for _, count in sums]
    value = sum(totals) / sum(counts)
    if len(sums) < MIN_SESSIONS:
        return MeanInterval(value)
    resampled = sorted(
        sum(map(totals.__getitem__, draw)) / sum(map(counts.__getitem__, draw)) for draw in _resamples(len(sums))
    )
    return MeanInterval(value, _percentile(resampled, (1 - LEVEL) / 2), _percentile(resampled, (1 + LEVEL) / 2))


def paired_differences(ones: Sequence[SessionValues], others: Sequence[SessionValues]) -> list[SessionValues]:
    """Differences cut by cut, so that hard sessions affect both sides; both must have the same cuts."""
    return [
        [a - b for a, b in zip(one, other, strict=True) if a is not None and b is not None]
        for one, other in zip(ones, others, strict=True)
    ]


@lru_cache(16)
def _resamples(count: int) -> list[list[int]]:
    generator = random.Random(SEED)  # noqa: S311
    return [generator.choices(range(count), k=count) for _ in range(DRAWS)]


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


BUDGET_TOLERANCE = 1.05
"""Results larger than the budget by more than this factor never count as best."""


class ResultCell(msgspec.Struct, frozen=True):
    """Mean scores of one contestant at one budget and number of rounds."""

    contestant: str
    budget: int
    rounds: int
    cuts: int
    values: dict[str, float | None]
    intervals: dict[str, MeanInterval]
    tokens: float
    over: bool
    valid: float | None
    milliseconds: float
    fall: dict[str, float] = {}
    """Change from one compaction to several in a row, as a share of one's value; positive is a decrease."""


class LedgerLead(msgspec.Struct, frozen=True):
    """The ledger's lead over the best other contestant, on cuts where neither failed."""

    budget: int
    quantity: str
    best: str
    ledger: float
    """The ledger's mean on those cuts."""
    ahead: MeanInterval


class KindReport(msgspec.Struct, frozen=True):
    """Results for one kind of session."""

    kind: str
    sessions: int
    cuts: int
    cells: list[ResultCell]
    in_a_row: list[ResultCell]
    at_summary: list[ResultCell]
    after_summary: list[ResultCell]
    leads: list[LedgerLead]


class ContestantInfo(msgspec.Struct, frozen=True):
    """Name and description of a contestant."""

    name: str
    family: str
    about: str


_REAL_SUMMARY = ContestantInfo(REAL, "real", "the summary that the tool itself wrote")


class SessionDetail(msgspec.Struct, frozen=True):
    """Needed names of one session, cut by cut."""

    session: str
    kind: str
    cuts: tuple[CutNames, ...]


@decodable
class LabReport(msgspec.Struct, frozen=True):
    settings: LabSettings
    contestants: list[ContestantInfo]
    left_out: tuple[str, ...]
    kinds: list[KindReport]
    sessions: list[SessionDetail]
    not_measured: dict[str, int]
    failures: list[str]


def build_report(results: LabResults, field: Lineup) -> LabReport:
    why: dict[str, int] = {}
    for outcome in results.not_measured:
        reason = outcome.why.partition(":")[0]
        why[reason] = why.get(reason, 0) + 1
    settings = results.settings
    return LabReport(
        settings=settings,
        contestants=[*(ContestantInfo(one.name, one.family, one.about) for one in field.contestants), _REAL_SUMMARY],
        left_out=field.left_out
        + (
            ()
            if settings.surprise_by or choose_predictor()
            else (f"surprise (the package pyppmd is not installed: {install_command('lab')})",)
        ),
        kinds=[_kind_report(kind, results, field.contestants) for kind in results.kinds],
        sessions=[SessionDetail(one.session, one.kind, one.names) for one in results.sessions if one.names],
        not_measured=why,
        failures=results.failures,
    )


def _kind_report(kind: str, results: LabResults, contestants: Sequence[Contestant]) -> KindReport:
    found = [session for session in results.sessions if session.kind == kind]
    table = ScoreTable(row for session in found for row in session.rows)
    rolled = ScoreTable(row for session in found for row in session.in_a_row)
    written = ScoreTable(row for session in found for row in session.at_summary)
    followed = ScoreTable(row for session in found for row in session.after_summary)
    settings = results.settings
    names = [one.name for one in contestants]
    return KindReport(
        kind=kind,
        sessions=len({session.session for session in found}),
        cuts=len({(row.session, row.cut) for row in table.rows}),
        cells=[cell for b in settings.budgets for name in names if (cell := table.cell(name, budget=b))],
        in_a_row=[
            msgspec.structs.replace(cell, fall=_relative_fall(cell, table, rolled))
            for rounds in settings.rounds
            for name in names
            if (cell := rolled.cell(name, budget=settings.focus, rounds=rounds))
        ],
        at_summary=[cell for name in [REAL, *names] if (cell := written.cell(name))],
        after_summary=[cell for name in [REAL, *names] if (cell := followed.cell(name))],
        leads=[lead for b in settings.budgets for lead in _leads(table, b)],
    )


class ScoreTable:
    """Score rows, filtered and averaged."""

    def __init__(self, rows: Iterable[ScoreRow]) -> None:
        self.rows = list(rows)

    def of(self, contestant: str, budget: int | None = None, rounds: int | None = None) -> list[ScoreRow]:
        return [
            row
            for row in self.rows
            if row.contestant == contestant
            and (budget is None or row.budget == budget)
            and (rounds is None or row.rounds == rounds)
        ]

    def cell(self, contestant: str, budget: int | None = None, rounds: int | None = None) -> ResultCell | None:
        if not (rows := self.of(contestant, budget, rounds)):
            return None
        grouped = {quantity.key: values_by_session(rows, quantity.key) for quantity in QUANTITIES}
        checked = [row.problems == 0 for row in rows if row.problems is not None]
        tokens = sum(row.tokens for row in rows)
        limit = sum(row.budget for row in rows)
        return ResultCell(
            contestant=contestant,
            budget=budget or round(limit / len(rows)),
            rounds=rounds or 1,
            cuts=len(rows),
            values={key: mean(values) for key, values in grouped.items()},
            intervals={
                quantity.key: found
                for quantity in QUANTITIES
                if quantity.main and (found := bootstrap_interval(grouped[quantity.key])) and found.low is not None
            },
            tokens=tokens / len(rows),
            over=tokens > BUDGET_TOLERANCE * limit,
            valid=sum(checked) / len(checked) if checked else None,
            milliseconds=1000 * median(row.seconds for row in rows),
        )


def values_by_session(rows: Iterable[ScoreRow], key: str) -> list[SessionValues]:
    grouped: dict[str, list[float | None]] = {}
    for row in rows:
        grouped.setdefault(row.session, []).append(value_of(row, key))
    return list(grouped.values())


def _relative_fall(cell: ResultCell, once: ScoreTable, rolled: ScoreTable) -> dict[str, float]:
    """Decrease relative to one compaction at the same cuts."""
    pair = same_cuts(once.of(cell.contestant, cell.budget), rolled.of(cell.contestant, cell.budget, cell.rounds))
    found = {}
    for key in ("names", "in_context", *HORIZONS):
        before, after = (mean(values_by_session(rows, key)) for rows in pair)
        if before and after is not None:
            found[key] = 1 - after / before
    return found


def same_cuts(ones: Iterable[ScoreRow], others: Iterable[ScoreRow]) -> tuple[list[ScoreRow], list[ScoreRow]]:
    """Rows of the cuts that both have, in the same order: a contestant that failed has no row."""
    mine, theirs = ({(row.session, row.cut): row for row in rows} for rows in (ones, others))
    both = sorted(mine.keys() & theirs.keys())
    return [mine[cut] for cut in both], [theirs[cut] for cut in both]


def _leads(table: ScoreTable, budget: int) -> list[LedgerLead]:
    """For each main quantity, the closest contestant and the ledger's lead over it."""
    others = sorted({row.contestant for row in table.rows} - {LEDGER})
    fair = [name for name in others if (cell := table.cell(name, budget)) and not cell.over]
    found = []
    for quantity in QUANTITIES:
        leads = [lead for name in fair if quantity.main and (lead := _lead(table, budget, quantity.key, name))]
        if leads:
            found.append((min if quantity.more_is_better else max)(leads, key=lambda lead: lead.ahead.value))
    return found


def _lead(table: ScoreTable, budget: int, key: str, other: str) -> LedgerLead | None:
    rows, others = same_cuts(table.of(LEDGER, budget), table.of(other, budget))
    mine, theirs = values_by_session(rows, key), values_by_session(others, key)
    own, ahead = mean(mine), bootstrap_interval(paired_differences(mine, theirs))
    return LedgerLead(budget, key, other, own, ahead) if own is not None and ahead else None
