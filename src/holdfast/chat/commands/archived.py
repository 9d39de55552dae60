"""/archived and /compact preview: what a compaction no longer shows, or would not, with the lines kept of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from ...compaction.breakdown import preview_line
from ...context.events import EventKind, LaneTip, try_message_in
from ...context.references import reference
from ...errors import Outcome
from ...messages import Message
from ...sessions.page_lines import PageLine, page_lines
from ...strategies import KeepLedger
from .base import ChatCommand, Choice, Choices, CommandResult, Table, page, split_arguments

if TYPE_CHECKING:
    from ..chat import Chat

_PREVIEW_CHARS = 4_000
_NOTHING_KEPT, _NOT_CITED = "nothing kept", "the summary does not cite it"


async def preview_compaction(chat: Chat) -> CommandResult:
    """Shows what a compaction would do now; calls no model and changes nothing."""
    policy = await chat.agent.keeper.policy()
    found = await chat.sessions.preview(chat.record.id, KeepLedger(), preset=policy)
    if found.outcome is not Outcome.COMPACTED:
        return CommandResult(f"Nothing would be changed: {found.why or found.outcome.value.replace('_', ' ')}.")
    sizes = f"{found.tokens_before:,} → {found.tokens_after:,} tokens"
    note = (
        f"By the ledger: {sizes}; {len(found.archived):,} messages would be archived, {len(found.edited):,} shortened, "
        f"{len(found.kept):,} kept. A model's summary has other lines. Nothing is changed yet: /pin #N keeps a message "
        "visible, /compact INSTRUCTIONS says what to keep."
    )
    items = await _choices(chat, found.archived, list(page_lines(found.page)), _NOTHING_KEPT)
    return _listed(note, Choices(f"Would go: {sizes}", items, "/pin", enter="pin it"))


async def _run_archived(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, ARCHIVED.usage)
    record = await chat.sessions.get(chat.record.id)
    epoch = record.lanes.get("", LaneTip()).epoch
    if epoch is None:
        return CommandResult("Nothing was compacted: the model sees all of this session.")
    found = await chat.sessions.explain(record.id, epoch)
    gone = [one.seq for one in found.events if one.fate in ("archived", "replaced")]
    note = (
        f"The last compaction, {found.tokens_before:,} → {found.tokens_after:,} tokens, archived {len(gone):,} "
        "messages. /recall #N restores one."
    )
    by_model = any(line.rule.startswith("written by") for line in found.page.lines)
    items = await _choices(chat, gone, found.page.lines, _NOT_CITED if by_model else _NOTHING_KEPT)
    return _listed(note, Choices("No longer shown", items, "/recall", enter="restore it"))


def _listed(note: str, choices: Choices) -> CommandResult:
    rows = [(item.detail, item.about, item.title) for item in choices.items]
    listed = page(note, "", Table(rows, clip=True)) if rows else page(note)
    return CommandResult(listed.text, blocks=listed.blocks, choices=choices if rows else None)


async def _choices(chat: Chat, seqs: Collection[int], lines: Iterable[PageLine], none: str) -> list[Choice]:
    kept: dict[int, list[str]] = defaultdict(list)
    for line in lines:
        for source in line.sources:
            kept[source].append(line.text.strip())
    wanted = set(seqs)
    events = await chat.sessions.events(chat.record.id, kind=EventKind.MESSAGE, lane="")
    found = []
    for event in events:
        if event.seq in wanted and (message := try_message_in(event)) is not None:
            own = kept[event.seq]
            count = f"{len(own)} line{'s' * (len(own) != 1)} kept" if own else none
            title = f"{message.role}: {preview_line(message)}"
            found.append(Choice(reference(event), title, reference(event), count, preview=_preview(own, message)))
    return found


def _preview(kept: Sequence[str], message: Message) -> str:
    parts = [message.text, *(f"{call.name} {call.arguments_text}" for call in message.calls)]
    parts += [result.text for result in message.results]
    text = "\n".join(filter(None, parts))[:_PREVIEW_CHARS]
    return "\n".join([*(["Kept of it:", *(f"  {line}" for line in kept), ""] if kept else []), text])


ARCHIVED = ChatCommand("archived", "/archived", "list what the last compaction archived", _run_archived)
