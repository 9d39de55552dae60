"""Files of the lab for tests of the inspector, with any text where a report has names."""

from __future__ import annotations

from pathlib import Path

import msgspec

from holdfast.lab.contestants import LEDGER
from holdfast.lab.page import render_page
from holdfast.lab.report import ContestantInfo, KindReport, LabReport, LedgerLead, MeanInterval, ResultCell
from holdfast.lab.results import QUANTITIES, LabSettings
from holdfast.lab.simulation import SimulatedPolicy
from holdfast.lab.tuning import PolicyResult, TuningAdvice

BUDGETS = (2_000, 4_000, 8_000)


def cell(contestant: str, budget: int, kept: float, rounds: int = 1, *, over: bool = False) -> ResultCell:
    values: dict[str, float | None] = {quantity.key: kept for quantity in QUANTITIES}
    return ResultCell(contestant, budget, rounds, 7, values, {}, budget * 0.98, over, 1.0, 12.3)


def lab_report(other: str = "tail window", kind: str = "codex") -> LabReport:
    cells = [cell(name, budget, kept) for budget in BUDGETS for name, kept in ((other, 0.41), (LEDGER, 0.87))]
    cells.append(cell("too large", 4_000, 0.99, over=True))
    repeated = [cell(name, 4_000, kept, 3) for name, kept in ((other, 0.3), (LEDGER, 0.8))]
    lead = LedgerLead(4_000, "in_context", other, 0.87, MeanInterval(0.46, 0.4, 0.5))
    kinds = [KindReport(one, 5, 35, cells, repeated, [cell(other, 3_000, 0.5)], [], [lead]) for one in (kind, "pi")]
    contestants = [ContestantInfo(other, "simple", other), ContestantInfo(LEDGER, "holdfast", "the ledger")]
    settings = LabSettings(budgets=BUDGETS, rounds=(3,), estimator=other)
    return LabReport(settings, contestants, (other,), kinds, [], {other: 3}, [other])


def tuning_advice(strategy: str = "ledger") -> TuningAdvice:
    lines = [PolicyResult(SimulatedPolicy(strategy, 0.85, 0.5), 4, 2_000_000, 1_900_000, 6.5, 2.1, 0.93)]
    return TuningAdvice(5, 4, 326, lines, lines[0], f"Best for these sessions: {strategy} at 85% down to 50%.")


def write_reports(folder: Path, text: str = "tail window") -> None:
    """Writes each kind of file that the lab writes, and others that it does not."""
    folder.mkdir(exist_ok=True)
    (folder / "lab.html").write_text(render_page(lab_report(text, text)))
    (folder / "measured.json").write_bytes(msgspec.json.encode(lab_report(text, text)))
    (folder / "tuned.json").write_bytes(msgspec.json.encode(tuning_advice(text)))
    (folder / "package.json").write_text('{"name": "harbour"}')
    (folder / "index.html").write_text("<!doctype html><p>The harbour's own page")
    (folder / "notes.txt").write_text("settings")
