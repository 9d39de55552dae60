"""A model of session logs in plain lists and dicts, without code of the library: what a log must hold, and show.

Every message has a word of its own, so that a word tells in which events, contexts, indexes and files a message is.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

Plain = dict[str, Any]
WORD = re.compile(r"k[0-9a-f]{12}")
MESSAGE, COMPACTION, UNDO, PIN, REDACTION = "message", "compaction", "undo", "pin", "redaction"


def word(label: str, number: int) -> str:
    """Returns a word that occurs nowhere else, and shares no beginning with another."""
    return "k" + hashlib.sha256(f"{label}/{number}".encode()).hexdigest()[:12]


def words_in(value: Any) -> list[str]:
    return WORD.findall(value if isinstance(value, str) else json.dumps(value))


def seq_of(log: Sequence[Plain], event_id: str | None) -> int:
    return next((event["seq"] for event in log if event["id"] == event_id), 0)


def checkpoint_in(events: Iterable[Plain]) -> str | None:
    """The checkpoint in force after these events of one lane."""
    current = None
    for event in events:
        if event["kind"] == COMPACTION:
            current = event["id"]
        elif event["kind"] == UNDO:
            current = event["body"]["to"]
    return current


def lanes_of(log: Sequence[Plain]) -> list[str | None]:
    return [None, *sorted({event["lane"] for event in log if event.get("lane")})]


def lane_base(log: Sequence[Plain], lane: str | None) -> int:
    """The last event of the root that a lane sees: the one before its own first."""
    if lane is None:
        return 0
    return next((event["seq"] - 1 for event in log if event.get("lane") == lane), len(log))


def last_mark(log: Sequence[Plain], lane: str | None) -> int:
    """The newest event against which a mark of this lane is compared."""
    marks = (e["seq"] for e in log if e["kind"] == REDACTION or (e["kind"] != MESSAGE and e.get("lane") == lane))
    return max(marks, default=0)


def shown_events(log: Sequence[Plain], lane: str | None) -> list[tuple[str, list[str]]]:
    """What a context must show, in order: the id of each event, or "" for a note, and the words in it."""
    by_id, base = {event["id"]: event for event in log}, lane_base(log, lane)
    inherited = [event for event in log if event.get("lane") is None and event["seq"] <= base]
    own = [event for event in log if event.get("lane") == lane and event["seq"] > base]
    checkpoint = checkpoint_in(own)
    if checkpoint is None:
        checkpoint = checkpoint_in(inherited)
    body: Plain = by_id[checkpoint]["body"] if checkpoint else {}
    start = seq_of(log, body.get("boundary"))
    shown = [_head_item(item, by_id) for item in body.get("head", ())]
    pending: set[str] = set()
    for event in (event for event in [*inherited, *own] if event["kind"] == MESSAGE and event["seq"] > start):
        message = event["body"]["message"]
        if message["role"] == "tool":
            if message["tool_call_id"] not in pending:
                continue  # late: the call was closed by another message
            pending.remove(message["tool_call_id"])
        else:
            pending = {call["id"] for call in message.get("tool_calls") or ()}
        message = _edited(message, body.get("edits", {}).get(event["id"], ()))
        parts = [message.get("content") or "", *(message.get("tool_calls") or ())]
        shown.append((event["id"], [found for part in parts for found in words_in(part)]))
    return shown


def _edited(message: Plain, edits: Sequence[list[Any]]) -> Plain:
    """The message with its edits: `["replace", path, value]`, and `["drop", path]` with the original's indices."""
    edited = copy.deepcopy(message)
    drops = sorted((edit for edit in edits if edit[0] == "drop"), key=lambda edit: edit[1], reverse=True)
    for kind, path, *value in [*(edit for edit in edits if edit[0] != "drop"), *drops]:
        at: Any = edited
        for key in path[:-1]:
            at = at[key]
        if kind == "drop":
            del at[path[-1]]
        else:
            at[path[-1]] = value[0]
    return edited


