"""The presets: known compaction systems by name, with their constants."""

from __future__ import annotations

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
    Fraction,
    LayerBudget,
    Tokens,
    WorkstreamBudget,
    require_positive,
)
from ..triggers import (
    LayerTrigger,
    OverBudget,
    OverUtilization,
    TokenCount,
    TurnCount,
    WorkstreamTrigger,
    any_of,
    never,
    pi_trigger,
)
from .preset import Preset, target_below

__all__ = [
    "DEFAULT_KEEP",
    "DEFAULT_RESERVE",
    "PRESETS",
    "SIZED_PRESETS",
    "holdfast_preset",
    "pi_preset",
    "preset_named",
]

DEFAULT_KEEP = 20_000
_PI_SUMMARY_SHARE = 1 / 3
"""Share of a small window's target for the summary: pi keeps its newest tokens whole wherever that is possible."""


def holdfast_preset(reserve: int = DEFAULT_RESERVE, keep: int = DEFAULT_KEEP) -> Preset:
    """Returns the preset `holdfast`; in a small window the reserve is at most a quarter of the window."""
    require_positive("reserve", reserve)

    def threshold_in(window: int) -> Fraction:
        return Fraction(0.85, min(reserve, window // 4))

    return Preset(
        name="holdfast",
        about="Recommended: a structured summary, updated and verified in each round, and the trail of the newest "
        "steps; the ledger if the model fails.",
        figures={
            "compacts": f"above 85 % of the window less {reserve:,} for the reply",
            "counts": "the provider's usage, and a real tokenizer calibrated by it",
            "keeps": f"the newest {keep:,} tokens, of older tool results a few lines",
            "summary": "structured sections, 2,000 tokens requested, 8,192 allowed, updated and verified; up to 8,000 "
            "tokens of errors, files, commands and relevant excerpts",
            "shown as": "a user message with a prefix",
            "if it fails": "the ledger",
        },
        trigger_in=lambda window: OverBudget(threshold_in(window), window),
        target_in=target_below(lambda window: threshold_in(window).tokens(window), 2 / 3),
        strategy=StructuredSummary(KeepTrail(keep)),
        calibrated=True,
    )


def pi_preset(reserve: int = DEFAULT_RESERVE, keep: int = DEFAULT_KEEP) -> Preset:
    """Returns the preset `pi`: 4/5 of the reserve is for the summary; the reserve is at most half the window."""
    require_positive("reserve", reserve)
    summary = max(1, int(0.8 * reserve))
    return Preset(
        name="pi",
        about="The pi coding agent: a handover checkpoint, followed by the newest turns.",
        figures={
            "compacts": f"above the window less {reserve:,}",
            "counts": "the provider's usage, plus characters / 4 for newer messages",
            "keeps": f"the newest {keep:,} tokens since the last compaction, starting at a user message",
            "summary": f"free text: goal, progress, files by absolute path, next steps; at most {summary:,} tokens",
            "shown as": "a user message with a prefix",
            "if it fails": "the user decides",
        },
        trigger_in=lambda window: pi_trigger(window, min(reserve, window // 2)),
        target_in=target_below(lambda window: window - min(reserve, window // 2)),
        strategy=Summary(
            KeepRecent(keep, fresh_only=True, leaves=_PI_SUMMARY_SHARE),
            FreeText(PI_TASK, max_tokens=summary, style=Style(result_limit=2_000, text_limit=8_000)),
            AsUser(),
            name="pi summary",
            last_resort="ask",
        ),
        estimator="chars/4",
        calibrated=True,
        window=200_000,
    )


SIZED_PRESETS = {"holdfast": holdfast_preset, "pi": pi_preset}
_WHOLE_HISTORY_STYLE = Style(result_limit=2_000, text_limit=8_000, images=4)
"""For systems whose summarizer sees the whole conversation: longer excerpts, and the newest images."""
_CODEX_LIMITS = {272_000: 244_000, 0: 180_000}
"""Minimum window: absolute limit in tokens."""
_OPENCODE_OUTPUT = 32_000
_SPRING_TOKENS = 4_000


def _codex_limit(window: int) -> int:
    absolute = next(limit for least, limit in _CODEX_LIMITS.items() if window >= least)
    return min(absolute, Fraction(0.95).tokens(window))


def _opencode_limit(window: int) -> int:
    return BelowWindow(min(_OPENCODE_OUTPUT, window // 2)).tokens(window)


HOLDFAST = holdfast_preset()
SPRING = Preset(
    name="spring",
    about="Spring AI Session: a recursive summary, shown as a user message and an assistant reply.",
    figures={
        "compacts": "above 20 turns, or at 4,000 tokens",
        "counts": "a real tokenizer",
        "keeps": "the newest 10 events, starting at a user message",
        "summary": "recursive: includes the previous summary; 2 events of overlap",
        "shown as": "a user message and an assistant reply",
        "if it fails": "context unchanged, with a callback",
    },
    trigger_in=lambda window: any_of(TurnCount(20), TokenCount(_SPRING_TOKENS)),
    target_in=target_below(Tokens(_SPRING_TOKENS).tokens),
    strategy=RecursiveSummary(max_events_to_keep=10, overlap_size=2, last_resort="unchanged"),
)
PI = pi_preset()
CLAUDE_CODE = Preset(
    name="claude_code",
    about="Claude Code: summarizes the whole history and starts a new context from the summary.",
    figures={
        "compacts": "above 95 % of the window",
        "counts": "the provider's usage, and a real tokenizer calibrated by it",
        "keeps": "a user message that is not answered yet, and an unfinished tool loop",
        "summary": "free text: done, in progress, files, next steps, requests; following your instructions",
        "shown as": "a user message with a prefix",
        "if it fails": "the ledger",
    },
    trigger_in=lambda window: OverBudget(Fraction(0.95), window),
    strategy=Summary(
        KeepNothing(), FreeText(CLAUDE_CODE_TASK, style=_WHOLE_HISTORY_STYLE), AsUser(), name="whole-history summary"
    ),
    calibrated=True,
    window=200_000,
)
CLAUDE_CODE_TS = Preset(
    name="claude_code_ts",
    about="Claude Code's TypeScript agent: summarizes the older half of the messages; an error if the model fails.",
    figures={
        "compacts": "above 95 % of the window",
        "counts": "the provider's usage, and a real tokenizer calibrated by it",
        "keeps": "the newest 50 % of the messages, extended back to keep tool calls with their results",
        "summary": "free text: done, in progress, files, next steps, requests; following your instructions",
        "shown as": "a user message with a prefix",
        "if it fails": "an error, and the context is unchanged",
    },
    trigger_in=lambda window: OverBudget(Fraction(0.95), window),
    strategy=Summary(
        KeepFraction(0.5), FreeText(CLAUDE_CODE_TASK), AsUser(), name="half-history summary", last_resort="error"
    ),
    calibrated=True,
    window=200_000,
)
CODEX = Preset(
    name="codex",
    about="Codex CLI: the newest user messages, followed by a summary.",
    figures={
        "compacts": "above 180,000 tokens (244,000 for windows of 272,000 and more), or above 95 % of a smaller window",
        "counts": "the provider's usage, and a real tokenizer calibrated by it",
        "keeps": "user messages only, the newest 20,000 tokens",
        "summary": "free text, a handoff to another model: progress, context, remaining work, references",
        "shown as": "a user message with a prefix, after the kept ones",
        "if it fails": "5 attempts with exponential backoff, then context unchanged",
    },
    trigger_in=lambda window: OverBudget(Tokens(_codex_limit(window)), window),
    target_in=target_below(_codex_limit),
    strategy=Summary(
        KeepUserMessages(20_000),
        FreeText(CODEX_TASK, style=_WHOLE_HISTORY_STYLE),
        AsUser(),
        name="codex summary",
        last_resort="unchanged",
    ),
    calibrated=True,
    window=272_000,
    limits=Limits(attempts=5),
)
OPENCODE = Preset(
    name="opencode",
    about="OpenCode: clears old tool results first; if that is not enough, adds a summary as an assistant message.",
    figures={
        "compacts": f"above the window less the maximum output ({_OPENCODE_OUTPUT:,})",
        "counts": "the provider's usage, and a real tokenizer calibrated by it",
        "keeps": "the newest 40,000 tokens of tool results; clears older ones if that frees more than 20,000",
        "summary": "free text: done, current work, files, next, lasting requests, decisions; two sentences for display",
        "shown as": "an assistant message under a heading that marks it as a summary",
        "if it fails": "the ledger",
    },
    trigger_in=lambda window: OverBudget(Tokens(_opencode_limit(window)), window),
    target_in=target_below(_opencode_limit),
    strategy=Pipeline(
        PruneToolResults(protect=40_000, minimum=20_000),
        Summary(
            KeepNothing(), FreeText(OPENCODE_TASK, style=_WHOLE_HISTORY_STYLE), AsAssistant(), name="opencode summary"
        ),
    ),
    calibrated=True,
    window=200_000,
)
AMP = Preset(
    name="amp",
    about="Amp: never compacts automatically; you hand off to a new thread when you choose.",
    figures={
        "compacts": "never automatically, unless an agent loop would exceed its window",
        "counts": "the provider's usage, and a real tokenizer calibrated by it",
        "keeps": "everything, until you hand off, fork, or reference another thread",
        "summary": "the facts relevant to the goal of the new thread",
        "shown as": "the first message of the new thread",
        "if it fails": "the ledger",
    },
    trigger_in=lambda window: never,
    strategy=StructuredSummary(),
    calibrated=True,
    window=200_000,
)
LAYER = Preset(
    name="layer",
    about="Context Compaction Layer: a structured summary as an assistant message, and the last 10 messages.",
    figures={
        "compacts": "at 80 % of the window less 2,000 system, 4,000 output and 5,000 safety margin (93,600 of 128,000)",
        "counts": "characters / 4 of each part, plus 2 per message",
        "keeps": "the last 10 messages, extended back to keep tool calls with their results",
        "summary": "structured sections, 800 tokens requested, 1,000 allowed, temperature 0.3; tool results clipped to "
        "500 characters",
        "shown as": "an assistant message headed by its round",
        "if it fails": "context unchanged",
    },
    trigger_in=lambda window: LayerTrigger(LayerBudget(limit=window)),
    target_in=target_below(LayerBudget().tokens),
    strategy=StructuredSummary(
        KeepLast(10),
        shown_as=as_assistant,
        summary_tokens=800,
        max_summary_tokens=1_000,
        temperature=0.3,
        style=Style(result_limit=500, text_limit=2_000),
        excerpt_tokens=0,
        last_resort="unchanged",
    ),
    estimator="chars/4",
)
WORKSTREAM = Preset(
    name="workstream",
    about="Workstream SDK: a summary and a structured state, written in the background, and the last 6 messages.",
    figures={
        "compacts": "at 70 % of the window, or the window less 32,000 output and 8,000 safety (140,000 of 200,000)",
        "counts": "characters / 3",
        "keeps": "the last 6 messages, extended back to keep tool calls with their results",
        "summary": "key facts, flow, open threads, and changes to the state; 120,000 characters per call, rolled up "
        "above 80,000 tokens; tools from an allow-list",
        "shown as": "the first system message",
        "if it fails": "2 attempts with backoff from 3 s within 5 minutes, then context unchanged",
    },
    trigger_in=lambda window: WorkstreamTrigger(WorkstreamBudget(size=window)),
    target_in=target_below(WorkstreamBudget().tokens),
    strategy=StateSummary(keep_last=6, last_resort="unchanged"),
    estimator="chars/3",
    window=200_000,
    limits=Limits(attempts=2, backoff=3.0, deadline=300.0),
)
GOAT = Preset(
    name="goat",
    about="Goat: summarizes the older 60 % as a user message and a reply; truncation if the model fails.",
    figures={
        "compacts": "above 80 % of the window less system prompt and 16,384 for output",
        "counts": "characters / 4 rounded down, plus 4 per message",
        "keeps": "the newest 40 % of the messages",
        "summary": "free text: earlier work, key decisions, key facts",
        "shown as": "a user message and an assistant acknowledgement",
        "if it fails": "the same messages, with a note about the removed ones in place of the summary",
    },
    trigger_in=lambda window: OverUtilization(0.80, window, min(DEFAULT_RESERVE, window // 2)),
    target_in=target_below(lambda window: Fraction(0.80, min(DEFAULT_RESERVE, window // 2)).tokens(window)),
    strategy=Summary(KeepFraction(0.4), FreeText(GOAT_TASK), AsExchange(), name="goat summary", last_resort="truncate"),
    estimator="chars/4+4",
    window=200_000,
)
PRESETS = {
    preset.name: preset
    for preset in (HOLDFAST, SPRING, PI, CLAUDE_CODE, CLAUDE_CODE_TS, CODEX, OPENCODE, AMP, LAYER, WORKSTREAM, GOAT)
}
"""All presets by name."""


def preset_named(name: str | Preset, reserve: int | None = None, keep: int | None = None) -> Preset:
    """Returns a preset by name; `reserve` and `keep` resize the presets in `SIZED_PRESETS`.

    Raises `InvalidInput` for an unknown name, and for sizes given to a preset with fixed ones.
    """
    if reserve is not None or keep is not None:
        return _with_sizes(preset_named(name), reserve, keep)
    if isinstance(name, Preset):
        return name
    wanted = name.strip().lower().replace("-", "_") if isinstance(name, str) else ""
    if wanted in PRESETS:
        return PRESETS[wanted]
    hint = f"{near} " if (near := did_you_mean(wanted, PRESETS)) else ""
    raise InvalidInput(f"There is no preset {name!r}: {hint}Use one of {', '.join(PRESETS)}.")


def _with_sizes(preset: Preset, reserve: int | None, keep: int | None) -> Preset:
    if PRESETS.get(preset.name) is not preset or preset.name not in SIZED_PRESETS:
        raise InvalidInput(
            f"The preset {preset.name!r} has fixed sizes: leave out reserve and keep, or use one of "
            f"{', '.join(SIZED_PRESETS)}."
        )
    return SIZED_PRESETS[preset.name](
        DEFAULT_RESERVE if reserve is None else reserve, DEFAULT_KEEP if keep is None else keep
    )
