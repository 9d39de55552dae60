"""Random histories whose newest results no reply has followed: they are whole wherever they fit at all (H10).

python -m tests.stress.unread_results --histories 10000 [--seed 1] [--only codex]

Each history is compacted three times, a reply and new results after each, by a preset or a strategy, in a wire format,
as a list or as a session, with a budget between too little and plenty. It fits if system prompt, the user's newest
message and the calls with whole results do, beside the task and the user's rules where notes are shown.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import histories
from histories.script import Call, Model, Result, Results, Step, Story, System, Text, User
from holdfast import BlockingSessionService, MemoryStore, SlidingWindow, TokenWindow, Truncate, TurnWindow, compact
from holdfast.compaction.presets import PRESETS, preset
from holdfast.strategies import KeepFraction, KeepLast, KeepLedger, KeepRecent, PruneToolResults
from holdfast.triggers import always
from judge import judge
from judge.unread import CutResult, cut_results, newest_part

SYSTEM = "You keep the harbour's files."
SUMMARY = "## Completed Work\n- The berths were read.\n## Pending Work\n- [ ] The rest of the berths."
STRATEGIES: dict[str, Callable[[int], Any]] = {
    "ledger": lambda size: KeepLedger(),
    "tokens": TokenWindow,
    "sliding": lambda size: SlidingWindow(4),
    "turns": lambda size: TurnWindow(1),
    "truncate": lambda size: Truncate(max_tokens=size),
    "last": lambda size: KeepLast(3),
    "fraction": lambda size: KeepFraction(0.4),
    "recent": KeepRecent,
    "prune": lambda size: PruneToolResults(protect=size // 4, minimum=0),
}
POLICIES = (*PRESETS, *STRATEGIES)
_NOTES_TOKENS = 300
"""Frame, headings and citations around the task and the rules."""
_ROUNDS = 3


class Case(NamedTuple):
    """One history: everything else follows from these."""

    seed: int
    policy: str
    profile: str

    @property
    def is_session(self) -> bool:
        return self.seed % 5 == 0 and self.profile != "ai-sdk"


class Outcome(NamedTuple):
    """What a history has shown: what was cut though it fit, and how often the results fit at all."""

    case: Case
    cut: list[str]
    fitted: int
    did_not_fit: int
    invalid: list[str]


def cases(count: int, seed: int = 1, only: str = "") -> Iterator[Case]:
    policies = [name for name in POLICIES if only in name]
    for number in range(count):
        policy, profile = policies[number % len(policies)], histories.PROFILES[number // len(policies) % 5]
        yield Case(seed * 1_000_003 + number, policy, profile)


class _Writer:
    """Writes the steps of a random history."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.called = 0

    def words(self, characters: int) -> str:
        lines, length = [], 0
        while length < characters:
            line = f"berth {self.random.randrange(10**6)} has {self.random.randrange(99)} feet at the quay"
            lines.append(line)
            length += len(line) + 1
        return "\n".join(lines)[: max(1, characters)]

    def user(self) -> User:
        rule = " Never moor at berth 13." if self.random.random() < 0.3 else ""
        return User(
            (Text(f"Sound the basin, part {self.random.randrange(99)}.{rule} {self.words(self._size(20, 160))}"),)
        )

    def reply(self) -> Model:
        return Model((Text(self.words(self._size(10, 900))),))

    def round(self, most: int = 12_000) -> list[Step]:
        calls, results = [], []
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 5))):
            self.called += 1
            call = Call(f"{self.called:04d}", self.random.choice(("read", "bash")), {"path": self.words(20)})
            calls.append(call)
            failed = self.random.random() < 0.1
            results.append(Result(call.id, call.name, self.words(self._size(20, most)), failed=failed))
        spoken = [Text(self.words(60))] if self.random.random() < 0.3 else []
        return [Model((*spoken, *calls)), Results(tuple(results))]

    def history(self) -> list[Step]:
        steps: list[Step] = [System(SYSTEM)] if self.random.random() < 0.5 else []
        for _ in range(self.random.randrange(1, 5)):
            steps.append(self.user())
            for _ in range(self.random.randrange(4)):
                steps += self.round(6_000)
            steps.append(self.reply())
        steps.append(self.user())
        for _ in range(self.random.randrange(3)):
            steps += self.round(6_000)
        return [*steps, *self.ending()]

    def more(self) -> list[Step]:
        """What follows a compaction: a reply that ends the turn, or more calls at once."""
        spoken = [self.reply(), self.user()] if self.random.random() < 0.4 else []
        return [*spoken, *(self.round(6_000) if self.random.random() < 0.5 else []), *self.ending()]

    def ending(self) -> list[Step]:
        steps = self.round(20_000)
        return [*steps, self.user()] if self.random.random() < 0.15 else steps

    def _size(self, least: int, most: int) -> int:
        return int(least * (most / least) ** self.random.random())


