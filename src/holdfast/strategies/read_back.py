"""Reads notes back: everything that a later round needs, from the messages alone.

What is read back is data. It adds notes; only a note whose frame verifies, or a summary that nothing the user wrote
precedes, states a task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from typing import cast

import msgspec

from ..context import Carry, View
from ..ledger import FileRecord, Ledger, base_name, is_ledger_page, merge_ledgers, name_kind, parse_page
from ..ledger.headings import TASK
from ..ledger.lines import LedgerLine
from ..messages import Json, Message, is_aside, is_foreign_summary, is_framed, is_request, own_words, strip_frame
from ..summaries.log_section import parse_log_section, split_log_section
from ..summaries.state import WorkstreamState, parse_state
from ..summaries.state_writer import split_state
from ..summaries.structured import original_task, summary_round
from ..summaries.structured_parse import parse_sections
from .trail import CUT_NOTE
from .truncation import parse_truncation_note

_TAGGED_FILES = re.compile(r"<(read|modified)-files>\n(.*?)\n</\1-files>", re.DOTALL)
"""Files at the end of a summary that pi wrote."""


def read_notes_back(view: View) -> None:
    """Sets the checkpoint of a view without one to what the notes among its messages, one or more, state."""
    if view.checkpoint.carry.round or view.checkpoint.carry.ledger is not None:
        return
    notes = [view.messages[index] for index in view.synthetic]
    first_turn = view.turns[0] if view.turns else len(view.messages)
    ledgers = [
        read_note(view.messages[index], opens_context=index < first_turn)
        for index in view.synthetic
        if not is_aside(view.messages[index])
    ]
    ledger = reduce(merge_ledgers, ledgers, Ledger())
    if view.turns and not any(map(_states_task, notes)):  # the task is still visible: it precedes what the notes quote
        asks = (index for index in view.turns if is_request(own_words(view.messages[index])))
        task, counted = next(asks, view.turns[0]), ledger.archived + view.leading_system_count - view.synthetic[0]
        place = view.numbers[task] if view.numbers else counted + task
        text = own_words(view.messages[task]) or view.messages[task].text
        ledger.users.insert(0, LedgerLine(text, "user", "", place, 0, 0))
    if view.events:
        ledger = _without_places(ledger)
    truncated = next((parsed for note in reversed(notes) if (parsed := parse_truncation_note(note))), None)
    carry = Carry(
        round=ledger.round,
        archived=ledger.archived,
        topics=truncated.topics if truncated else (),
        ledger=cast(Json, msgspec.to_builtins(ledger)),
        state=_read_state(notes),
        pins=view.checkpoint.carry.pins,
    )
    view.checkpoint = msgspec.structs.replace(view.checkpoint, carry=carry)


def read_note(note: Message, *, opens_context: bool = True) -> Ledger:
    """Returns the ledger that one note states. `opens_context`: nothing the user wrote precedes it."""
    if is_ledger_page(note):
        return parse_page(strip_frame(note))
    if truncated := parse_truncation_note(note):
        return Ledger(archived=truncated.count, round=truncated.rounds)
    if is_framed(note):
        return _read_summary(strip_frame(note))
    if is_foreign_summary(note) or (note.role == "assistant" and note.text):  # the reply of an opening pair
        return _read_foreign_summary(note.text, opens_context)
    return Ledger()


def _states_task(note: Message) -> bool:
    if is_ledger_page(note):
        return f"\n{TASK} " in note.text
    if is_framed(note):
        summary, section = split_log_section(strip_frame(note))
        return parse_log_section(section).task_place is not None or bool(original_task(summary)) or not section
    return True


def _read_summary(text: str) -> Ledger:
    """Returns the ledger of a summary in a frame: its section from the log, and the task that it shows itself."""
    summary, section = split_log_section(text.removesuffix(CUT_NOTE))
    found = parse_log_section(section)
    ledger, place = found.ledger, found.task_place
    if not ledger.round:  # written before the section stated the round
        ledger.round, place = max(1, summary_round(summary)), 0
    if place is not None and not found.has_task and (task := original_task(summary)):
        ledger.users.insert(0, LedgerLine(task, "user", "", place, 0, 0))
    return ledger


def _read_foreign_summary(text: str, opens_context: bool) -> Ledger:
    ledger = Ledger(round=max(1, summary_round(text)))
    if opens_context and (task := original_task(text)):
        ledger.users = [LedgerLine(task, "user", "", 0, 0, 0)]
    if summary_round(text) and (sections := parse_sections(text)):
        subjects = [row.subject.strip("` ") for row in sections.completed]
        ledger.files = [FileRecord(path, edits=1) for path in dict.fromkeys(subjects) if _is_path(path)]
    for kind, paths in _TAGGED_FILES.findall(text):
        changed = kind == "modified"
        ledger.files += [FileRecord(path, reads=int(not changed), edits=int(changed)) for path in paths.split("\n")]
    return ledger


def _is_path(text: str) -> bool:
    return not any(map(str.isspace, text)) and name_kind(base_name(text)) == "file"


def _without_places(ledger: Ledger) -> Ledger:
    """Returns the ledger without message numbers: those of another session would be taken for numbers of this one."""
    lists = {
        name: [msgspec.structs.replace(record, place=0) for record in getattr(ledger, name)]
        for name in ("users", "closings", "calls", "files", "commands", "errors", "attached", "lines")
    }
    return msgspec.structs.replace(ledger, plan_place=0, counted=0, omitted_from=0, **lists)


def _read_state(notes: Iterable[Message]) -> Json | None:
    """Returns the newest state that a note shows."""
    found: WorkstreamState | None = None
    for note in notes:
        if is_framed(note) and not is_aside(note):
            found = parse_state(split_state(split_log_section(strip_frame(note))[0])[1]) or found
    return None if found is None else cast(Json, msgspec.to_builtins(found))
