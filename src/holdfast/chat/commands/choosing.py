"""/model and /preset: who answers, and how the conversation is compacted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ...models import stepper_for
from ...models.names import PROVIDERS
from ...presets import PRESETS, preset_named
from ...settings import preset_for
from . import windows
from .command import Command, Page
from .layout import table

if TYPE_CHECKING:
    from ..chat import Chat


async def _model(chat: Chat, argument: str) -> Page:
    if argument:
        chat.use(model=stepper_for(argument))
    summarizer = chat.summarizer or chat.model
    rows = [
        ("model", chat.model.name),
        ("format", chat.model.format),
        ("window", f"{windows.size(chat):,} tokens: {windows.said_by(chat)}"),
        ("summaries", getattr(summarizer, "name", None) or str(summarizer)),
    ]
    changed = [f"This conversation goes on with {chat.model.name}.", ""] if argument else []
    return Page("\n".join([*changed, *table(rows)]))


async def _preset(chat: Chat, argument: str) -> Page:
    if not argument:
        rows = [("*" if name == chat.preset.name else " ", name, preset.about) for name, preset in PRESETS.items()]
        return Page("\n".join([*table(rows), "", "Use another one in this conversation: /preset NAME."]))
    name = preset_named(argument).name
    chat.use(preset=preset_for(msgspec.structs.replace(windows.settings_of(chat), preset=name)))
    figures = table(list(chat.preset.figures.items()))
    return Page("\n".join([f"This conversation is compacted by {name} from now on. {chat.preset.about}", "", *figures]))


async def _providers(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return [f"{name}:" for name in PROVIDERS] if len(words) == 1 else ()


async def _presets(chat: Chat, words: Sequence[str]) -> Iterable[str]:
    return PRESETS if len(words) == 1 else ()


MODEL = Command("model", "/model [NAME]", "show who answers, or let another model go on", _model, _providers)
PRESET = Command("preset", "/preset [NAME]", "show the ways to compact, or use another one", _preset, _presets)
