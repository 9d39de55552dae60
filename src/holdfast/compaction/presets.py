"""The presets: known compaction systems by name. Every number that their documents give is an argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec

import msgspec

from ..errors import InvalidInput
from ..io.arguments import did_you_mean
from ..models.calls import Limits
from ..strategies import (
    KeepFraction,
    KeepLast,
    KeepNothing,
    KeepRecent,
    KeepTrail,
    KeepUserMessages,
    Pipeline,
    PruneToolResults,
    RecursiveSummary,
    StateSummary,
    StructuredSummary,
    Summary,
)
from ..summaries import (
    CLAUDE_CODE_TASK,
    CODEX_TASK,
    GOAT_TASK,
    OPENCODE_TASK,
    PI_TASK,
    AsAssistant,
    AsExchange,
    AsUser,
    FreeText,
    Style,
    as_assistant,
)
from ..tokens.budget import (
    DEFAULT_RESERVE,
    BelowWindow,
    CodexLimit,
    Fraction,
    LayerBudget,
    Reserve,
    RoomFraction,
    Tokens,
    WorkstreamBudget,
    require_fraction,
    require_positive,
)
from ..triggers import OverThreshold, TurnCount, any_of, never
from .policy import Policy, PolicyLike

__all__ = ["DEFAULT_KEEP", "DEFAULT_PRESET", "DEFAULT_RESERVE", "PRESETS", "preset", "takes_sizes"]

DEFAULT_PRESET = "holdfast"
DEFAULT_KEEP = 20_000
PRESETS: dict[str, Callable[..., Policy]] = {}
"""All presets by name; each is a function of the numbers in its document."""
_Arguments = ParamSpec("_Arguments")
_HALF, _QUARTER = 0.5, 0.25
"""Largest share of a small window that a threshold's reserve takes, and that is kept free for the reply."""
_PI_SUMMARY_SHARE = 1 / 3
"""Share of a small window's target for the summary: pi keeps its newest tokens whole wherever that is possible."""
_WHOLE_HISTORY_STYLE = Style(result_limit=2_000, text_limit=8_000, images=4)
"""For systems whose summarizer sees the whole conversation: longer excerpts, and the newest images."""


def preset(name: PolicyLike, **arguments: object) -> Policy:
    """Returns a preset by name, with these of its numbers: `preset("layer", percent=0.7)`; a policy as it is.

    Raises `InvalidInput` for an unknown name or argument, with the ones there are.
    """
    if isinstance(name, Policy):
        return name
    wanted = name.strip().lower().replace("-", "_") if isinstance(name, str) else ""
    if wanted not in PRESETS:
        hint = f"{near} " if (near := did_you_mean(wanted, PRESETS)) else ""
        raise InvalidInput(f"There is no preset {name!r}: {hint}Use one of {', '.join(PRESETS)}.")
    known = inspect.signature(PRESETS[wanted]).parameters
    if unknown := [argument for argument in arguments if argument not in known]:
        takes = f"it takes {', '.join(known)}" if known else "it has no numbers to change"
        raise InvalidInput(f"The preset {wanted!r} has no {unknown[0]!r}: {takes}.")
    return PRESETS[wanted](**arguments) if arguments else _by_document(wanted)


@cache
def _by_document(name: str) -> Policy:
    return PRESETS[name]()


def takes_sizes(name: str) -> bool:
    """Whether a preset has a reserve for the reply and a number of tokens to keep."""
    return {"reserve", "keep"} <= inspect.signature(PRESETS[name]).parameters.keys()


def _preset(build: Callable[_Arguments, Policy]) -> Callable[_Arguments, Policy]:
    """Registers a preset under its function's name, which its policy carries with the arguments given."""

    @wraps(build)
    def named(*positional: _Arguments.args, **arguments: _Arguments.kwargs) -> Policy:
        return msgspec.structs.replace(build(*positional, **arguments), name=build.__name__, arguments=arguments)

    PRESETS[build.__name__] = named
    return named


