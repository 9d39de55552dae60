"""Cases for a language model: how well does each context foretell what the agent really did next?

    python benchmarks/likelihood.py FOLDER OUT.jsonl.gz [--half learn] [--budget 4000,8000] [--cuts 40]

A case is one line: the cut, the contestant, its budget, its context, and the agent's next steps, of which those marked
1 count. A program with a GPU scores them; what it prints is the negative log-likelihood in nats a token. Contexts have
the form of the lab's surprise: plain text, behind the same piece of another session. A cut is `full` inside a stretch
whose whole history was visible, and `real` where a model summarized it; there every contestant gets the summary's size.
`--only holdfast --name NAME` writes the ledger of this source tree alone, under another name: two files of cases, one
behind the other, are a file of cases.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.errors import HoldfastError
from holdfast.lab.contestants import LEDGER, REAL, Contestant, choose_contestants, count_message_tokens
from holdfast.lab.contestants.base import ContestantTask, fitting_tail
from holdfast.lab.corpus import Cut, in_half, iter_cuts, session_files, session_name
from holdfast.lab.surprise import next_passages, piece_of_another
from holdfast.lab.text import plain_text
from holdfast.messages import Message, starts_turn, user
from holdfast.tokens import estimator_for
from holdfast.transcripts import read_transcript

NAMES = {
    "tail window": "tail window",
    "mask, keep 3": "masking, 3 kept",
    "results at 400": "results cut at 400",
    LEDGER: "holdfast",
    "Holdfast summary": "holdfast summary",
}
NOTHING, BOUND, BOUND_TOKENS = "nothing", "last 24k tokens", 24_000
REAL_CUT = 1.0
ESTIMATOR = estimator_for("chars/4")


class Case(msgspec.Struct, frozen=True):
    """One context and what came after it."""

    cut: str
    name: str
    budget: int | str
    """In tokens; at a real compaction, in words: the size of each summary is another."""
    context: str
    steps: list[tuple[int, str]]


class Place(NamedTuple):
    """A cut of a session file: a fraction of its history, or the place where a model summarized it."""

    file: Path
    fraction: float

    @property
    def order(self) -> bytes:
        """A fixed order that mixes sessions and places."""
        return hashlib.sha256(f"{self.file.name} {self.fraction}".encode()).digest()


def places(files: Sequence[Path], half: str, fractions: Sequence[float]) -> list[Place]:
    """The cuts of this half's sessions, in the fixed order."""
    found = []
    for file in files:
        try:
            transcript = read_transcript(file)
            if in_half(session_name(transcript, file), half):
                found += [Place(file, one) for one in fractions if any(iter_cuts(transcript, (one,)))]
        except HoldfastError:
            continue
    return sorted(found, key=lambda place: place.order)


def cases_at(place: Place, budgets: Sequence[int], only: str, name: str, files: Sequence[Path]) -> list[Case]:
    """Every contestant's case at one cut."""
    transcript = read_transcript(place.file)
    session = session_name(transcript, place.file)
    after = files.index(place.file) + 1
    piece = piece_of_another(session, transcript.kind, [*files[after:], *files[: after - 1]])
    found: list[Case] = []
    for cut in iter_cuts(transcript, (place.fraction,)):
        real = place.fraction == REAL_CUT
        label = f"{'real' if real else 'full'}:{session}:{len(cut.before)}"
        steps = [(int(part.counted), f"[{_role(part.counted)}] {part.text}") for part in next_passages(cut.after)]

        def case(
            contestant: str, budget: int | str, messages: Iterable[Message], label: str = label, steps: Any = steps
        ) -> Case:
            return Case(label, contestant, budget, "\n".join([piece, *map(plain_text, messages)]), steps)

        if real and cut.summary is None:
            continue
        if not only:
            found.append(case(NOTHING, 0, []))
            tail = fitting_tail("\n".join(map(plain_text, cut.before)), BOUND_TOKENS, ESTIMATOR)
            found.append(case(BOUND, BOUND_TOKENS, [user(tail)]))
        for budget, tokens in _real_sizes(cut) if real else [(size, size) for size in budgets]:
            if not _is_possible(cut, tokens):
                continue
            if real and not only and cut.summary:
                found.append(case(REAL, budget, [user(cut.summary)]))
            for contestant in _contestants(real=real, only=only):
                task = ContestantTask(cut.format, tokens, ESTIMATOR, cut.summary)
                try:
                    left = contestant.compact(cut.before, task, None)
                except HoldfastError as problem:
                    print(f"{label} {contestant.name}: {problem}")
                    continue
                found.append(case(name or NAMES[contestant.name], budget, left.messages))
    return found


def _role(own: bool) -> str:
    return "assistant" if own else "tool"


def _real_sizes(cut: Cut) -> list[tuple[str, int]]:
    """The size of the summary that was really written, and 4,000 tokens more."""
    size = count_message_tokens([user(cut.summary or "")], ESTIMATOR)
    return [("summary", size), ("summary+4000", size + 4_000)]


def _is_possible(cut: Cut, tokens: int) -> bool:
    newest = next(filter(starts_turn, reversed(cut.before)), None)
    return newest is None or count_message_tokens([newest], ESTIMATOR) < tokens


def _contestants(*, real: bool, only: str) -> Iterator[Contestant]:
    for contestant in choose_contestants().contestants:
        named = NAMES.get(contestant.name)
        if named and (real or not contestant.needs_summary) and (not only or named == only):
            yield contestant


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--half", default="learn", choices=("learn", "report"))
    parser.add_argument("--budget", default="4000,8000")
    parser.add_argument("--cuts", type=int, default=40, help="cuts in all; 0 takes every one")
    parser.add_argument("--real", action="store_true", help="at the compactions that a model summarized")
    parser.add_argument("--only", default="", choices=("", *NAMES.values()))
    parser.add_argument("--name", default="", help="another name for the only contestant")
    given = parser.parse_args()
    files = session_files(given.folder)
    fractions = (REAL_CUT,) if given.real else tuple(eighth / 8 for eighth in range(1, 8))
    chosen = places(files, given.half, fractions)[: given.cuts or None]
    budgets = [int(number) for number in given.budget.split(",")]
    work = partial(cases_at, budgets=budgets, only=given.only, name=given.name, files=files)
    count = 0
    with ProcessPoolExecutor(2) as workers, gzip.open(given.out, "wb") as out:
        for cases in workers.map(work, chosen):
            out.writelines(msgspec.json.encode(case) + b"\n" for case in cases)
            count += len(cases)
    print(f"{count} cases of {len(chosen)} cuts")


if __name__ == "__main__":
    main()