def run_case(case: Case) -> Outcome:
    writer = _Writer(case.seed)
    steps = writer.history()
    habits = {name: writer.random.random() < 0.5 for name in ("terse", "ids", "split")}
    cut, invalid, counts, previous = list[str](), list[str](), Counter[bool](), None
    opened = {"preset": case.policy, "summarizer": _summarize} if case.policy in PRESETS else {}
    service = BlockingSessionService(MemoryStore(), **opened) if case.is_session else None
    if service is not None:
        service.create(id="s", format=case.profile, system=SYSTEM)
    sent = 0
    for number in range(_ROUNDS):
        messages = histories.render(Story(tuple(steps), **habits), case.profile)
        messages = json.loads(json.dumps(messages))
        needed = _tokens(newest_part(messages, case.profile), case)
        budget = int(max(60, needed * writer.random.choice((0.4, 0.8, 1.02, 1.1, 1.3, 1.6, 2.0, 3.0))))
        options = _options(case.policy, budget)
        if service is not None:
            service.append("s", messages[sent:])
            sent = len(messages)
            service.compact("s", trigger=always, **options)
            shown = list(service.context("s").messages)
        else:
            given = {"system": SYSTEM, "format": case.profile, "trigger": always, "previous": previous}
            result = compact(messages, **given, **options)
            shown, previous = list(result.messages), result.checkpoint
        lost = cut_results(messages, shown, case.profile)
        fits = needed + _notes_tokens(steps, case) <= budget
        counts[fits] += 1
        if fits and lost:
            cut.append(f"round {number + 1}: {_described(lost)}; {needed} tokens of {budget} needed")
        invalid += judge(shown, case.profile)
        steps += writer.more()
    if service is not None:
        service.close()
    return Outcome(case, cut, counts[True], counts[False], invalid)


def _summarize(prompt: str) -> str:
    return SUMMARY


def _options(policy: str, budget: int) -> dict[str, Any]:
    if policy in STRATEGIES:
        return {"strategy": STRATEGIES[policy](max(1, budget // 2)), "budget": budget}
    return {"preset": preset(policy).changed(budget=budget), "summarizer": _summarize}


def _tokens(messages: list[dict[str, Any]], case: Case) -> int:
    """Tokens of these messages as the policy counts them, with the system prompt."""
    options = _options(case.policy, 10**9)
    return compact(messages, system=SYSTEM, format=case.profile, trigger=lambda _: False, **options).tokens_before


def _notes_tokens(steps: list[Step], case: Case) -> int:
    """Most tokens of the task and the user's rules; none where the policy shows no notes."""
    if case.policy in STRATEGIES and case.policy not in ("ledger", "truncate"):
        return 0
    spoken = sum(
        len(part.text) for step in steps if isinstance(step, User) for part in step.parts if isinstance(part, Text)
    )
    return spoken // 2 + _NOTES_TOKENS


def _described(lost: list[CutResult]) -> str:
    return ", ".join(f"{one.left_out:,} of {len(one.whole):,} characters" for one in lost)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="policies whose name contains this")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    by_policy: Counter[str] = Counter()
    fitted = not_fitted = bad = count = 0
    for case in cases(options.histories, options.seed, options.only):
        done = run_case(case)
        count, fitted, not_fitted = count + 1, fitted + done.fitted, not_fitted + done.did_not_fit
        bad += bool(done.invalid)
        by_policy[case.policy] += len(done.cut)
        if not count % 250:
            print(f"{count:,} histories, {fitted:,} fitted", file=sys.stderr, flush=True)
        for line in (*done.cut, *(f"invalid: {one}" for one in done.invalid)):
            print(f"seed {case.seed} {case.policy} {case.profile}: {line}"[:300], flush=True)
    cut = by_policy.total()
    print(f"{count:,} histories, {fitted + not_fitted:,} compactions: in {fitted:,} all unread results fit, in {cut:,}")
    print(f"of these one was cut; in {not_fitted:,} they did not fit. {bad:,} histories became invalid.")
    print(", ".join(f"{name} {number}" for name, number in by_policy.items() if number))
    return 1 if cut or bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