@_preset
def holdfast(*, percent: float = 0.85, reserve: int = DEFAULT_RESERVE, keep: int = DEFAULT_KEEP) -> Policy:
    """Holdfast's own; in a small window the reserve is at most a quarter of the window."""
    require_positive("reserve", reserve)
    return Policy(
        about="Recommended: a structured summary, updated and verified in each round, and the trail of the newest "
        "steps; the ledger if the model fails.",
        figures={
            "compacts": f"above {_percent(percent)} of the window less {reserve:,} for the reply",
            "counts": "the provider's usage, and a real tokenizer calibrated by it",
            "keeps": f"the newest {keep:,} tokens, of older tool results a few lines",
            "summary": "structured sections, 2,000 tokens requested, 8,192 allowed, updated and verified; up to 8,000 "
            "tokens of errors, files, commands and relevant excerpts",
            "shown as": "a user message with a prefix",
            "if it fails": "the ledger",
        },
        threshold=Fraction(percent, reserve, _QUARTER),
        reply=Reserve(reserve, _QUARTER),
        target_share=2 / 3,
        strategy=StructuredSummary(KeepTrail(keep)),
    )


@_preset
def spring(*, turns: int = 20, tokens: int = 4_000, keep: int = 10, overlap: int = 2) -> Policy:
    """Spring AI Session."""
    return Policy(
        about="Spring AI Session: a recursive summary, shown as a user message and an assistant reply.",
        figures={
            "compacts": f"above {turns} turns, or at {tokens:,} tokens",
            "counts": "a real tokenizer",
            "keeps": f"the newest {keep} events, starting at a user message",
            "summary": f"recursive: includes the previous summary; {overlap} events of overlap",
            "shown as": "a user message and an assistant reply",
            "if it fails": "context unchanged, with a callback",
        },
        threshold=Tokens(tokens),
        trigger=any_of(TurnCount(turns), OverThreshold(inclusive=True)),
        strategy=RecursiveSummary(max_events_to_keep=keep, overlap_size=overlap, last_resort="unchanged"),
        calibrated=False,
    )


@_preset
def pi(*, reserve: int = DEFAULT_RESERVE, keep: int = DEFAULT_KEEP, summary_share: float = 0.8) -> Policy:
    """The pi coding agent: 4/5 of the reserve is for the summary; the reserve is at most half the window."""
    require_positive("reserve", reserve)
    require_fraction("summary_share", summary_share)
    summary = max(1, int(summary_share * reserve))
    return Policy(
        about="The pi coding agent: a handover checkpoint, followed by the newest turns.",
        figures={
            "compacts": f"above the window less {reserve:,}",
            "counts": "the provider's usage, plus characters / 4 for newer messages",
            "keeps": f"the newest {keep:,} tokens since the last compaction, starting at a user message",
            "summary": f"free text: goal, progress, files by absolute path, next steps; at most {summary:,} tokens",
            "shown as": "a user message with a prefix",
            "if it fails": "the user decides",
        },
        threshold=BelowWindow(reserve, _HALF),
        reply=Reserve(reserve, _QUARTER),
        strategy=Summary(
            KeepRecent(keep, fresh_only=True, leaves=_PI_SUMMARY_SHARE),
            FreeText(PI_TASK, max_tokens=summary, style=Style(result_limit=2_000, text_limit=8_000)),
            AsUser(),
            name="pi summary",
            last_resort="ask",
        ),
        estimator="chars/4",
        usual_window=200_000,
    )


@_preset
def claude_code(*, percent: float = 0.95) -> Policy:
    """Claude Code."""
    return Policy(
        about="Claude Code: summarizes the whole history and starts a new context from the summary.",
        figures={
            "compacts": f"above {_percent(percent)} of the window",
            "counts": "the provider's usage, and a real tokenizer calibrated by it",
            "keeps": "a user message that is not answered yet, and an unfinished tool loop",
            "summary": "free text: done, in progress, files, next steps, requests; following your instructions",
            "shown as": "a user message with a prefix",
            "if it fails": "the ledger",
        },
        threshold=Fraction(percent),
        reply=_left_by(percent),
        strategy=Summary(
            KeepNothing(),
            FreeText(CLAUDE_CODE_TASK, style=_WHOLE_HISTORY_STYLE),
            AsUser(),
            name="whole-history summary",
        ),
        usual_window=200_000,
    )


