"""Measures one session: cuts it, lets every contestant compact it, and scores the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from ..errors import HoldfastError
from ..messages import Links, Message, starts_turn, user
from ..tokens import Estimator, estimator_for
from ..transcripts import Transcript, read_transcript
from .contestants import REAL, Contestant, ContestantResult, ContestantTask, choose_contestants, count_message_tokens
from .corpus import Cut, even_fractions, in_half, iter_cuts, session_name
from .measures import kept_names, score_context
from .needs import NeededItems, find_needed
from .results import CutNames, LabSettings, NotMeasured, ScoreRow, SessionOutcome, SessionResults
from .surprise import Surprise, choose_predictor, next_passages, piece_of_another
from .text import plain_text


def split_history(messages: Sequence[Message], count: int) -> list[list[Message]]:
    """Splits into pieces of equal length, each ending before a reply; a short history gives fewer."""
    replies = reply_positions(messages)
    wanted = (len(messages) * part // count for part in range(1, count))
    edges = [
        0,
        *sorted({next((place for place in replies if place >= n), len(messages)) for n in wanted}),
        len(messages),
    ]
    return [list(messages[start:end]) for start, end in pairwise(edges) if end > start]


def reply_positions(messages: Sequence[Message]) -> list[int]:
    """Indices of replies where no tool call is waiting for its result; unanswered calls are dropped."""
    places: list[int] = []
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        if place and message.role == "assistant" != messages[place - 1].role:
            if not open_calls:
                places.append(place)
            open_calls.clear()
        open_calls |= {call.id for call in message.calls}
        open_calls -= {result.call_id for result in message.results}
    return places


PLAIN = "plain"
OTHER_HALF = "in the other half"
TOO_SHORT = "too short to cut"
NO_ROOM = "the newest user message exceeds every budget"
_cached_contestants = lru_cache(choose_contestants)


def measure_session(file: Path, settings: LabSettings, files: Sequence[Path] = ()) -> SessionOutcome:
    """Measures one of the run's files. Runs in a worker process: plain data in, plain data out."""
    try:
        transcript = read_transcript(file)
    except HoldfastError as problem:
        return NotMeasured(str(file), f"not a session: {problem}")
    session = session_name(transcript, file)
    if not in_half(session, settings.half):
        return NotMeasured(str(file), OTHER_HALF)
    trial = SessionTrial(session, transcript, settings, _following(file, files))
    try:
        _ = trial.cuts
    except HoldfastError as problem:
        return NotMeasured(str(file), f"unreadable messages: {problem}")
    found = trial.results(str(file))
    return found if found.rows or found.at_summary else NotMeasured(str(file), trial.failure_reason)


def _following(file: Path, files: Sequence[Path]) -> Sequence[Path]:
    """The other files, from the next one on."""
    place = files.index(file) if file in files else -1
    return [*files[place + 1 :], *files[: max(0, place)]]


