"""Accuracy of the predicted context size right before each reply, on real sessions.

    HOLDFAST_SESSIONS=folder python benchmarks/calibration.py

Each session is replayed epoch by epoch with the usage its provider reported. The truth is the size of the next
request; the first ten replies of a session are for learning. For comparison: the tokenizer alone, chars/4, and two
harder cases in which no reply has reported a size yet: right after a compaction (Claude Code then inserts files that
its log does not contain), and back at the beginning of a context.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.context import View
from holdfast.context.events import Event, EventKind
from holdfast.messages import decode_all
from holdfast.tokens import Calibration, CharsPerPiece, Tokenizer
from holdfast.transcripts import Transcript, TranscriptEntry, read_transcript

LEARNING = 10
"""Replies of a session before its predictions count."""
BACK = slice(1, 6)
"""Early requests of an epoch that are predicted again later."""
COLUMNS = ("calibrated", "o200k", "chars/4", "after compaction", "cut back")


class Request(NamedTuple):
    """Size of one request."""

    units: int
    tokens: int


Errors = dict[str, list[float]]


def measure(transcript: Transcript) -> Errors:
    """Relative errors of all predictions in one session, by method."""
    errors: Errors = defaultdict(list)
    calibration, replies = Calibration(), 0
    for number, entries in enumerate(epochs(transcript)):
        view = View(Tokenizer(), calibrated=True)
        view.calibration = calibration.reset_size()
        sent: list[Request] = []
        for predicted, by_chars, request in replay(view, transcript.format, entries):
            if replies >= LEARNING:
                method = "after compaction" if number and not sent else "calibrated"
                errors[method].append(error(predicted, request.tokens))
                errors["o200k"].append(error(request.units, request.tokens))
                errors["chars/4"].append(error(by_chars, request.tokens))
            if len(sent) > LEARNING and len(sent) % 10 == 0:
                blind = view.calibration.reset_size()
                errors["cut back"] += [error(blind.tokens(old.units), old.tokens) for old in sent[BACK]]
            sent.append(request)
            replies += 1
        calibration = view.calibration
    return errors


def epochs(transcript: Transcript) -> Iterator[list[TranscriptEntry]]:
    """Entries between two compactions, preceded by the context they started from."""
    cuts = [0, *(compaction.after for compaction in transcript.compactions), len(transcript.entries)]
    for number, (start, end) in enumerate(pairwise(cuts)):
        before: list[TranscriptEntry] = []
        if number:
            compaction = transcript.compactions[number - 1]
            kept = transcript.entries[start - compaction.kept : start]
            before = [TranscriptEntry(message) for message in compaction.head]
            before += [msgspec.structs.replace(entry, usage=None) for entry in kept]
        yield [*before, *transcript.entries[start:end]]


def replay(view: View, format: str | None, entries: list[TranscriptEntry]) -> Iterator[tuple[int, int, Request]]:
    """For each reply: the prediction, the chars/4 estimate, and the real request."""
    messages, found = decode_all([entry.message for entry in entries], format)
    chars, by_chars = CharsPerPiece(), 0
    waiting: tuple[int, int, int] | None = None
    for seq, (entry, message) in enumerate(zip(entries, messages, strict=True), 1):
        if message.role == "assistant" and waiting is None:
            waiting = view.tokens, by_chars, view.units()
        elif message.role != "assistant":
            waiting = None
        view.append(_event(seq, entry, found))
        by_chars += chars.measure(message)
        usage = entry.usage
        if waiting is not None and usage is not None and (tokens := usage.total - usage.output) > 0:
            yield waiting[0], waiting[1], Request(waiting[2], tokens)
            waiting = None


def _event(seq: int, entry: TranscriptEntry, format: str) -> Event:
    body: dict[str, Any] = {"message": entry.message, "format": format}
    if entry.usage is not None:
        body["usage"] = msgspec.to_builtins(entry.usage)
    return Event(f"e{seq}", EventKind.MESSAGE, "", body, seq=seq)


def error(predicted: float, truth: int) -> float:
    return abs(predicted - truth) / truth


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def sessions(folder: str) -> list[Path]:
    return sorted(path for path in Path(folder).rglob("*") if path.name.endswith((".jsonl", ".jsonl.gz")))


def main() -> None:
    folder = os.environ.get("HOLDFAST_SESSIONS")
    if not folder:
        sys.exit("Set HOLDFAST_SESSIONS to a folder with session files.")
    kinds: dict[str, Errors] = defaultdict(lambda: defaultdict(list))
    for path in sessions(folder):
        transcript = read_transcript(path)
        for name, values in measure(transcript).items():
            kinds[transcript.kind][name] += values
    print("Relative error of the predicted context size: median / 90th percentile (number of predictions)\n")
    print(f"{'sessions of':14}" + "".join(f"{name:>26}" for name in COLUMNS))
    for kind, errors in kinds.items():
        cells = [_cell(errors[name]) if errors.get(name) else "-" for name in COLUMNS]
        print(f"{kind:14}" + "".join(f"{cell:>26}" for cell in cells))


def _cell(values: list[float]) -> str:
    return f"{quantile(values, 0.5):.2%} / {quantile(values, 0.9):.2%} ({len(values)})"


if __name__ == "__main__":
    main()