def _head_item(item: Plain, by_id: dict[str, Plain]) -> tuple[str, list[str]]:
    ref = item.get("ref")
    if item.get("message") is not None:
        return ref or "", words_in(item["message"]["parts"])
    return ref, words_in(by_id[ref]["body"]["message"])


def shown_words(log: Sequence[Plain], lane: str | None) -> list[str]:
    return [found for _, words in shown_events(log, lane) for found in words]


def pinned(log: Sequence[Plain], lane: str | None) -> set[str]:
    """Ids of events that are pinned in a lane."""
    pins: set[str] = set()
    for event in log:
        if event["kind"] == PIN and event.get("lane") == lane:
            (pins.add if event["body"]["pinned"] else pins.discard)(event["body"]["event"])
    return pins


def mark_problems(log: Sequence[Plain], mark: Plain) -> list[str]:
    """What the newest event of this log, a compaction or an undo, took away although it must not."""
    before, lane = log[:-1], mark.get("lane")
    if mark["kind"] == UNDO:
        current = checkpoint_in(event for event in before if event.get("lane") == lane)
        checkpoints = {event["id"]: event["body"].get("previous") for event in before if event["kind"] == COMPACTION}
        steps = {checkpoints.get(current or "")} | checkpoints.keys() | {None}
        return [] if current and mark["body"]["to"] in steps else [f"undo {mark['id']} of {current} to {mark['body']}"]
    keep = pinned(before, lane)
    lost = {
        found
        for id, words in shown_events(before, lane)
        if id in keep
        for found in words
        if found not in words_in([words for _, words in shown_events(log, lane)])
    }
    return [f"compaction {mark['id']} hides pinned {sorted(lost)}"] if lost else []


class FamilyModel:
    """What the logs of a session and its forks must hold, and which words must be nowhere."""

    def __init__(self) -> None:
        self.logs: dict[str, list[Plain]] = {}
        """The events of each session: id, kind, lane and, for messages, source and words."""
        self.gone: set[str] = set()

    def add(self, session: str, event: Plain, words: list[str]) -> None:
        body = event["body"]
        entry = {"id": event["id"], "kind": event["kind"], "lane": event.get("lane"), "words": words}
        self.logs[session].append(entry | {"source": body.get("source")})

    def redact(self, event_id: str) -> None:
        """Empties a message and its copies, wherever they are shared."""
        self._forget(lambda entry, _: event_id in (entry["id"], entry["source"]))

    def redact_text(self, text: str) -> None:
        self._forget(lambda _, found: found == text)
        self.gone.add(text)

    def _forget(self, matches: Any) -> None:
        entries = [entry for log in self.logs.values() for entry in log]
        removed: set[str] = set()
        for entry in entries:
            lost = [found for found in entry["words"] if matches(entry, found)]
            removed.update(lost)
            entry["words"] = [found for found in entry["words"] if found not in lost]
        self.gone |= removed - {found for entry in entries for found in entry["words"]}

    def problems(self, session: str, log: Sequence[Plain]) -> list[str]:
        """What differs between a log and this model of it: an event lost, doubled, moved or changed."""
        expected = [(entry["id"], entry["kind"], entry["lane"]) for entry in self.logs[session]]
        actual = [(event["id"], event["kind"], event.get("lane")) for event in log]
        found = [f"{session}: {a} where {e} was written" for a, e in zip(actual, expected, strict=False) if a != e]
        if len(actual) != len(expected):
            found.append(f"{session}: {len(actual)} events, {len(expected)} were written")
        if [event["seq"] for event in log] != list(range(1, len(log) + 1)):
            found.append(f"{session}: the versions do not go up by one")
        for event, entry in zip(log, self.logs[session], strict=False):
            if event["kind"] == MESSAGE and words_in(event["body"]["message"]) != entry["words"]:
                found.append(f"{session}: {event['id']} has {event['body']['message']}, not {entry['words']}")
        return found + [f"{session}: {left} is in the log" for left in sorted(self.gone & set(words_in(log)))]
