"""Terminal report of one compaction: before and after, by role and tool."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..compaction import CompactionResult, Cost
from ..compaction.bars import KIND_STYLES, bar, share_bar, stacked_bar
from ..compaction.breakdown import ContextBreakdown, align_shares, break_down, preview_line
from ..errors import Outcome
from ..io.text import printable
from ..messages import Message, decode_all, is_framed, rules_for
from ..tokens import Estimator, count_tokens
from .compaction import CliCompaction
from .console import grid, is_ascii_only, print_blocks, unwrapped_line
from .model_window import ModelWindow
from .sources import Source

FITS, CANNOT_FIT, NO_SUMMARY = 0, 1, 3


def summary_error(compaction: CliCompaction, why: str) -> str:
    """Returns the error message for a summary that failed without a fallback."""
    if compaction.model is None:
        name = f"the preset {compaction.preset.name}" if compaction.preset else "the strategy"
        return (
            f"No summary was written, and nothing has changed: no summarizer was named, and {name} needs one. "
            "Name one with --summarizer, or use no model: --strategy ledger."
        )
    why = printable(" ".join(why.split())).rstrip(".")
    return (
        f"No summary was written, and nothing has changed: {why}. Try again, name another --summarizer, or use "
        "no model: --strategy ledger."
    )


class CompactCommandRun(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs and the result of one compaction."""

    source: Source
    compaction: CliCompaction
    result: CompactionResult
    window: ModelWindow
    estimator: Estimator
    budget: int
    target: int | None
    """As given with --target."""
    out: str | None
    problems: tuple[str, ...]

    @property
    def summary(self) -> str | None:
        """The model's summary, if the new context contains it."""
        return None if self.compaction.model is None or self.result.fallback else self.result.summary

    @property
    def notice(self) -> str | None:
        return None if self.summary is None else REPEATED_SUMMARY_NOTICE

    @property
    def error(self) -> str | None:
        """The error message if the summary failed and no fallback was used."""
        return (
            summary_error(self.compaction, self.result.why) if self.result.outcome is Outcome.SUMMARY_FAILED else None
        )

    @property
    def exit_code(self) -> int:
        match self.result.outcome:
            case Outcome.SUMMARY_FAILED:
                return NO_SUMMARY
            case Outcome.NO_PROGRESS:
                return FITS if self.result.tokens_after <= self.budget else CANNOT_FIT
            case outcome:
                return FITS if outcome in _FITTING_OUTCOMES else CANNOT_FIT

    def to_json(self) -> dict[str, Any]:
        """The JSON report; it includes the messages unless they were written to a file."""
        result = self.result
        facts = {
            "type": "compaction" if self.error is None else "error",
            "error": self.error,
            "outcome": result.outcome.value,
            "why": result.why,
            "tokens_before": result.tokens_before,
            "tokens_after": result.tokens_after,
            "tokens_saved": result.tokens_saved,
            "kept": len(result.kept),
            "archived": result.removed,
            "edited": len(result.edited),
            "strategy": result.strategy,
            "preset": self.compaction.preset.name if self.compaction.preset else None,
            "summarizer": self.compaction.summarizer,
            "summary": self.summary,
            "fallback": result.fallback or None,
            "remarks": result.remarks,
            "cost": _cost_json(result.cost),
            "round": result.round,
            "notice": self.notice,
            "format": result.format,
            "valid": not self.problems,
            "budget": self.budget,
            "target": self.result.bounds.target,
            "model": self.window.model,
            "window": self.window.tokens,
            "estimator": self.estimator.name,
        }
        return facts if self.out is not None else facts | {"messages": result.messages}


_FITTING_OUTCOMES = (Outcome.COMPACTED, Outcome.NOT_NEEDED, Outcome.NOTHING_TO_COMPACT)
REPEATED_SUMMARY_NOTICE = (
    "A model's summary leaves things out, and each further one is made from the last: repeated compaction costs "
    "accuracy. Start a new session for new work."
)


def _cost_json(cost: Cost | None) -> dict[str, Any] | None:
    """All fields, including zeros that msgspec would omit."""
    if cost is None:
        return None
    return msgspec.structs.asdict(cost) | {"usage": msgspec.structs.asdict(cost.usage)}


def summary_report(run: CompactCommandRun) -> list[RenderableType] | None:
    """Returns None if no model was used and none was missing."""
    result, table = run.result, grid("left", "left")
    if (source := _summary_source(run)) is not None:
        table.add_row(Text("summary", "bright_black"), source)
    if result.cost is not None and result.cost.calls:
        table.add_row(Text("cost", "bright_black"), Text(_cost_text(result.cost)))
        table.add_row(Text("saves", "bright_black"), Text(_saving_text(result.cost)))
    for column in table.columns:
        column.no_wrap = False
    for remark in result.remarks:
        table.add_row(Text("remark", "bright_black"), Text(printable(remark), "yellow"))
    if run.notice is not None:
        table.add_row(Text("notice", "bright_black"), Text(run.notice))
    return [table] if table.row_count else None


