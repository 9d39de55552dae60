"""`holdfast presets`: the known systems of compaction, with their numbers."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from ..presets import PRESETS, Preset, preset_named
from . import options
from .terminal import console
from .way import PRESET_NAME


@click.command("presets")
@click.argument("name", type=PRESET_NAME, required=False)
@options.as_json
def command(name: str | None, as_json: bool) -> None:
    """List the presets; with NAME, show one in full.

    Each is a known system of compaction, to be used by holdfast compact FILE --preset NAME.
    """
    chosen = None if name is None else preset_named(name)
    if as_json:
        facts = {"presets": [_facts(preset) for preset in PRESETS.values()]} if chosen is None else _facts(chosen)
        click.echo(msgspec.json.encode(facts))
        return
    from .preset_pages import in_brief, in_full

    if chosen is None:
        in_brief(console(), list(PRESETS.values()))
    else:
        in_full(console(), chosen)


def _facts(preset: Preset) -> dict[str, Any]:
    return {"name": preset.name, "about": preset.about, "figures": preset.figures, "window": preset.window}
