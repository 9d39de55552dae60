"""What both models of worth share: one for names, one for lines that will be edited.

Two small logistic models. What each feature adds stands in `weights.toml`, learned from what real sessions needed
later: a weight, or a curve given by its points.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from math import exp
from typing import Any

from .names import names_in
from .notebook import Notebook


@cache
def learned() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("weights.toml").read_text(encoding="utf-8"))


def near(age: float, scale: float) -> float:
    return 1 / (1 + age / scale)


def odds(total: float) -> float:
    return 1 / (1 + exp(-total)) if total > -60 else 0.0


def named_last(notebook: Notebook) -> set[str]:
    """The names in what the user said last."""
    return set(names_in(notebook.users[-1].text)) if notebook.users else set()
