"""Settings from the environment. Variables that only look like one of ours are told, not passed over."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInput
from .keys import KEYS, PREFIX, Key

VARIABLES = {key.variable: key for key in KEYS.values() if key.variable}
_NEAR = 0.74


def read_environment(environ: Mapping[str, str]) -> dict[Key, Any]:
    """What is set there; a variable that is empty sets nothing, and strangers are left alone."""
    found = {}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX):
            continue
        if (key := VARIABLES.get(variable)) is None:
            _must_be_a_stranger(variable)
        elif text.strip():
            found[key] = key.read(text, f"The variable {variable}")
    return found


def _must_be_a_stranger(variable: str) -> None:
    names = [known.removeprefix(PREFIX) for known in VARIABLES]
    near = difflib.get_close_matches(variable.removeprefix(PREFIX), names, 1, _NEAR)
    if near:
        raise InvalidInput(
            f"The variable {variable} sets nothing: did you mean {PREFIX}{near[0]}? Rename it, or unset it."
        )