def _summary_source(run: CompactCommandRun) -> Text | None:
    result, compaction = run.result, run.compaction
    if run.summary is not None:
        tokens = count_tokens(run.estimator, run.summary)
        return Text(f"{tokens:,} tokens, written by {compaction.summarizer}")
    if not result.fallback:
        return None
    if compaction.model is not None:
        return Text(f"none: the {result.fallback} was used instead of {compaction.summarizer}", "yellow")
    fallback_of = f" (the fallback of {compaction.preset.name})" if compaction.preset else ""
    return Text(f"none: no --summarizer was named, so the {result.fallback}{fallback_of} was used", "yellow")


def _cost_text(cost: Cost) -> str:
    usage = cost.usage
    read = usage.input + usage.cache_read + usage.cache_write
    if not read + usage.output:
        return f"{_call_count(cost.calls)}, tokens not reported"
    price = "" if cost.price is None else f", {_dollars(cost.price)}"
    return f"{_call_count(cost.calls)}, {read:,} tokens in, {usage.output:,} out{price}"


def _saving_text(cost: Cost) -> str:
    saved = f"{cost.saved_per_call:,} tokens a call"
    if cost.pays_after is None:
        return f"{saved}; it does not pay for itself"
    return f"{saved}; pays for itself after {_call_count(cost.pays_after)}"


def _call_count(number: int) -> str:
    return f"{number:,} call" if number == 1 else f"{number:,} calls"


def _dollars(price: float) -> str:
    return f"${price:,.2f}" if price >= 1 else f"${price:.4f}"


MAX_COMPARED_ROWS = 12
PREVIEW_LINES, PREVIEW_MESSAGES = 6, 5
_ROLE_STYLES = {"system": "magenta", "user": "green", "assistant": "cyan", "tool": "yellow"}


def print_compaction_report(console: Console, run: CompactCommandRun) -> None:
    source, result, plain = run.source, run.result, is_ascii_only(console)
    old, _ = decode_all(source.messages, result.format)
    new, _ = decode_all(result.messages, result.format)
    before = break_down(old, run.estimator, source.system, source.tools)
    after = break_down(new, run.estimator, source.system, source.tools)
    changed = result.tokens_after != result.tokens_before
    print_blocks(
        console,
        [unwrapped_line(source.title, "bold"), Text(printable(run.window.description), "bright_black")],
        _total_bars(run, before, after, console.width, plain=plain),
        _share_rows(before, after, console.width, plain=plain) if changed else None,
        _compaction_facts(run, before, after),
        _context_preview(new, console.width) if changed else None,
        summary_report(run),
        _outcome_lines(run),
    )


def _total_bars(
    run: CompactCommandRun, before: ContextBreakdown, after: ContextBreakdown, width: int, *, plain: bool
) -> Table:
    """Bars of both contexts and of the budget, on one scale."""
    result = run.result
    full = max(result.tokens_before, run.budget if result.outcome is Outcome.NOT_NEEDED else 1)
    cells = max(4, width - 34)
    table = grid("left", "right", "left")
    rows = [("before", result.tokens_before, before)]
    if result.tokens_after != result.tokens_before:
        rows.append(("after", result.tokens_after, after))
    for label, tokens, parts in rows:
        table.add_row(Text(label), Text(f"{tokens:,}", "bold"), stacked_bar(parts.shares, full, cells, plain=plain))
    table.add_row(
        Text("window" if run.compaction.preset else "budget", "bright_black"),
        Text(f"{run.budget:,}", "bright_black"),
        bar([(min(run.budget, full), "bright_black")], full, cells, plain=plain),
    )
    return table


