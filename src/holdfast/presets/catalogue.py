"""Every system of the requirement sheet as a preset, with its document's constants."""

from __future__ import annotations

from ..budget import BelowWindow, Fraction, LayerBudget, Tokens, WorkstreamBudget
from ..calls import Limits
from ..strategies import (
    KeepFraction,
    KeepLast,
    KeepNothing,
    KeepUserMessages,
    Pipeline,
    PruneToolResults,
    RecursiveSummary,
    StateSummary,
    StructuredSummary,
    Summary,
)
from ..summaries import AsExchange, AsUser, FreeText, Style, as_assistant
from ..triggers import (
    LayerTrigger,
    OverBudget,
    OverUtilization,
    TokenCount,
    TurnCount,
    WorkstreamTrigger,
    any_of,
    never,
)
from .preset import Preset, below
from .sized import RESERVE, holdfast_preset, pi_preset

_WHOLE = Style(result_limit=2_000, text_limit=8_000, images=4)
"""For systems whose model sees the whole conversation: more of it is told, and its newest images go along."""
_CODEX_LIMITS = {272_000: 244_000, 0: 180_000}
"""The absolute limit of models with at least this window."""
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
    about="Spring AI Session: a recursive summary as a question and its answer.",
    figures={
        "compacts": "above 20 turns, or at 4,000 tokens",
        "counts": "a real tokenizer",
        "keeps": "the newest 10 events, from a user message on",
        "summary": "each takes in the one before; 2 events of overlap",
        "shown as": "a user message and the assistant's reply",
        "if it fails": "unchanged, with a callback",
    },
    trigger_in=lambda window: any_of(TurnCount(20), TokenCount(_SPRING_TOKENS)),
    target_in=below(Tokens(_SPRING_TOKENS).tokens),
    strategy=RecursiveSummary(max_events_to_keep=10, overlap_size=2, last_resort="unchanged"),
)
PI = pi_preset()
CLAUDE_CODE = Preset(
    name="claude_code",
    about="Claude Code: the whole history becomes a summary, and a new context starts from it.",
    figures={
        "compacts": "above 95 % of the window",
        "counts": "the provider's usage, and a real tokenizer calibrated by it",
        "keeps": "the newest user message, and a tool loop that is still running",
        "summary": "free text, minding your instructions",
        "shown as": "a user message with a prefix",
        "if it fails": "the ledger",
    },
    trigger_in=lambda window: OverBudget(Fraction(0.95), window),
    strategy=Summary(KeepNothing(), FreeText(style=_WHOLE), AsUser(), by="whole-history summary"),
    calibrated=True,
    window=200_000,
)
CODEX = Preset(
    name="codex",
    about="Codex CLI: the user's newest messages, then the summary.",
    figures={
        "compacts": "above 180,000 tokens (244,000 where the window has 272,000), or above 95 % of a smaller window",
        "counts": "the provider's usage, and a real tokenizer calibrated by it",
        "keeps": "the user's messages, the newest 20,000 tokens of them",
        "summary": "free text, a handoff to another model",
        "shown as": "a user message with a prefix, behind the user's own",
        "if it fails": "5 attempts with exponential backoff, then unchanged",
    },
    trigger_in=lambda window: OverBudget(Tokens(_codex_limit(window)), window),
    target_in=below(_codex_limit),
    strategy=Summary(
        KeepUserMessages(20_000), FreeText(style=_WHOLE), AsUser(), by="codex summary", last_resort="unchanged"
    ),
    calibrated=True,
    window=272_000,
    limits=Limits(attempts=5),
)
OPENCODE = Preset(
    name="opencode",
    about="OpenCode: old tool results are cleared first; if that is not enough, the assistant tells what happened.",
    figures={
        "compacts": f"above the window less the longest reply ({_OPENCODE_OUTPUT:,})",
        "counts": "the provider's usage, and a real tokenizer calibrated by it",
        "keeps": "the newest 40,000 tokens of tool results; clears older ones if more than 20,000 would go",
        "summary": "free text, and two sentences for display",
        "shown as": "an assistant message",
        "if it fails": "the ledger",
    },
    trigger_in=lambda window: OverBudget(Tokens(_opencode_limit(window)), window),
    target_in=below(_opencode_limit),
    strategy=Pipeline(
        PruneToolResults(protect=40_000, minimum=20_000),
        Summary(KeepNothing(), FreeText(style=_WHOLE), as_assistant, by="opencode summary"),
    ),
    calibrated=True,
    window=200_000,
)
AMP = Preset(
    name="amp",
    about="Amp: nothing by itself; you hand off to a new thread when you see fit.",
    figures={
        "compacts": "never by itself",
        "counts": "the provider's usage, and a real tokenizer calibrated by it",
        "keeps": "everything, until you hand off, fork, or refer to another thread",
        "summary": "what matters for the goal of the new thread",
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
    about="Context Compaction Layer: a structured summary as the assistant's message, and the last 10 messages.",
    figures={
        "compacts": "at 80 % of the window less 2,000 system, 4,000 output and 5,000 safety (93,600 of 128,000)",
        "counts": "characters / 4 of each piece, 2 more a message",
        "keeps": "the last 10 messages, back over tool results",
        "summary": "sections, 800 tokens asked, 1,000 allowed, temperature 0.3; tool results cut at 500 characters",
        "shown as": "an assistant message headed with its round",
        "if it fails": "unchanged",
    },
    trigger_in=lambda window: LayerTrigger(LayerBudget(limit=window)),
    target_in=below(LayerBudget().tokens),
    strategy=StructuredSummary(
        KeepLast(10),
        shown_as=as_assistant,
        asked=800,
        allowed=1_000,
        temperature=0.3,
        style=Style(result_limit=500, text_limit=2_000),
        at_hand=0,
        last_resort="unchanged",
    ),
    estimator="chars/4",
)
WORKSTREAM = Preset(
    name="workstream",
    about="Workstream SDK: a summary and a state, made in the background, and the last 6 messages.",
    figures={
        "compacts": "at 70 % of the window, or what 32,000 output and 8,000 safety leave (140,000 of 200,000)",
        "counts": "characters / 3",
        "keeps": "the last 6 messages, back over tool results",
        "summary": "key facts, flow, open threads, and changes to a state; 120,000 characters a call, rolled up over "
        "80,000 tokens; tools by an allow-list",
        "shown as": "the first system message",
        "if it fails": "2 attempts with backoff from 3 s within 5 minutes, then unchanged",
    },
    trigger_in=lambda window: WorkstreamTrigger(WorkstreamBudget(size=window)),
    target_in=below(WorkstreamBudget().tokens),
    strategy=StateSummary(keep_last=6, last_resort="unchanged"),
    estimator="chars/3",
    window=200_000,
    limits=Limits(attempts=2, backoff=3.0, deadline=300.0),
)
GOAT = Preset(
    name="goat",
    about="Goat: the older three fifths become an exchange about them; plain truncation if no model answers.",
    figures={
        "compacts": "above 80 % of what system and 16,384 output leave",
        "counts": "characters / 4 rounded down, 4 more a message",
        "keeps": "the newest 40 % of the messages",
        "summary": "free text",
        "shown as": "a user message and the assistant's word that it has read it",
        "if it fails": "truncation, with a note of what went",
    },
    trigger_in=lambda window: OverUtilization(0.80, window, min(RESERVE, window // 2)),
    target_in=below(lambda window: Fraction(0.80, min(RESERVE, window // 2)).tokens(window)),
    strategy=Summary(KeepFraction(0.4), FreeText(), AsExchange(), by="goat summary", last_resort="truncate"),
    estimator="chars/4+4",
    window=200_000,
)

PRESETS = {
    preset.name: preset for preset in (HOLDFAST, SPRING, PI, CLAUDE_CODE, CODEX, OPENCODE, AMP, LAYER, WORKSTREAM, GOAT)
}
