"""Does a log hold what its writers were told it holds? Everything is read anew, by a process that wrote nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from fire.words import Appended, Compacted, Complaint, Word
from fire.writer import SESSION, complaints
from holdfast import Outcome, SessionService, open_store
from holdfast.events import Event, Kind

LOSERS = (Outcome.CONFLICT, Outcome.NOTHING_TO_COMPACT)
"""All that may come of a compaction in these trials other than a win."""


class Finding(msgspec.Struct):
    """What a log and its writers come to."""

    problems: list[str]
    events: int = 0
    compactions: int = 0
    torn: int = 0
    """Lines that a crash left behind: told, and no problem."""


async def examine(store: str, said: Sequence[Sequence[Word]], *, killed: bool = False) -> Finding:
    """`said` holds the words of each writer; one that was killed may have done one thing more than it said."""
    async with SessionService(open_store(store), estimator="chars/4") as service:
        events = await service.events(SESSION)
        findings = await service.verify(SESSION)
        context = await service.context(SESSION)
        visible = await service.events(SESSION, archived=False)
        archived = await service.events(SESSION, archived=True)
    problems = [finding for finding in findings if "passed over" not in finding]
    problems += complaints(context.messages) if events else []
    if [event.seq for event in events] != list(range(1, len(events) + 1)) or context.version != len(events):
        problems.append("the versions do not go up by one")
    if len(visible) + len(archived) != sum(event.kind == Kind.MESSAGE for event in events):
        problems.append("some message is neither visible nor archived")
    problems += _doubled(events)
    for words in said:
        problems += _missing(events, words)
        problems += _backwards(words)
    problems += _undecided(events, said, killed)
    torn = len(findings) - len([finding for finding in findings if "passed over" not in finding])
    return Finding(problems, len(events), len(_labels(events)), torn)


def _doubled(events: Sequence[Event]) -> list[str]:
    return [
        f"event {name} is there {times} times" for name, times in Counter(e.id for e in events).items() if times > 1
    ]


def _missing(events: Sequence[Event], words: Sequence[Word]) -> list[str]:
    """Acknowledged events that are not in the log, or not where the writer was told."""
    places = {event.id: event.seq for event in events}
    told = [pair for word in words if isinstance(word, Appended) for pair in zip(word.ids, word.seqs, strict=True)]
    return [f"event {name} is not at {seq} but {places.get(name)}" for name, seq in told if places.get(name) != seq]


def _backwards(words: Sequence[Word]) -> list[str]:
    """What one writer saw must only ever go up, and by itself strictly: and it must have seen no wrong."""
    found: list[str] = []
    newest = 0
    for word in words:
        if isinstance(word, Complaint):
            found.append(word.text)
        elif isinstance(word, Appended):
            if [newest, *word.seqs] != sorted({newest, *word.seqs}):
                found.append(f"after version {newest} came {word.seqs}")
            newest = max(word.seqs)
        else:
            if word.version < newest or (word.outcome == Outcome.COMPACTED and word.version == newest):
                found.append(f"compaction {word.label} took version {newest} to {word.version}")
            newest = word.version
    return found


def _undecided(events: Sequence[Event], said: Sequence[Sequence[Word]], killed: bool) -> list[str]:
    """Winners are in the log, losers are not and said so; a killed writer may have won once without a word."""
    labels = _labels(events)
    found: list[str] = [f"compaction {label} is there more than once" for label in labels if labels.count(label) > 1]
    wordless = set(labels)
    for word in (word for words in said for word in words if isinstance(word, Compacted)):
        won = word.outcome == Outcome.COMPACTED
        if won != (word.label in wordless) or not (won or word.outcome in LOSERS):
            found.append(f"compaction {word.label} said {word.outcome}: in the log: {word.label in labels}")
        wordless.discard(word.label)
    if wordless and not (killed and len(wordless) <= len(said)):
        found.append(f"compactions that nobody told of: {sorted(wordless)}")
    return found


def _labels(events: Sequence[Event]) -> list[str]:
    return [event.body["strategy"] for event in events if event.kind == Kind.COMPACTION]