def _share_rows(before: ContextBreakdown, after: ContextBreakdown, width: int, *, plain: bool) -> Table:
    """One row per role and tool, with before and after on the same scale."""
    pairs = align_shares(before, after, most=MAX_COMPARED_ROWS)
    full = max(share.tokens for pair in pairs for share in pair)
    cells = max(4, (width - 46) // 2)
    table = grid("left", "right", "left", "right", "left")
    table.columns[0].max_width = 18
    table.add_row("", Text("before", "bright_black"), "", Text("after", "bright_black"), "")
    for pair in pairs:
        row: list[Text] = [Text(printable(pair[0].label), KIND_STYLES[pair[0].kind])]
        for share in pair:
            row += [Text(f"{share.tokens:,}" if share.tokens else "–"), share_bar(share, full, cells, plain=plain)]
        table.add_row(*row)
    return table


def _compaction_facts(run: CompactCommandRun, before: ContextBreakdown, after: ContextBreakdown) -> Table:
    result = run.result
    table = grid("left", "rest")
    show_target = run.compaction.uses_target or run.target is not None

    def fact(label: str, text: str, style: str = "") -> None:
        table.add_row(Text(label, "bright_black"), Text(text, style))

    if result.removed or result.edited:
        turns = f", {len(after.turns)} of {len(before.turns)} turns" if before.turns else ""
        fact("kept", f"{len(result.kept)} of {before.messages} messages{turns}")
        fact("archived", f"{result.removed} messages, {result.tokens_saved:,} tokens")
    else:
        fact("messages", f"{before.messages} in {len(before.turns)} turns")
    if result.edited:
        fact("cleared", f"old results in {len(result.edited)} of the kept messages")
    if result.strategy:
        fact("strategy", result.strategy + (f", target {run.result.bounds.target:,}" if show_target else ""))
    if run.compaction.preset is not None:
        fact("preset", run.compaction.preset.name)
    fact("tokens", f"counted with {run.estimator.name}")
    name = rules_for(result.format or "common").name
    verdict = f"no, {run.problems[0]}" if run.problems else "yes"
    fact("checks", f"valid for {name}: {verdict}", "red" if run.problems else "green")
    if run.out not in (None, "-"):
        fact("written", printable(str(run.out)))
    return table


def _context_preview(messages: list[Message], width: int) -> Table:
    """The first lines of the new context, as the model will see them."""
    table = grid("right", "left", "rest")
    for index, message in enumerate(messages[:PREVIEW_MESSAGES]):
        lines = [preview_line(message)]
        if is_framed(message):
            shown = [line for text in message.text.splitlines() if (line := printable(text).rstrip())]
            lines = shown[:PREVIEW_LINES] + (["…"] if len(shown) > PREVIEW_LINES else [])
        for place, line in enumerate(lines):
            number, role = (str(index), message.role) if place == 0 else ("", "")
            table.add_row(Text(number, "bright_black"), Text(role, _ROLE_STYLES[message.role]), Text(line))
    if (more := len(messages) - PREVIEW_MESSAGES) > 0:
        table.add_row("", "", Text(f"… {more} more message{'s' if more > 1 else ''}", "bright_black"))
    return table


def _outcome_lines(run: CompactCommandRun) -> list[RenderableType]:
    """The outcome in one sentence, with a suggestion if nothing was done."""
    result, before, after = run.result, run.result.tokens_before, run.result.tokens_after
    match result.outcome:
        case Outcome.COMPACTED:
            part = min(99, 100 * result.tokens_saved // max(1, before))
            return [Text(f"Compacted: {before:,} → {after:,} tokens, {part} % smaller.", "bold green")]
        case Outcome.NOT_NEEDED:
            return _not_needed_lines(run)
        case Outcome.CANNOT_FIT:
            sentence = f"Cannot fit: {after:,} tokens is the smallest valid context, over the budget of {run.budget:,}."
            return [Text(sentence, "bold red"), Text(f"Use --budget {after} or more.")]
        case _:
            sentence = result.outcome.value.replace("_", " ").capitalize()
            return [Text(f"{sentence}: {result.why}." if result.why else f"{sentence}.", "bold yellow")]


def _not_needed_lines(run: CompactCommandRun) -> list[RenderableType]:
    """The reason nothing was done, and a command that compacts anyway."""
    tokens, compaction = run.result.tokens_before, run.compaction
    sentence = f"Nothing to do: {tokens:,} tokens are within the budget of {run.budget:,}."
    if compaction.preset is not None:
        preset = compaction.preset
        sentence = f"Nothing to do: {preset.name} compacts {preset.figures['compacts']}. Found {tokens:,} tokens."
    window = f" --budget {run.budget}" if run.window.explicit else ""
    more = (
        f"{compaction.option_text}{window} --now" if compaction.option_text else f"--budget {_suggested_budget(tokens)}"
    )
    command = f"holdfast compact {run.source.arguments} {more}"
    return [Text(sentence, "bold"), unwrapped_line(f"To compact anyway: {command}")]


def _suggested_budget(tokens: int) -> str:
    """About half of the tokens, rounded."""
    half = max(1, tokens // 2)
    if half < 1_000:
        return str(half)
    digits = 10 ** max(3, len(str(half)) - 2)
    return f"{max(digits, half // digits * digits) // 1000}k"
