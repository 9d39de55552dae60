"""The report of one compaction: what was there, what is there now, and what became of the rest."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..anatomy import STYLES, Anatomy, anatomy, bar, glimpse, printable, side_by_side, single, stacked
from ..messages import Message, decode_all, is_framed, profile_for
from ..outcome import Outcome
from .blocks import ascii_only, grid, show, whole_line
from .run import Run
from .told import told

ROWS = 12
FIRST_LINES, FIRST_MESSAGES = 6, 5
_ROLE_STYLES = {"system": "magenta", "user": "green", "assistant": "cyan", "tool": "yellow"}


def report(console: Console, run: Run) -> None:
    source, result, plain = run.source, run.result, ascii_only(console)
    old, _ = decode_all(source.messages, result.format)
    new, _ = decode_all(result.messages, result.format)
    before = anatomy(old, run.estimator, source.system, source.tools)
    after = anatomy(new, run.estimator, source.system, source.tools)
    changed = result.tokens_after != result.tokens_before
    show(
        console,
        [whole_line(source.title, "bold"), Text(printable(run.window.words), "bright_black")],
        _totals(run, before, after, console.width, plain=plain),
        _rows(before, after, console.width, plain=plain) if changed else None,
        _facts(run, before, after),
        _beginning(new, console.width) if changed else None,
        told(run),
        _closing(run),
    )


def _totals(run: Run, before: Anatomy, after: Anatomy, width: int, *, plain: bool) -> Table:
    """Both contexts on one scale, and how much the budget and the target would be on it."""
    result = run.result
    full = max(result.tokens_before, run.budget if result.outcome is Outcome.NOT_NEEDED else 1)
    cells = max(4, width - 34)
    table = grid("left", "right", "left")
    rows = [("before", result.tokens_before, before)]
    if result.tokens_after != result.tokens_before:
        rows.append(("after", result.tokens_after, after))
    for label, tokens, parts in rows:
        table.add_row(Text(label), Text(f"{tokens:,}", "bold"), stacked(parts.shares, full, cells, plain=plain))
    table.add_row(
        Text("window" if run.way.preset else "budget", "bright_black"),
        Text(f"{run.budget:,}", "bright_black"),
        bar([(min(run.budget, full), "bright_black")], full, cells, plain=plain),
    )
    return table


def _rows(before: Anatomy, after: Anatomy, width: int, *, plain: bool) -> Table:
    """Role by role and tool by tool, each pair of bars on the same scale."""
    pairs = side_by_side(before, after, most=ROWS)
    full = max(share.tokens for pair in pairs for share in pair)
    cells = max(4, (width - 46) // 2)
    table = grid("left", "right", "left", "right", "left")
    table.columns[0].max_width = 18
    table.add_row("", Text("before", "bright_black"), "", Text("after", "bright_black"), "")
    for pair in pairs:
        row: list[Text] = [Text(printable(pair[0].label), STYLES[pair[0].kind])]
        for share in pair:
            row += [Text(f"{share.tokens:,}" if share.tokens else "–"), single(share, full, cells, plain=plain)]
        table.add_row(*row)
    return table


def _facts(run: Run, before: Anatomy, after: Anatomy) -> Table:
    result = run.result
    table = grid("left", "rest")
    aims = run.way.aims or run.target is not None

    def fact(label: str, words: str, style: str = "") -> None:
        table.add_row(Text(label, "bright_black"), Text(words, style))

    if result.removed or result.edited:
        turns = f", {len(after.turns)} of {len(before.turns)} turns" if before.turns else ""
        fact("kept", f"{len(result.kept)} of {before.messages} messages{turns}")
        fact("archived", f"{result.removed} messages, {result.tokens_saved:,} tokens")
    else:
        fact("messages", f"{before.messages} in {len(before.turns)} turns")
    if result.edited:
        fact("cleared", f"old results in {len(result.edited)} of the kept messages")
    if result.strategy:
        fact("strategy", result.strategy + (f", target {run.aim:,}" if aims else ""))
    if run.way.preset is not None:
        fact("preset", run.way.preset.name)
    fact("tokens", f"counted with {run.estimator.name}")
    name = profile_for(result.format or "common").name
    said = f"no, {run.problems[0]}" if run.problems else "yes"
    fact("checks", f"valid for {name}: {said}", "red" if run.problems else "green")
    if run.out not in (None, "-"):
        fact("written", printable(str(run.out)))
    return table


def _beginning(messages: list[Message], width: int) -> Table:
    """The first lines of the new context, as the model will read them."""
    table = grid("right", "left", "rest")
    for index, message in enumerate(messages[:FIRST_MESSAGES]):
        lines = [glimpse(message)]
        if is_framed(message):
            said = [line for text in message.text.splitlines() if (line := printable(text).rstrip())]
            lines = said[:FIRST_LINES] + (["…"] if len(said) > FIRST_LINES else [])
        for place, line in enumerate(lines):
            number, role = (str(index), message.role) if place == 0 else ("", "")
            table.add_row(Text(number, "bright_black"), Text(role, _ROLE_STYLES[message.role]), Text(line))
    if (more := len(messages) - FIRST_MESSAGES) > 0:
        table.add_row("", "", Text(f"… {more} more message{'s' if more > 1 else ''}", "bright_black"))
    return table


def _closing(run: Run) -> list[RenderableType]:
    """The outcome in words, and what to do where nothing was done."""
    result, before, after = run.result, run.result.tokens_before, run.result.tokens_after
    match result.outcome:
        case Outcome.COMPACTED:
            part = min(99, 100 * result.tokens_saved // max(1, before))
            return [Text(f"Compacted: {before:,} → {after:,} tokens, {part} % smaller.", "bold green")]
        case Outcome.NOT_NEEDED:
            return _idle(run)
        case Outcome.CANNOT_FIT:
            words = f"Cannot fit: {after:,} tokens is the smallest valid context, over the budget of {run.budget:,}."
            return [Text(words, "bold red")]
        case _:
            words = result.outcome.value.replace("_", " ").capitalize()
            return [Text(f"{words}: {result.why}." if result.why else f"{words}.", "bold yellow")]


def _idle(run: Run) -> list[RenderableType]:
    """Why nothing was done, and the command that does it all the same."""
    tokens, way = run.result.tokens_before, run.way
    words = f"Nothing to do: {tokens:,} tokens are within the budget of {run.budget:,}."
    if way.preset is not None:
        words = (
            f"Nothing to do: {way.preset.name} compacts {way.preset.figures['compacts']}. These are {tokens:,} tokens."
        )
    window = f" --budget {run.budget}" if run.window.asked else ""
    more = f"{way.asked}{window} --now" if way.asked else f"--budget {_smaller(tokens)}"
    command = f"holdfast compact {run.source.arguments} {more}"
    return [Text(words, "bold"), whole_line(f"To compact all the same: {command}")]


def _smaller(tokens: int) -> str:
    """About half, in round figures."""
    half = max(1, tokens // 2)
    if half < 1_000:
        return str(half)
    digits = 10 ** max(3, len(str(half)) - 2)
    return f"{max(digits, half // digits * digits) // 1000}k"
