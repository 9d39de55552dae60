"""Numbers as people write them: 100000, 100k, 1.5M, 100_000, 100,000."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import click

from ..errors import InvalidLimit

_WRITTEN = re.compile(
    r"(?P<digits>\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(?P<rest>\.\d+)?(?P<unit>[km]?)", re.IGNORECASE | re.ASCII
)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def whole_number(text: str, name: str) -> int:
    """A whole number of at least 1; InvalidLimit says how to write one."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is not None:
        digits = found["digits"].replace(",", "").replace("_", "") + (found["rest"] or "")
        value = Decimal(digits) * _UNITS[found["unit"].lower()]
        if value >= 1 and value == int(value):
            return int(value)
    raise InvalidLimit(f"{name} takes a whole number of at least 1, like 100000, 100k or 1.5M, not {text!r}.")


class Count(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """A number of tokens or of things, in any of those spellings."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        return whole_number(str(value), param.opts[-1] if param else "a limit")
