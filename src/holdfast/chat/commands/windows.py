"""How much there is room for, and who said so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...catalog import CATALOG
from ...settings import Settings, load_settings
from ...triggers import LayerTrigger, OverBudget, WorkstreamTrigger

if TYPE_CHECKING:
    from ..chat import Chat


def settings_of(chat: Chat) -> Settings:
    """What the conversation was opened with; where it was not opened from settings, those of its folder."""
    return chat.settings or load_settings(chat.folder.root)


def threshold(chat: Chat) -> int | None:
    """The tokens at which a compaction is due; None where the preset goes by something else."""
    match chat.preset.trigger_in(size(chat)):
        case OverBudget(threshold=limit, window=window) if limit is not None:
            return limit.tokens(window)
        case LayerTrigger(budget=budget) | WorkstreamTrigger(budget=budget):
            return budget.threshold
    return None


def size(chat: Chat) -> int:
    """The tokens that the model takes, as far as it is known."""
    return chat.agent.keeper.window.size


def said_by(chat: Chat) -> str:
    """Where the size of the window comes from."""
    known = CATALOG.find(chat.model.name.rpartition(":")[2])
    if chat.window is not None:
        origin = settings_of(chat).origins.get("window", "default")
        usual, words = chat.window, "given when the chat was opened" if origin == "default" else origin
    elif known is not None:
        usual, words = known.window, "the catalog of models"
    else:
        usual, words = chat.preset.window, f"a guess of the preset {chat.preset.name}: the catalog lacks the model"
    return words if size(chat) == usual else "learned from the model, which refused more"