class SessionTrial:
    """One session under measurement, with data shared by all contestants."""

    def __init__(
        self, session: str, transcript: Transcript, settings: LabSettings, others: Sequence[Path] = ()
    ) -> None:
        self.session = session
        self.kind = PLAIN if transcript.kind == "messages" else transcript.kind
        self.transcript = transcript
        self.settings = settings
        self.estimator: Estimator = estimator_for(settings.estimator)
        self.others = others
        self.predictor = choose_predictor(settings.surprise_by, settings.surprise_url)
        self._known: dict[bytes, Surprise] = {}
        self.contestants = _cached_contestants(settings.contestants).contestants
        self.failures: dict[str, None] = {}

    @cached_property
    def cuts(self) -> list[Cut]:
        return list(iter_cuts(self.transcript, even_fractions(self.settings.cuts)))

    @property
    def _without_summary(self) -> list[Contestant]:
        return [contestant for contestant in self.contestants if not contestant.needs_summary]

    @cached_property
    def piece(self) -> str:
        """The piece of another session that precedes every context."""
        return piece_of_another(self.session, self.transcript.kind, self.others)

    @property
    def failure_reason(self) -> str:
        """Why there are no results."""
        if self.failures:
            return f"no contestant could compact it: {next(iter(self.failures))}"
        return NO_ROOM if self.cuts else TOO_SHORT

    def results(self, file: str) -> SessionResults:
        rows: list[ScoreRow] = []
        names: list[CutNames] = []
        in_a_row: list[ScoreRow] = []
        found = [(cut, find_needed(cut.before, cut.after, self.estimator)) for cut in self.cuts]
        for cut, needed in found:
            left: dict[str, ContestantResult] = {}
            for budget in filter(lambda budget: self._is_possible(cut, budget), self.settings.budgets):
                for contestant in self._without_summary:
                    if compacted := self._compact(contestant, [cut.before], self._task(cut, budget)):
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
            at_summary=tuple(self._at_summary(1)),
            after_summary=tuple(self._at_summary(2)),
            names=tuple(names),
            failures=tuple(self.failures),
        )

    def _in_a_row(self, cut: Cut, needed: NeededItems) -> Iterator[ScoreRow]:
        """Compacts the history of the last cut, the longest, piece by piece."""
        for rounds in self.settings.rounds:
            pieces = split_history(cut.before, rounds)
            if len(pieces) < rounds:
                continue
            for contestant in self._without_summary:
                if compacted := self._compact(contestant, pieces, self._task(cut, self.settings.focus)):
                    yield self._row(contestant.name, self.settings.focus, cut, needed, compacted, rounds)

    def _at_summary(self, sizes: int) -> Iterator[ScoreRow]:
        """Compares with the tool's own summary and the newest messages, at a multiple of the size of the summary."""
        for cut in iter_cuts(self.transcript, (1.0,)):
            if not cut.summary:
                continue
            needed = find_needed(cut.before, cut.after, self.estimator)
            size = count_message_tokens([user(cut.summary)], self.estimator)
            budget = sizes * size
            real = ContestantResult([user(cut.summary), *self._newest(cut.before, budget - size)], 0.0)
            if not self._is_possible(cut, budget):
                continue
            yield self._row(REAL, budget, cut, needed, real)
            for contestant in self.contestants:
                if compacted := self._compact(contestant, [cut.before], self._task(cut, budget)):
                    yield self._row(contestant.name, budget, cut, needed, compacted)

    def _newest(self, messages: Sequence[Message], room: int) -> Sequence[Message]:
        """Returns the newest messages that fit, with calls and results together."""
        newest = (messages[start:] for start in (*Links(messages).starts, len(messages)))
        return next(kept for kept in newest if count_message_tokens(kept, self.estimator) <= room)

    def _is_possible(self, cut: Cut, budget: int) -> bool:
        """False if the newest user message alone exceeds the budget."""
        newest = next(filter(starts_turn, reversed(cut.before)), None)
        return newest is None or count_message_tokens([newest], self.estimator) < budget

    def _task(self, cut: Cut, budget: int) -> ContestantTask:
        return ContestantTask(cut.format, budget, self.estimator, cut.summary)

    def _compact(
        self, contestant: Contestant, pieces: Sequence[Sequence[Message]], task: ContestantTask
    ) -> ContestantResult | None:
        """Compacts piece after piece; a contestant's error is recorded and does not stop the others."""
        left, seconds = None, 0.0
        try:
            for piece in pieces:
                left = contestant.compact(piece, task, left)
                seconds += left.seconds
        except Exception as problem:
            self.failures[f"{contestant.name}: {type(problem).__name__}: {' '.join(str(problem).split())[:120]}"] = None
            return None
        if left is None:
            return None
        return ContestantResult(left.messages, seconds / len(pieces), left.payloads, left.problems)

    def _row(
        self, contestant: str, budget: int, cut: Cut, needed: NeededItems, compacted: ContestantResult, rounds: int = 1
    ) -> ScoreRow:
        return ScoreRow(
            session=self.session,
            cut=len(cut.before),
            contestant=contestant,
            budget=budget,
            rounds=rounds,
            score=score_context(compacted.messages, needed),
            tokens=count_message_tokens(compacted.messages, self.estimator),
            seconds=compacted.seconds,
            problems=compacted.problems,
            surprise=self._surprise(cut, compacted.messages),
        )

    def _surprise(self, cut: Cut, context: Sequence[Message]) -> Surprise:
        """Predicts once for equal contexts: several contestants keep a short history whole."""
        if self.predictor is None:
            return {}
        text = "\n".join([self.piece, *map(plain_text, context)])
        passages = next_passages(cut.after)
        key = sha256(f"{text}\n{passages}".encode("utf-8", "replace")).digest()
        if key not in self._known:
            self._known[key] = self.predictor(text, passages)
        return self._known[key]

    def _names(self, cut: Cut, needed: NeededItems, left: dict[str, ContestantResult]) -> CutNames:
        ordered = tuple(sorted(needed.names, key=lambda name: (name.lower(), name)))
        kept = {}
        for contestant, compacted in left.items():
            held = kept_names(compacted.messages, needed)
            kept[contestant] = "".join(
                "2" if name in held.in_context else "1" if name in held.present else "0" for name in ordered
            )
        return CutNames(len(cut.before), count_message_tokens(cut.before, self.estimator), ordered, kept)
