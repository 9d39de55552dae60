"""Learns the weights of names and lines from what real sessions needed later, and writes `ledger/weights.toml`.

    python scripts/learn.py FOLDER

Only sessions of the learning half are read (by the hash of their id, as in the lab); the other half is for reporting.
Each cut has the same weight, however much was needed there, as in the lab's scores.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.lab.corpus import in_half, iter_cuts, session_files, session_name
from holdfast.lab.needs import find_needed
from holdfast.lab.surprise import ContinuationPart, next_passages
from holdfast.ledger.extract import HistoryExtractor
from holdfast.ledger.lines import FILE_KINDS
from holdfast.ledger.scoring import (
    EDITED_ELSEWHERE,
    EDITED_IN_FILES,
    NAME_FEATURES,
    OWN_FEATURES,
    REUSED,
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
PIECE = 16
"""Characters of a piece of text that counts as written again; shorter ones recur by chance."""
MIN_LINE = 8
"""A line shorter than a piece counts if it is written again whole and has at least so many characters."""
STEP_WEIGHTS = (4, 2, 2, 1, 1, 1, 1, 1)
"""Weights of the next steps: the next one is certain to come, and later ones have results of their own to draw on."""
Table = npt.NDArray[np.float64]
Points = list[tuple[float, float]]
HEADER = """\
# Weights of four logistic models, learned by scripts/learn.py from what real sessions of coding agents needed later:
# names that were referred to, lines that were edited (those of files, and all others), and the share of a line that the
# next steps wrote again.
# A feature adds its value times its weight, or its piecewise linear curve through the points (value, addition).
# A feature with a number is nearness: 1 / (1 + age / number).
"""


class LearnCut(NamedTuple):
    """What a cut of a session teaches."""

    names: frozenset[str]
    lines: frozenset[str]
    """Names and lines that were needed after it."""
    written: dict[str, int]
    """What the next steps wrote anew, in pieces and short lines, with the weight of the first step that wrote it."""
    history: HistoryExtractor


class Sample(NamedTuple):
    """The names or lines of one cut, as rows to learn from."""

    features: list[list[float]]
    labels: list[float]
    weights: list[float]


def read_cuts(file: Path) -> list[LearnCut]:
    """Reads every cut of a session, if it is of the learning half."""
    transcript = read_transcript(file)
    found = []
    for cut in iter_cuts(transcript, CUT_FRACTIONS) if in_half(session_name(transcript, file), "learn") else ():
        needed = find_needed(cut.before, cut.after)
        history = HistoryExtractor()
        history.read(cut.before, range(1, len(cut.before) + 1))
        found.append(LearnCut(needed.names, needed.lines, find_written(next_passages(cut.after)), history))
    return found


def find_written(passages: Iterable[ContinuationPart]) -> dict[str, int]:
    """Returns the pieces that the agent wrote before anything else gave them, and its short lines, with their weights.

    What a tool result, a user message or an earlier step of the agent gave first needs no context any more.
    """
    written: dict[str, int] = {}
    given: set[str] = set()
    for step, own, text in passages:
        pieces = split_pieces(text)
        if own:
            short = [line for part in text.splitlines() if MIN_LINE <= len(line := part.strip()) < PIECE]
            for piece in {*pieces, *short} - given:
                written.setdefault(piece, STEP_WEIGHTS[step - 1])
        given.update(pieces)
    return written


def split_pieces(text: str) -> list[str]:
    """Returns the piece that each character begins; a shorter text is a piece itself, unless too short to count."""
    if len(text) < PIECE:
        return [text] if len(text) >= MIN_LINE else []
    return [text[start : start + PIECE] for start in range(len(text) - PIECE + 1)]


def reused_shares(texts: Iterable[str], written: dict[str, int]) -> list[float]:
    """Returns the share of each text that was written again, from 0 to 1, weighted by the steps that wrote it.

    Texts that hold the same piece share its weight: one of them in the context is enough.
    """
    stripped = [text.strip() for text in texts]
    found = [split_pieces(text) for text in stripped]
    holders = Counter(piece for pieces in found for piece in written.keys() & pieces)
    shares = []
    for text, pieces in zip(stripped, found, strict=True):
        covered = [0.0] * len(text)
        for start, piece in enumerate(pieces):
            if piece in holders:
                worth = written[piece] / holders[piece]
                covered[start : start + PIECE] = [max(worth, known) for known in covered[start : start + PIECE]]
        shares.append(min(1.0, sum(covered) / max(1, len(text)) / max(STEP_WEIGHTS)))
    return shares


def stack_samples(samples: Iterable[Sample]) -> tuple[Table, Table, Table]:
    """Features, labels and sample weights; what was needed at a cut has the same total weight at every cut."""
    used = [sample for sample in samples if any(sample.labels)]
    x = np.concatenate([np.array(sample.features, float) for sample in used])
    y = np.concatenate([np.array(sample.labels, float) for sample in used])
    weight = np.concatenate([np.array(one.weights) / np.dot(one.labels, one.weights) for one in used])
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
    scale[scale == 0] = 1.0  # the bias, and kinds that do not occur
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


def sample_names(cut: LearnCut) -> Sample:
    """Returns the names of a cut, labelled by whether they were needed."""
    pairs = list(name_features(cut.history))
    features = [[*features, *feature_products(features)] for _, features in pairs]
    return Sample(features, [float(name in cut.names) for name, _ in pairs], [1.0] * len(pairs))


def sample_lines(cut: LearnCut, names: Sequence[float]) -> tuple[Sample, Sample]:
    """Returns the lines of a cut twice: labelled by whether they were edited, and by how much was written again."""
    known = {name: name_probability(names, features) for name, features in name_features(cut.history)}
    found = list(line_features(cut.history, known, ROOM))
    texts = [line.text for line, *_ in found]
    features = [shared + own for _, shared, own in found]
    edited = Sample(features, [float(text.strip() in cut.lines) for text in texts], [1.0] * len(texts))
    return edited, Sample(features, reused_shares(texts, cut.written), [float(len(text)) for text in texts])


def main(folder: str) -> None:
    with ProcessPoolExecutor() as workers:
        found = [cut for session in workers.map(read_cuts, session_files(Path(folder))) for cut in session]
    print(f"{len(found)} cuts")
    names = learn(*stack_samples(map(sample_names, found)), PENALTY)
    edited, reused = zip(*(sample_lines(cut, tuple(names)) for cut in found), strict=True)
    features = (*SHARED_FEATURES, *OWN_FEATURES)
    x, y, weight = stack_samples(edited)
    in_files = x[:, [features.index(kind) for kind in FILE_KINDS]].any(axis=1)
    text = (
        HEADER,
        *render_table("names", NAME_FEATURES, names),
        *render_table(EDITED_IN_FILES, features, learn_curves(x[in_files], y[in_files], weight[in_files])),
        *render_table(EDITED_ELSEWHERE, features, learn_curves(x[~in_files], y[~in_files], weight[~in_files])),
        *render_table(REUSED, features, learn_curves(*stack_samples(reused))),
    )
    TARGET.write_text("\n".join(text), encoding="utf-8")
    print(TARGET.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(sys.argv[1])
