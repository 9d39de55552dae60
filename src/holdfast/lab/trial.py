"""One session through the lab: cut, compacted by everyone, measured by what came after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from ..errors import HoldfastError
from ..messages import Message, user
from ..tokens import Estimator, estimator_for
from ..transcripts import Transcript, read_transcript
from .contestants import REAL, Compacted, Contestant, Job, field, tokens_of
from .corpus import in_half, session_name
from .cuts import Cut, cuts, evenly
from .measures import kept_names, measure
from .needs import Needs, needs
from .results import Names, NotMeasured, Outcome, Row, SessionResults
from .rolling import chunks
from .settings import Settings

PLAIN = "plain"
OTHER_HALF = "of the other half"
TOO_SHORT = "too short to cut"
NO_ROOM = "the user's newest message is over every budget"
_field = lru_cache(field)


def try_session(file: Path, settings: Settings) -> Outcome:
    """Everything that is measured on one file. It runs in a process of its own: plain data in, plain data out."""
    try:
        transcript = read_transcript(file)
    except HoldfastError as problem:
        return NotMeasured(str(file), f"no session: {problem}")
    session = session_name(transcript, file)
    if not in_half(session, settings.half):
        return NotMeasured(str(file), OTHER_HALF)
    try:
        trial = Trial(session, transcript, settings)
        found = trial.results(str(file))
    except HoldfastError as problem:
        return NotMeasured(str(file), f"messages that cannot be read: {problem}")
    return found if found.rows or found.at_summary else NotMeasured(str(file), trial.why_nothing)


class Trial:
    """One session, with what is worked out once for all contestants."""

    def __init__(self, session: str, transcript: Transcript, settings: Settings) -> None:
        self.session = session
        self.kind = PLAIN if transcript.kind == "messages" else transcript.kind
        self.transcript = transcript
        self.settings = settings
        self.estimator: Estimator = estimator_for(settings.estimator)
        self.contestants = _field(settings.contestants).contestants
        self.failures: dict[str, None] = {}

    @cached_property
    def cuts(self) -> list[Cut]:
        return list(cuts(self.transcript, evenly(self.settings.cuts)))

    @property
    def why_nothing(self) -> str:
        """The reason, once there are no results."""
        if self.failures:
            return f"nobody could compact it: {next(iter(self.failures))}"
        return NO_ROOM if self.cuts else TOO_SHORT

    def results(self, file: str) -> SessionResults:
        rows: list[Row] = []
        names: list[Names] = []
        in_a_row: list[Row] = []
        found = [(cut, needs(cut.before, cut.after, self.estimator)) for cut in self.cuts]
        for cut, needed in found:
            left: dict[str, Compacted] = {}
            for budget in filter(lambda budget: self._is_possible(cut, budget), self.settings.budgets):
                for contestant in self.contestants:
                    if compacted := self._compact(contestant, [cut.before], self._job(cut, budget)):
                        rows.append(self._row(contestant.name, budget, cut, needed, compacted))
                        if budget == self.settings.focus:
                            left[contestant.name] = compacted
            if left:
                names.append(self._names(cut, needed, left))
        if found and self._is_possible(found[-1][0], self.settings.focus):
            in_a_row += self._in_a_row(*found[-1])
        return SessionResults(
            session=self.session,
            kind=self.kind,
            file=file,
            rows=tuple(rows),
            in_a_row=tuple(in_a_row),
            at_summary=tuple(self._at_summary()),
            names=tuple(names),
            failures=tuple(self.failures),
        )

    def _in_a_row(self, cut: Cut, needed: Needs) -> Iterator[Row]:
        """The last cut has the longest history: fed in pieces, with a compaction after each."""
        for rounds in self.settings.rounds:
            pieces = chunks(cut.before, rounds)
            if len(pieces) < rounds:
                continue
            for contestant in self.contestants:
                if compacted := self._compact(contestant, pieces, self._job(cut, self.settings.focus)):
                    yield self._row(contestant.name, self.settings.focus, cut, needed, compacted, rounds)

    def _at_summary(self) -> Iterator[Row]:
        """Where the tool wrote a summary, everyone gets exactly its size."""
        for cut in cuts(self.transcript, (1.0,)):
            if not cut.summary:
                continue
            needed = needs(cut.before, cut.after, self.estimator)
            real = Compacted([user(cut.summary)], 0.0)
            budget = tokens_of(real.messages, self.estimator)
            if not self._is_possible(cut, budget):
                continue
            yield self._row(REAL, budget, cut, needed, real)
            for contestant in self.contestants:
                if compacted := self._compact(contestant, [cut.before], self._job(cut, budget)):
                    yield self._row(contestant.name, budget, cut, needed, compacted)

    def _is_possible(self, cut: Cut, budget: int) -> bool:
        """Can a valid context be so small? Not where the user's newest message alone is larger."""
        newest = next((message for message in reversed(cut.before) if message.role == "user"), None)
        return newest is None or tokens_of([newest], self.estimator) < budget

    def _job(self, cut: Cut, budget: int) -> Job:
        return Job(cut.format, budget, self.estimator)

    def _compact(self, contestant: Contestant, pieces: Sequence[Sequence[Message]], job: Job) -> Compacted | None:
        """All pieces, one compaction after the other. What a contestant cannot do is said, and ends nothing else."""
        left, seconds = None, 0.0
        try:
            for piece in pieces:
                left = contestant.compact(piece, job, left)
                seconds += left.seconds
        except Exception as problem:
            self.failures[f"{contestant.name}: {type(problem).__name__}: {' '.join(str(problem).split())[:120]}"] = None
            return None
        if left is None:
            return None
        return Compacted(left.messages, seconds / len(pieces), left.payloads, left.problems)

    def _row(self, contestant: str, budget: int, cut: Cut, needed: Needs, compacted: Compacted, rounds: int = 1) -> Row:
        return Row(
            session=self.session,
            cut=len(cut.before),
            contestant=contestant,
            budget=budget,
            rounds=rounds,
            score=measure(compacted.messages, needed),
            tokens=tokens_of(compacted.messages, self.estimator),
            seconds=compacted.seconds,
            problems=compacted.problems,
        )

    def _names(self, cut: Cut, needed: Needs, left: dict[str, Compacted]) -> Names:
        ordered = tuple(sorted(needed.names, key=lambda name: (name.lower(), name)))
        kept = {}
        for contestant, compacted in left.items():
            held = kept_names(compacted.messages, needed)
            kept[contestant] = "".join(
                "2" if name in held.in_context else "1" if name in held.present else "0" for name in ordered
            )
        return Names(len(cut.before), tokens_of(cut.before, self.estimator), ordered, kept)
