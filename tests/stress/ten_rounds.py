"""Ten compactions of real sessions in which only the messages reach the next round, in every wire format (H3).

Usage: python tests/stress/ten_rounds.py [--target 24000] [--policies ledger,holdfast,pi] [SESSION ...]

Rules are planted among the first user messages. After ten rounds the context must have the task, the rules and every
file that ten rounds with `previous=` keep. Sessions are those under HOLDFAST_SESSIONS, else the bundled examples.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.forgetting import RULES, plant_rules

from carried_rounds import Kept, forgetful, kept_in, run_rounds, task_in
from holdfast import preset
from holdfast.messages import FORMATS, Message, decode_all, encode_all, is_note, repair_messages, rules_for
from holdfast.strategies import KeepLedger
from real_sessions import FILES, SESSIONS, transcript

ROUNDS = 10
POLICIES = ("ledger", "holdfast", "pi")
"""The notes of the ledger, sections, and free text."""


class Report(NamedTuple):
    """What ten rounds kept: through messages alone, and with `previous=`."""

    session: str
    format: str
    policy: str
    alone: Kept
    known: Kept

    @property
    def losses(self) -> list[str]:
        """What messages alone lost."""
        lost = ["the task"] if self.known.task > self.alone.task else []
        return lost + sorted(self.known.rules - self.alone.rules) + sorted(self.known.files - self.alone.files)


def run_session(
    path: Path, format: str, policy: str, target: int, *, rounds: int = ROUNDS, length: int | None = None
) -> Report:
    """Replays a session, or its first messages, in so many parts, both ways."""
    session = decode_all(transcript(path).messages, transcript(path).format)[0][:length]
    messages = _in_format(plant_rules(session), format)
    payloads = encode_all(messages, format)
    ends = [len(payloads) * part // rounds for part in range(rounds + 1)]
    parts = [payloads[start:end] for start, end in pairwise(ends)]
    task = " ".join(task_in(messages).split())[:400]
    counted = not any(map(is_note, messages))  # a summary of the tool itself is a round, too
    kept = []
    for carried in (True, False):
        result, _ = run_rounds(
            parts, format, carried, counted=counted, budget=10 * target, target=target, **_options(policy)
        )
        kept.append(kept_in(result, format, task, RULES))
    return Report(path.name[:13], format, policy, *kept)


def _in_format(messages: list[Message], format: str) -> list[Message]:
    return decode_all(encode_all(repair_messages(messages, rules_for(format)), format), format)[0]


def _options(policy: str) -> dict[str, Any]:
    if policy == "ledger":
        return {"strategy": KeepLedger()}
    return {"strategy": preset(policy).strategy, "summarizer": forgetful()}


def reports(paths: list[Path], policies: list[str], target: int) -> Iterator[Report]:
    for path in paths:
        for format in FORMATS:
            for policy in policies:
                yield run_session(path, format, policy, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=int, default=24_000)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("sessions", nargs="*", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    failed = count = 0
    for report in reports(options.sessions or SESSIONS or FILES, options.policies.split(","), options.target):
        count += 1
        failed += bool(report.losses)
        kept = report.alone
        print(
            f"{report.session:13} {report.format:16} {report.policy:9} round {kept.round:2}  "
            f"task {'kept' if kept.task else 'LOST'}  rules {len(kept.rules)}/{len(RULES)}  "
            f"files {len(kept.files)} (with previous= {len(report.known.files)})"
            + (f"  LOST {'; '.join(report.losses[:5])}" if report.losses else ""),
            flush=True,
        )
    print(f"{count} runs, {failed} lost something that previous= keeps")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
