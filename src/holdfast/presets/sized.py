"""The two presets that have a reserve and a part to keep as numbers of their own, which a person may set (P2)."""

from __future__ import annotations

from ..budget import Fraction, positive
from ..strategies import KeepRecent, StructuredSummary, Summary
from ..summaries import AsUser, FreeText, Style
from ..triggers import OverBudget, pi_trigger
from .preset import Preset, below

RESERVE = 16_384
KEEP = 20_000


def holdfast_preset(reserve: int = RESERVE, keep: int = KEEP) -> Preset:
    """A reserve that a small window has no room for is cut down to a quarter of it."""
    positive("reserve", reserve)
    return Preset(
        name="holdfast",
        about="What we recommend: sections that are updated and verified, the newest turns verbatim, the ledger if no "
        "model answers.",
        figures={
            "compacts": f"above 85 % of the window less {reserve:,} for the reply",
            "counts": "the provider's usage, and a real tokenizer calibrated by it",
            "keeps": f"the newest {keep:,} tokens, whole turns",
            "summary": "sections, 2,000 tokens asked, 8,192 allowed, updated and verified; up to 8,000 tokens of "
            "errors, files, commands and lines to have at hand",
            "shown as": "a user message with a prefix",
            "if it fails": "the ledger",
        },
        trigger_in=lambda window: OverBudget(Fraction(0.85, min(reserve, window // 4)), window),
        strategy=StructuredSummary(KeepRecent(keep)),
        calibrated=True,
    )


def pi_preset(reserve: int = RESERVE, keep: int = KEEP) -> Preset:
    """Four fifths of the reserve are for the summary (P8); of a small window it is at most half."""
    positive("reserve", reserve)
    summary = max(1, int(0.8 * reserve))
    return Preset(
        name="pi",
        about="The pi coding agent: a checkpoint for whoever goes on, in front of the newest turns.",
        figures={
            "compacts": f"above the window less {reserve:,}",
            "counts": "the provider's usage, and characters / 4 for what came since",
            "keeps": f"the newest {keep:,} tokens, from a user message on, of what came after the last compaction",
            "summary": f"free text, at most {summary:,} tokens, with absolute paths",
            "shown as": "a user message with a prefix",
            "if it fails": "the person decides",
        },
        trigger_in=lambda window: pi_trigger(window, min(reserve, window // 2)),
        target_in=below(lambda window: window - min(reserve, window // 2)),
        strategy=Summary(
            KeepRecent(keep, fresh_only=True),
            FreeText(allowed=summary, style=Style(result_limit=2_000, text_limit=8_000)),
            AsUser(),
            by="pi summary",
            last_resort="ask",
        ),
        estimator="chars/4",
        calibrated=True,
        window=200_000,
    )


SIZED = {"holdfast": holdfast_preset, "pi": pi_preset}
