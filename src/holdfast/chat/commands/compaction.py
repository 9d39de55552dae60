"""/compact, /undo, /autocompact and /context, with the window size and threshold they show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...compaction.bars import bar, share_bar
from ...compaction.breakdown import ContextBreakdown, align_shares, break_down
from ...compaction.presets import takes_sizes
from ...compaction.size import Size
from ...errors import HoldfastError, InvalidInput
from ...messages import decode_all
from ...settings import Settings, load_settings, save_setting
from ...triggers import OverThreshold
from .archived import preview_compaction
from .base import ChatCommand, Choice, Choices, CommandResult, Table, page, split_arguments

if TYPE_CHECKING:
    from ..chat import Chat
    from ..state import ChatCompactionResult, Restraint


def chat_settings(chat: Chat) -> Settings:
    """Returns the settings the chat was opened from, or else those of its folder."""
    return chat.settings or load_settings(chat.folder.root)


def window_source(chat: Chat, size: Size) -> str:
    """Describes where the window size comes from."""
    origin = chat_settings(chat).origins.get("window", "default")
    return {
        "given": "given when the chat was opened" if origin == "default" else origin,
        "learned": "learned from the model, which rejected more",
        "recorded": "recorded by the tool that the session comes from",
        "reported": "listed by the provider",
        "catalog": "the model catalog",
    }.get(size.window_basis, f"the default of the preset {chat.preset.name}: the model is not in the catalog")


_RESTRAINTS: dict[str, tuple[Restraint, str]] = {
    "pause": ("off", "Automatic compaction is off in this session: /autocompact on turns it on again."),
    "full": ("until full", "This session is compacted only when its window is full: /autocompact on undoes that."),
}
AUTOCOMPACT_SETTING = "compaction.enabled"
_AUTOCOMPACT_NUMBERS = ("reserve_tokens", "keep_recent_tokens")


async def _run_autocompact(chat: Chat, argument: str) -> CommandResult:
    word = split_arguments(argument, 1, AUTOCOMPACT.usage)[0].lower()
    if word in _RESTRAINTS:
        restraint, report = _RESTRAINTS[word]
        chat.restrain(restraint)
        return page(report, "", Table(await _autocompact_rows(chat)))
    if word not in ("", "on", "off"):
        raise InvalidInput(f"Automatic compaction is on or off, not {word!r}: {AUTOCOMPACT.usage}.")
    if not word:
        now = f"Automatic compaction is {'on' if chat.auto else 'off'}."
        change = "Change it: /autocompact on, /autocompact off."
        rows = await _autocompact_rows(chat)
        numbers = "; ".join(f"{name} {value}" for name, value, _ in rows[2:])
        items = (
            Choice("on", "on", about=numbers, current=chat.auto),
            Choice("off", "off", about="/compact compacts", current=not chat.auto),
        )
        choices = Choices("Automatic compaction", items, "/autocompact")
        return page(now, "", Table(rows), "", change, choices=choices)
    wanted = word == "on"
    chat.configure(auto=wanted)
    text = f"Automatic compaction is {'on' if wanted else 'off'}. {_persist_auto_setting(chat, wanted)}"
    return page(text, "", Table(await _autocompact_rows(chat)))


def _persist_auto_setting(chat: Chat, wanted: bool) -> str:
    """Saves the setting for later chats; returns a sentence about whether it worked."""
    try:
        file = save_setting(AUTOCOMPACT_SETTING, wanted)
        later = load_settings(chat.folder.root)
    except HoldfastError as problem:
        return f"It applies to this conversation only: {problem}"
    if later.compaction.enabled is wanted:
        return f"It is saved in {file}."
    return f"It is saved in {file}, but {later.origins[AUTOCOMPACT_SETTING]} overrides it at the next start."


async def _autocompact_rows(chat: Chat) -> list[Sequence[str]]:
    size = await chat.agent.keeper.size()
    rows: list[Sequence[str]] = [
        ("preset", chat.preset.name, f"compacts {chat.preset.figures['compacts']}"),
        ("window", f"{size.window or 0:,}", window_source(chat, size)),
        (
            "threshold",
            "–" if size.threshold is None else f"{size.threshold:,}",
            "tokens above which this preset compacts",
        ),
    ]
    if not takes_sizes(chat.preset.name):
        return [*rows, ("keeps", "–", chat.preset.figures["keeps"])]
    settings = chat_settings(chat)
    for name, used in zip(_AUTOCOMPACT_NUMBERS, (size.reply, size.target or 0), strict=True):
        key = f"compaction.{name}"
        less = f", but {used:,} in this window" if 0 < used < settings.value(key) else ""
        rows.append((name, f"{settings.value(key):,}", f"{settings.origins.get(key, 'default')}{less}"))
    return rows


async def _complete_on_off(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return ("on", "off", *_RESTRAINTS) if len(words) == 1 else ()


AUTOCOMPACT = ChatCommand(
    "autocompact",
    "/autocompact [on|off]",
    "show automatic compaction, or turn it on or off",
    _run_autocompact,
    _complete_on_off,
)


_WITHOUT_MODEL, _PREVIEW = "--without-model", "preview"


async def _run_compact(chat: Chat, argument: str) -> CommandResult:
    if argument == _PREVIEW:
        return await preview_compaction(chat)
    if argument == _WITHOUT_MODEL:
        return CommandResult(describe_compaction(await chat.compact(without_model=True)))
    return CommandResult(describe_compaction(await chat.compact(argument or None)))


async def _complete_compact(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return (_PREVIEW, _WITHOUT_MODEL) if len(words) == 1 and words[0] else ()


def describe_compaction(done: ChatCompactionResult) -> str:
    """Describes the result of a compaction in a few sentences."""
    if done.tokens_after == done.tokens_before and not done.archived:
        words = f"Nothing was changed: {done.why or done.outcome.replace('_', ' ')}."
    else:
        words = (
            f"Compacted: {done.tokens_before:,} → {done.tokens_after:,} tokens. {done.archived:,} "
            f"message{'s were' if done.archived != 1 else ' was'} archived, {done.kept:,} kept as they are; /undo "
            "reverts it, and /search finds archived messages."
        )
        words += f" It is still too large: {done.why}." if done.why else ""
        words += f" No model wrote a summary: the {done.fallback} is used instead." if done.fallback else ""
    return words + (" The interrupted run continues." if done.continued else "")


async def _run_undo(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, UNDO.usage)
    before = (await chat.sessions.context(chat.record.id)).tokens
    await chat.undo()
    after = (await chat.sessions.context(chat.record.id)).tokens
    return CommandResult(
        f"The last compaction is undone: {before:,} → {after:,} tokens. Automatic compaction is paused until "
        "your next message."
    )


COMPACT = ChatCommand(
    "compact",
    "/compact [preview|WORDS]",
    "replace older messages with a summary",
    _run_compact,
    _complete_compact,
)
UNDO = ChatCommand("undo", "/undo", "undo the last compaction", _run_undo)
MAX_BREAKDOWN_ROWS = 14
MAX_LARGEST_RESULTS = 5
_USAGE_BAR_WIDTH, _SHARE_BAR_WIDTH, _LABEL_WIDTH = 20, 20, 24


async def _run_context(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, CONTEXT.usage)
    context, size = await chat.sessions.context(chat.record.id), await chat.agent.keeper.size()
    messages, _ = decode_all(context.messages, context.format)
    parts = break_down(messages, chat.sessions.estimator, context.system, context.tools)
    instructions = [f"project instructions: {file.summary}" for file in chat.instructions]
    apart = [] if parts.tokens == size.tokens else [f"{parts.tokens:,} by local estimate, of which:"]
    return page(
        *_usage_lines(chat, size, len(context)),
        *instructions,
        *apart,
        "",
        _breakdown_table(parts),
        *_largest_results(parts),
    )


def _usage_lines(chat: Chat, size: Size, count: int) -> list[str]:
    window = size.window or 1
    due = size.threshold if isinstance(chat.preset.trigger, OverThreshold) else None
    line = bar([(min(size.tokens, window), "")], window, _USAGE_BAR_WIDTH, track=True).plain
    counted = "counted by the provider" if size.known else "estimated"
    compacts = f"above {due:,} tokens" if due is not None else chat.preset.figures["compacts"]
    off = "" if chat.auto else ", but automatic compaction is off"
    return [
        f"{line}  {100 * size.tokens / window:.0f} % of {window:,}",
        f"{size.tokens:,} tokens, {counted}, in {count:,} message{'s' if count != 1 else ''}",
        f"{chat.preset.name} compacts {compacts}{off}",
        *size.remarks,
    ]


def _breakdown_table(parts: ContextBreakdown) -> Table:
    """Rows by kind and tool; a tool's bar counts its results and its calls together."""
    shares = [row[0] for row in align_shares(parts, most=MAX_BREAKDOWN_ROWS)]
    full = max((share.tokens for share in shares), default=0)
    rows = []
    for share in shares:
        calls = f"{share.count:,} call{'s' if share.count != 1 else ''}" if share.kind == "tool" else f"{share.count:,}"
        part = f"{100 * share.tokens / max(1, parts.tokens):.0f} %"
        line = share_bar(share, full, _SHARE_BAR_WIDTH, plain=False).plain
        rows.append((share.label[:_LABEL_WIDTH], f"{share.tokens:,}", part, calls, line))
    return Table(rows, right=(1, 2, 3), clip=True)


def _largest_results(parts: ContextBreakdown) -> list[str | Table]:
    rows = [
        (result.tool[:_LABEL_WIDTH], f"{result.tokens:,}", result.line)
        for result in parts.results[:MAX_LARGEST_RESULTS]
    ]
    return ["", "largest results", Table(rows, right=(1,), clip=True)] if rows else []


CONTEXT = ChatCommand("context", "/context", "show token usage by kind and tool", _run_context)
