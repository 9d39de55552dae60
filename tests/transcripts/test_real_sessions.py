"""Every available real session is read into a consistent thread."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from holdfast.transcripts import Transcript, TranscriptEntry
from judge import judge
from real_sessions import transcript as read_once

FOLDER = os.environ.get("HOLDFAST_SESSIONS", "")
SUFFIXES = (".jsonl", ".jsonl.gz")
FILES = sorted(p for p in Path(FOLDER).rglob("*") if p.name.endswith(SUFFIXES)) if FOLDER else []

pytestmark = [
    pytest.mark.skipif(not FILES, reason="HOLDFAST_SESSIONS names no folder with session files"),
    pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:13]),
]


def epochs(transcript: Transcript) -> list[tuple[TranscriptEntry, ...]]:
    """The entries between two compactions, during which one context grew."""
    cuts = [0, *(compaction.after for compaction in transcript.compactions), len(transcript.entries)]
    return [transcript.entries[start:end] for start, end in pairwise(cuts)]


def pairs(message: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Call ids of a message's calls and of its results."""
    kind = str(message.get("type", ""))
    if kind.endswith("_call") and "call_id" in message:
        return [message["call_id"]], []
    if kind.endswith("_output"):
        return [], [message["call_id"]]
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return (
        [block["id"] for block in blocks if block["type"] == "tool_use"],
        [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"],
    )


def test_real_session_entries_are_not_empty(path: Path) -> None:
    transcript = read_once(path)
    assert transcript.kind in ("claude-code", "codex", "pi")
    assert transcript.model
    assert transcript.id
    assert len(transcript.entries) > 10
    for entry in transcript.entries:
        assert entry.message.get("content") or entry.message.get("type") != "message"
        assert "role" not in entry.message or entry.message["content"]
        assert entry.time


def test_real_session_results_have_calls_in_the_same_epoch(path: Path) -> None:
    """Only the first message may have an orphan result: such a file starts in mid-session."""
    for number, epoch in enumerate(epochs(read_once(path))):
        open_calls: set[str] = set()
        for place, entry in enumerate(epoch):
            calls, answers = pairs(entry.message)
            orphans = [answer for answer in answers if answer not in open_calls]
            assert not orphans or (number == 0 and place == 0)
            assert len(answers) == len(set(answers))
            open_calls = (open_calls - set(answers)) | set(calls)


def test_real_session_usage_is_positive_and_mostly_grows(path: Path) -> None:
    """P3: between compactions the context grows; clearing tool results or resuming may shrink it."""
    for epoch in epochs(read_once(path)):
        totals = [entry.usage.total for entry in epoch if entry.usage is not None]
        assert all(total > 0 for total in totals)
        shrunk = sum(later < sooner for sooner, later in pairwise(totals))
        assert shrunk <= max(2, len(totals) * 0.1)


def test_real_session_compactions_are_in_order(path: Path) -> None:
    """P6."""
    transcript = read_once(path)
    places = [compaction.after for compaction in transcript.compactions]
    assert places == sorted(set(places))
    for compaction in transcript.compactions:
        assert 0 <= compaction.kept <= compaction.after <= len(transcript.entries)
        assert compaction.tokens_before is None or compaction.tokens_before > 10_000
        assert transcript.kind != "claude-code" or compaction.summary
        assert transcript.kind != "codex" or compaction.head


def test_real_session_epochs_are_valid_requests(path: Path) -> None:
    """Except incomplete tool pairs: an aborted reply has open calls, a cut file starts with a result."""
    transcript = read_once(path)
    assert transcript.format is not None
    for epoch in epochs(transcript):
        found = judge([entry.message for entry in epoch], transcript.format)
        halves = ("`tool_use` ids were found without", "messages.0.content.0: unexpected `tool_use_id`")
        assert [complaint for complaint in found if not any(half in complaint for half in halves)] == []
