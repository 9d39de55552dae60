"""Presets for a person to read: all of them in brief, or one in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..presets import Preset
from .blocks import Block, heading, show, whole_line

_BRIEF = ("compacts", "keeps", "if it fails")


def in_brief(console: Console, presets: Sequence[Preset]) -> None:
    show(
        console,
        *(_block(preset, {name: preset.figures[name] for name in _BRIEF}) for preset in presets),
        [
            whole_line("One in full:  holdfast presets NAME"),
            whole_line("To use one:   holdfast compact FILE --preset NAME --summarizer WHO"),
        ],
    )


def in_full(console: Console, preset: Preset) -> None:
    window = {"window": f"{preset.window:,} tokens, where the model's is not known"}
    show(
        console,
        _block(preset, preset.figures | window),
        whole_line(f"To use it: holdfast compact FILE --preset {preset.name} --summarizer WHO"),
    )


def _block(preset: Preset, figures: Mapping[str, str]) -> Block:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for label, words in figures.items():
        table.add_row(Text(label, "bright_black"), Text(words))
    return [heading(preset.name), Text(preset.about), table]
