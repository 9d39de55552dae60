"""Learns the weights of names and lines from what real sessions needed later, and writes `ledger/weights.toml`.

    python scripts/learn.py FOLDER

Only sessions of the learning half are read (by the hash of their id, as in the lab); the other half is for reporting.
Each cut has the same weight, however much was needed there, as in the lab's scores.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holdfast.lab.corpus import in_half, iter_cuts, session_files, session_name
from holdfast.lab.needs import find_needed
from holdfast.ledger.extract import HistoryExtractor
from holdfast.ledger.scoring import (
    NAME_FEATURES,
    OWN_FEATURES,
    SHARED_FEATURES,
    feature_products,
    line_features,
    name_features,
    name_probability,
)
from holdfast.transcripts import read_transcript

CUT_FRACTIONS = tuple(sixteenth / 16 for sixteenth in range(2, 16))
TARGET = Path(__file__).parents[1] / "src/holdfast/ledger/weights.toml"
ROOM = 8_000
"""Token budget for candidate lines: more room reaches further back."""
PENALTY, CURVE_PENALTY = 2.0, 5.0
ROUNDS = 40
Rows = list[tuple[list[list[float]], list[bool]]]
Table = npt.NDArray[np.float64]
Points = list[tuple[float, float]]
HEADER = """\
# Weights of names and lines: two logistic models, learned by scripts/learn.py from what real sessions of a coding
# agent needed later. A feature adds its value times its weight, or its piecewise linear curve through the points
# (value, addition). A feature with a number is nearness: 1 / (1 + age / number).
"""


def read_cuts(file: Path) -> list[tuple[frozenset[str], frozenset[str], HistoryExtractor]]:
    """For every cut of a session: needed names, needed lines, and the extractor's state."""
    transcript = read_transcript(file)
    found = []
    for cut in iter_cuts(transcript, CUT_FRACTIONS) if in_half(session_name(transcript, file), "learn") else ():
        needed = find_needed(cut.before, cut.after)
        history = HistoryExtractor()
        history.read(cut.before, range(1, len(cut.before) + 1))
        found.append((needed.names, needed.lines, history))
    return found


def stack_rows(rows: Rows) -> tuple[Table, Table, Table]:
    """Features, labels and sample weights; every cut has the same total weight."""
    rows = [(features, labels) for features, labels in rows if any(labels)]
    x = np.concatenate([np.array(features, float) for features, _ in rows])
    y = np.concatenate([np.array(labels, float) for _, labels in rows])
    weight = np.concatenate([np.full(len(labels), 1 / sum(labels)) for _, labels in rows])
    return x, y, weight / weight.mean()


def learn(x: Table, y: Table, weight: Table, penalty: float) -> Table:
    """Logistic regression by Newton's method."""
    learned = np.zeros(x.shape[1])
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(x @ learned, -50, 50)))
        slope = x.T @ (weight * (y - chance)) - penalty * learned
        bend = (x * (weight * chance * (1 - chance))[:, None]).T @ x + penalty * np.eye(x.shape[1])
        learned += np.linalg.solve(bend, slope)
    return learned


def learn_curves(x: Table, y: Table, weight: Table) -> list[Points | float]:
    """Like `learn`, with a piecewise linear curve per many-valued feature; knots at fifths of the needed values."""
    knots = [_knots(column, column[y > 0]) for column in x.T]
    bent = [np.maximum(0, x[:, place, None] - np.array(at)) for place, at in enumerate(knots)]
    columns = np.concatenate([x, *bent], axis=1)
    scale = columns.std(axis=0)
    scale[0] = 1.0  # the bias
    learned = learn(columns / scale, y, weight, CURVE_PENALTY) / scale
    curves: list[Points | float] = []
    used = x.shape[1]
    for place, at in enumerate(knots):
        turns, used = learned[used : used + len(at)], used + len(at)
        ends = [0.0, *at, float(np.max(x[:, place]))]
        heights = [learned[place] * end + sum(np.maximum(0, end - np.array(at)) * turns) for end in ends]
        curves.append(list(zip(ends, heights, strict=True)) if at else float(learned[place]))
    return curves


def _knots(values: Table, needed: Table) -> list[float]:
    low, high = np.min(values), np.max(values)
    if len(np.unique(values)) <= 2:
        return []
    fifths = np.quantile(needed, (0.2, 0.4, 0.6, 0.8)).round(2)
    return [float(at) for at in np.unique(fifths) if low < at < high]


def render_table(model: str, features: Sequence[str], learned: Iterable[Points | float]) -> Iterator[str]:
    yield f"[{model}]"
    for feature, adds in zip(features, learned, strict=True):
        name = f'"{feature}"' if " " in feature else feature
        points = [f"[{x:.2f}, {y:.2f}]" for x, y in adds] if isinstance(adds, list) else []
        yield f"{name} = [{', '.join(points)}]" if points else f"{name} = {adds:.3f}"
    yield ""


def main(folder: str) -> None:
    with ProcessPoolExecutor() as workers:
        found = [cut for session in workers.map(read_cuts, session_files(Path(folder))) for cut in session]
    print(f"{len(found)} cuts")
    rows: Rows = []
    for needed, _, history in found:
        pairs = list(name_features(history))
        features = [[*features, *feature_products(features)] for _, features in pairs]
        rows.append((features, [name in needed for name, _ in pairs]))
    names = learn(*stack_rows(rows), PENALTY)
    rows = []
    for _, needed, history in found:
        known = {name: name_probability(tuple(names), features) for name, features in name_features(history)}
        lines = list(line_features(history, known, ROOM))
        rows.append(([shared + own for _, shared, own in lines], [line.text.strip() in needed for line, *_ in lines]))
    curves = learn_curves(*stack_rows(rows))
    text = (
        HEADER,
        *render_table("names", NAME_FEATURES, names),
        *render_table("lines", (*SHARED_FEATURES, *OWN_FEATURES), curves),
    )
    TARGET.write_text("\n".join(text), encoding="utf-8")
    print(TARGET.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(sys.argv[1])
