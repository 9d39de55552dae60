"""Learn what names and lines are worth from what real sessions needed later, and write `ledger/weights.toml`.

    python scripts/learn.py FOLDER

Only sessions of the learning half are read (by the hash of their id, as in the lab); the other half is for
reporting. Each cut weighs the same, however much was needed there: that is how the lab counts, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holdfast.lab.corpus import is_for_learning, session_files
from holdfast.lab.cuts import cuts
from holdfast.lab.needs import needs
from holdfast.ledger import worth
from holdfast.ledger.notebook import Notebook
from holdfast.transcripts import read_transcript

PLACES = tuple(sixteenth / 16 for sixteenth in range(2, 16))
TARGET = Path(__file__).parents[1] / "src/holdfast/ledger/weights.toml"
PENALTY = 2.0
ROUNDS = 40
Rows = list[tuple[list[list[float]], list[bool]]]
HEADER = """\
# What a name or a line is worth: weights of two logistic models, learned by scripts/learn.py from what came
# back later in real sessions of a coding agent. A feature with a number is nearness: 1 / (1 + age / number).
"""


def read(file: Path) -> list[tuple[frozenset[str], frozenset[str], Notebook]]:
    """Every cut of a session: the names and lines that were needed, and what a notebook holds there."""
    transcript = read_transcript(file)
    found = []
    for cut in cuts(transcript, PLACES) if is_for_learning(transcript.id or file.name) else ():
        needed = needs(cut.before, cut.after)
        notebook = Notebook()
        notebook.read(cut.before, range(1, len(cut.before) + 1))
        found.append((needed.names, needed.lines, notebook))
    return found


def learn(rows: Rows) -> npt.NDArray[np.float64]:
    """Logistic regression by Newton's method, every cut with the same weight."""
    rows = [(features, labels) for features, labels in rows if any(labels)]
    x = np.concatenate([np.array(features, float) for features, _ in rows])
    y = np.concatenate([np.array(labels, float) for _, labels in rows])
    weight = np.concatenate([np.full(len(labels), 1 / sum(labels)) for _, labels in rows])
    weight /= weight.mean()
    learned = np.zeros(x.shape[1])
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(x @ learned, -50, 50)))
        slope = x.T @ (weight * (y - chance)) - PENALTY * learned
        bend = (x * (weight * chance * (1 - chance))[:, None]).T @ x + PENALTY * np.eye(x.shape[1])
        learned += np.linalg.solve(bend, slope)
    return learned


def table(model: str, features: Sequence[str], learned: npt.NDArray[np.float64]) -> Iterator[str]:
    yield f"[{model}]"
    for feature, weight in zip(features, learned, strict=True):
        yield f'"{feature}" = {weight:.3f}' if " " in feature else f"{feature} = {weight:.3f}"
    yield ""


def main(folder: str) -> None:
    with ProcessPoolExecutor() as workers:
        found = [cut for session in workers.map(read, session_files(Path(folder))) for cut in session]
    print(f"{len(found)} cuts")
    rows: Rows = []
    for needed, _, notebook in found:
        pairs = list(worth.name_features(notebook))
        rows.append(([features for _, features in pairs], [name in needed for name, _ in pairs]))
    names = learn(rows)
    TARGET.write_text("\n".join((HEADER, *table("names", worth.NAME_FEATURES, names))), encoding="utf-8")
    worth.weights.cache_clear()
    rows = []
    for _, needed, notebook in found:
        known = {name: worth.chance(tuple(names), features) for name, features in worth.name_features(notebook)}
        lines = list(worth.line_features(notebook, known))
        rows.append(([features for _, features in lines], [line.text.strip() in needed for line, _ in lines]))
    lines_learned = learn(rows)
    text = (HEADER, *table("names", worth.NAME_FEATURES, names), *table("lines", worth.LINE_FEATURES, lines_learned))
    TARGET.write_text("\n".join(text), encoding="utf-8")
    print(TARGET.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(sys.argv[1])