@_preset
def claude_code_ts(*, percent: float = 0.95, keep: float = 0.5) -> Policy:
    """Claude Code's TypeScript agent."""
    return Policy(
        about="Claude Code's TypeScript agent: summarizes the older half of the messages; an error if the model fails.",
        figures={
            "compacts": f"above {_percent(percent)} of the window",
            "counts": "the provider's usage, and a real tokenizer calibrated by it",
            "keeps": f"the newest {_percent(keep)} of the messages, extended back to keep tool calls with their "
            "results",
            "summary": "free text: done, in progress, files, next steps, requests; following your instructions",
            "shown as": "a user message with a prefix",
            "if it fails": "an error, and the context is unchanged",
        },
        threshold=Fraction(percent),
        reply=_left_by(percent),
        strategy=Summary(
            KeepFraction(keep), FreeText(CLAUDE_CODE_TASK), AsUser(), name="half-history summary", last_resort="error"
        ),
        usual_window=200_000,
    )


@_preset
def codex(*, limit: int | None = None, percent: float = 0.95, keep: int = 20_000, attempts: int = 5) -> Policy:
    """Codex CLI; without a limit, the one of its document for the window."""
    absolute = "180,000 tokens (244,000 for windows of 272,000 and more)" if limit is None else f"{limit:,} tokens"
    return Policy(
        about="Codex CLI: the newest user messages, followed by a summary.",
        figures={
            "compacts": f"above {absolute}, or above {_percent(percent)} of a smaller window",
            "counts": "the provider's usage, and a real tokenizer calibrated by it",
            "keeps": f"user messages only, the newest {keep:,} tokens",
            "summary": "free text, a handoff to another model: progress, context, remaining work, references",
            "shown as": "a user message with a prefix, after the kept ones",
            "if it fails": f"{attempts} attempts with exponential backoff, then context unchanged",
        },
        threshold=CodexLimit(limit, percent),
        reply=_left_by(percent),
        strategy=Summary(
            KeepUserMessages(keep),
            FreeText(CODEX_TASK, style=_WHOLE_HISTORY_STYLE),
            AsUser(),
            name="codex summary",
            last_resort="unchanged",
        ),
        usual_window=272_000,
        limits=Limits(attempts=attempts),
    )


@_preset
def opencode(*, output: int = 32_000, protect: int = 40_000, minimum: int = 20_000) -> Policy:
    """OpenCode; the output is at most half the window."""
    return Policy(
        about="OpenCode: clears old tool results first; if that is not enough, adds a summary as an assistant message.",
        figures={
            "compacts": f"above the window less the maximum output ({output:,})",
            "counts": "the provider's usage, and a real tokenizer calibrated by it",
            "keeps": f"the newest {protect:,} tokens of tool results; clears older ones if that frees more than "
            f"{minimum:,}",
            "summary": "free text: done, current work, files, next, lasting requests, decisions; two sentences for "
            "display",
            "shown as": "an assistant message under a heading that marks it as a summary",
            "if it fails": "the ledger",
        },
        threshold=BelowWindow(output, _HALF),
        reply=Reserve(output, _QUARTER),
        strategy=Pipeline(
            PruneToolResults(protect=protect, minimum=minimum),
            Summary(
                KeepNothing(),
                FreeText(OPENCODE_TASK, style=_WHOLE_HISTORY_STYLE),
                AsAssistant(),
                name="opencode summary",
            ),
        ),
        usual_window=200_000,
    )


@_preset
def amp() -> Policy:
    """Amp."""
    return Policy(
        about="Amp: never compacts automatically; you hand off to a new thread when you choose.",
        figures={
            "compacts": "never automatically, unless an agent loop would exceed its window",
            "counts": "the provider's usage, and a real tokenizer calibrated by it",
            "keeps": "everything, until you hand off, fork, or reference another thread",
            "summary": "the facts relevant to the goal of the new thread",
            "shown as": "the first message of the new thread",
            "if it fails": "the ledger",
        },
        trigger=never,
        strategy=StructuredSummary(),
        usual_window=200_000,
    )


