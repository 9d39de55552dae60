"""All that `holdfast inspect` knows of one context."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..anatomy import Anatomy
from ..boundaries import Problem
from .sources import Source
from .window import Window


class Portrait(msgspec.Struct, frozen=True):
    """All that is known of one context."""

    source: Source
    window: Window
    estimator: str
    format: str
    anatomy: Anatomy
    covered: int | None
    """The estimate of what the provider's count covers."""
    summaries: tuple[int, ...]
    """The sizes of past summaries."""
    problems: Sequence[Problem]

    @property
    def tokens(self) -> int:
        """What the provider counted, and an estimate of what came after; else an estimate of all."""
        reported = self.source.reported
        if reported is None or self.covered is None:
            return self.anatomy.tokens
        return reported.tokens + self.anatomy.tokens - self.covered
