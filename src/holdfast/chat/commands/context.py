"""/context: where the tokens are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...anatomy import Anatomy, anatomy, bar, side_by_side, single
from ...messages import decode_all
from ...service import Context
from . import windows
from .command import Command, Page, words_of
from .layout import table

if TYPE_CHECKING:
    from ..chat import Chat

ROWS = 14
LARGEST = 5
_GAUGE, _BAR, _LABEL = 40, 20, 24


async def _context(chat: Chat, argument: str) -> Page:
    words_of(argument, 0, CONTEXT.usage)
    context = await chat.sessions.context(chat.record.id)
    messages, _ = decode_all(context.messages, context.format)
    parts = anatomy(messages, chat.sessions.estimator, context.system, context.tools)
    apart = [] if parts.tokens == context.tokens else [f"{parts.tokens:,} by our own count, of which:"]
    return Page("\n".join([*_gauge(chat, context), *apart, "", *_shares(parts), *_results(parts)]))


def _gauge(chat: Chat, context: Context) -> list[str]:
    window, due = windows.size(chat), windows.threshold(chat)
    line = bar([(min(context.tokens, window), "")], window, _GAUGE, track=True).plain
    counted = "counted by the provider" if context.known else "estimated"
    compacts = f"above {due:,} tokens" if due is not None else chat.preset.figures["compacts"]
    off = "" if chat.auto else ", but automatic compaction is off"
    return [
        f"{line}  {100 * context.tokens / window:.0f} % of {window:,}",
        f"{context.tokens:,} tokens, {counted}, in {len(context):,} message{'s' if len(context) != 1 else ''}",
        f"{chat.preset.name} compacts {compacts}{off}",
    ]


def _shares(parts: Anatomy) -> list[str]:
    """By kind and tool; a tool's bar is its results and its calls together."""
    shares = [row[0] for row in side_by_side(parts, most=ROWS)]
    full = max((share.tokens for share in shares), default=0)
    rows = []
    for share in shares:
        calls = f"{share.count:,} call{'s' if share.count != 1 else ''}" if share.kind == "tool" else f"{share.count:,}"
        part = f"{100 * share.tokens / max(1, parts.tokens):.0f} %"
        line = single(share, full, _BAR, plain=False).plain
        rows.append((share.label[:_LABEL], f"{share.tokens:,}", part, line, calls))
    return table(rows, right=(1, 2))


def _results(parts: Anatomy) -> list[str]:
    rows = [(result.tool[:_LABEL], f"{result.tokens:,}", result.line) for result in parts.results[:LARGEST]]
    return ["", "largest results", *table(rows, right=(1,))] if rows else []


CONTEXT = Command("context", "/context", "show where the tokens of this session are", _context)
