"""`holdfast presets`: lists the compaction presets and their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..compaction import PRESETS, Policy
from ..compaction.policy import find_policy
from . import options
from .console import Block, heading, make_console, print_blocks, unwrapped_line
from .options import PRESET_NAME
from .output import echo_json


@click.command("presets")
@click.argument("name", type=PRESET_NAME, required=False)
@options.json_option
def presets_command(name: str | None, as_json: bool) -> None:
    """List the compaction presets; with NAME, show all parameters of one.

    Each preset reproduces a known system; use it with holdfast compact FILE --preset NAME.
    """
    chosen = None if name is None else find_policy(name)
    if as_json:
        facts = (
            {"presets": [_preset_json(find_policy(name)) for name in PRESETS]}
            if chosen is None
            else _preset_json(chosen)
        )
        echo_json(facts)
        return

    if chosen is None:
        print_preset_list(make_console(), list(map(find_policy, PRESETS)))
    else:
        print_preset(make_console(), chosen)


def _preset_json(preset: Policy) -> dict[str, Any]:
    return {"name": preset.name, "about": preset.about, "figures": preset.figures, "window": preset.usual_window}


_BRIEF_FIGURES = ("compacts", "keeps", "if it fails")


def print_preset_list(console: Console, presets: Sequence[Policy]) -> None:
    print_blocks(
        console,
        *(_preset_block(preset, {name: preset.figures[name] for name in _BRIEF_FIGURES}) for preset in presets),
        [
            unwrapped_line("Show one:  holdfast presets NAME"),
            unwrapped_line("Use one:   holdfast compact FILE --preset NAME --summarizer MODEL"),
        ],
    )


def print_preset(console: Console, preset: Policy) -> None:
    window = {"window": f"{preset.usual_window:,} tokens, if the model's is not known"}
    print_blocks(
        console,
        _preset_block(preset, {**preset.figures, **window}),
        unwrapped_line(f"To use it: holdfast compact FILE --preset {preset.name} --summarizer MODEL"),
    )


def _preset_block(preset: Policy, figures: Mapping[str, str]) -> Block:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for label, text in figures.items():
        table.add_row(Text(label, "bright_black"), Text(text))
    return [heading(preset.name), Text(preset.about), table]