@_preset
def layer(
    *,
    system_reserve: int = 2_000,
    output_reserve: int = 4_000,
    safety: int = 5_000,
    percent: float = 0.80,
    keep: int = 10,
    summary_tokens: int = 800,
    max_summary_tokens: int = 1_000,
    temperature: float = 0.3,
) -> Policy:
    """Context Compaction Layer."""
    budget = LayerBudget(128_000, system_reserve, output_reserve, safety, percent, keep)
    return Policy(
        about="Context Compaction Layer: a structured summary as an assistant message, and the last messages.",
        figures={
            "compacts": f"at {_percent(percent)} of the window less {system_reserve:,} system, {output_reserve:,} "
            f"output and {safety:,} safety margin ({budget.threshold:,} of 128,000)",
            "counts": "characters / 4 of each part, plus 2 per message",
            "keeps": f"the last {keep} messages, extended back to keep tool calls with their results",
            "summary": f"structured sections, {summary_tokens:,} tokens requested, {max_summary_tokens:,} allowed, "
            f"temperature {temperature:g}; tool results clipped to 500 characters",
            "shown as": "an assistant message headed by its round",
            "if it fails": "context unchanged",
        },
        threshold=budget,
        reply=Reserve(output_reserve, _QUARTER),
        trigger=OverThreshold(inclusive=True, least_messages=keep + 2),
        strategy=StructuredSummary(
            KeepLast(keep),
            shown_as=as_assistant,
            summary_tokens=summary_tokens,
            max_summary_tokens=max_summary_tokens,
            temperature=temperature,
            style=Style(result_limit=500, text_limit=2_000),
            excerpt_tokens=0,
            last_resort="unchanged",
        ),
        estimator="chars/4",
        calibrated=False,
    )


@_preset
def workstream(
    *,
    percent: float = 0.7,
    output_reserve: int = 32_000,
    safety: int = 8_000,
    keep: int = 6,
    attempts: int = 2,
    backoff: float = 3.0,
    deadline: float = 300.0,
) -> Policy:
    """Workstream SDK."""
    budget = WorkstreamBudget(200_000, output_reserve, safety, percent)
    return Policy(
        about="Workstream SDK: a summary and a structured state, written in the background, and the last messages.",
        figures={
            "compacts": f"at {_percent(percent)} of the window, or the window less {output_reserve:,} output and "
            f"{safety:,} safety ({budget.threshold:,} of 200,000)",
            "counts": "characters / 3",
            "keeps": f"the last {keep} messages, extended back to keep tool calls with their results",
            "summary": "key facts, flow, open threads, and changes to the state; 120,000 characters per call, rolled "
            "up above 80,000 tokens; tools from an allow-list",
            "shown as": "the first system message",
            "if it fails": f"{attempts} attempts with backoff from {backoff:g} s within {deadline / 60:g} minutes, "
            "then context unchanged",
        },
        threshold=budget,
        reply=Reserve(output_reserve, _QUARTER),
        trigger=OverThreshold(inclusive=True),
        strategy=StateSummary(keep_last=keep, last_resort="unchanged"),
        estimator="chars/3",
        calibrated=False,
        usual_window=200_000,
        limits=Limits(attempts=attempts, backoff=backoff, deadline=deadline),
    )


@_preset
def goat(*, utilization: float = 0.80, output: int = DEFAULT_RESERVE, keep: float = 0.4) -> Policy:
    """Goat; the output is at most half the window."""
    return Policy(
        about="Goat: summarizes the older messages as a user message and a reply; truncation if the model fails.",
        figures={
            "compacts": f"above {_percent(utilization)} of the window less system prompt and {output:,} for output",
            "counts": "characters / 4 rounded down, plus 4 per message",
            "keeps": f"the newest {_percent(keep)} of the messages",
            "summary": "free text: earlier work, key decisions, key facts",
            "shown as": "a user message and an assistant acknowledgement",
            "if it fails": "the same messages, with a note about the removed ones in place of the summary",
        },
        threshold=RoomFraction(utilization, output, _HALF),
        reply=Reserve(output, _QUARTER),
        strategy=Summary(
            KeepFraction(keep), FreeText(GOAT_TASK), AsExchange(), name="goat summary", last_resort="truncate"
        ),
        estimator="chars/4+4",
        calibrated=False,
        usual_window=200_000,
    )


def _left_by(percent: float) -> Reserve:
    """Returns the reply's part of a window of which a document uses so much."""
    return Reserve(DEFAULT_RESERVE, max(0.01, 1 - percent))


def _percent(part: float) -> str:
    return f"{100 * part:g} %"
